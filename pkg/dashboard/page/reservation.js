// SPDX-License-Identifier: Apache-2.0
// The page of one reservation.
import {fill, toast} from './dom.js';
import {add, t} from './texts.js';
import {texts} from './texts-reservation.js';
import {run} from './loop.js';
import {stream} from './stream.js';
import {viewOf} from './reservation-view.js';
import {nothing, step} from './reservation-state.js';

add(texts);

// show shows the reservation with an id. It returns what ends it.
export function show(main, app, id) {
  const place = document.createElement('div'),
    // A rule about maintenance must allow a change of maintenance too.
    may = (rule, one) => app.may(rule) && (!one.maintenance || app.may('reservations:maintain'));
  fill(main, place);
  const part = run({
    place,
    state: nothing({id, names: app.projectNames(), feeds: Boolean(app.session.feeds), mayCancel: one => may('reservations:delete', one)}),
    step,
    view: viewOf(app, may),
    others: {copy: ({id}) => copy(document.getElementById(id))},
  });
  part.send({type: 'begin'});
  const name = () => part.send({type: 'named', names: app.projectNames()});
  addEventListener('projects', name);
  const close = stream({
    calendar: event => part.send({type: 'changed', event}),
    lost: () => part.send({type: 'lost'}),
    state: on => part.send({type: 'live', on}),
    heard: () => part.send({type: 'heard'}),
  });
  const end = () => {
    close();
    removeEventListener('projects', name);
    part.end();
  };
  return {end};
}

// copy copies the text of an element; where the browser does not allow that, it selects the text.
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    toast(t('copiedText'));
  } catch {
    getSelection().selectAllChildren(element);
    toast(t('copyByHand'));
  }
}
