// SPDX-License-Identifier: Apache-2.0
// The list of reservations.
import {fill} from './dom.js';
import {write} from './address.js';
import {add} from './texts.js';
import {texts} from './texts-list.js';
import {run} from './loop.js';
import {stream} from './stream.js';
import {viewOf} from './list-view.js';
import {nothing, step} from './list-state.js';

add(texts);

// list shows the reservations of the project, or of all projects. It returns what ends it.
export function list(main, app) {
  const place = document.createElement('div'),
    address = new URLSearchParams(location.hash.split('?')[1] || ''),
    limited = Boolean(app.session.project_id);
  fill(main, place);
  const part = run({
    place,
    state: nothing({
      everything: app.may('reservations:list_all') && (address.get('all') === '1' || !limited),
      past: address.get('past'),
      search: address.get('search') || '',
      by: address.get('by'),
      down: address.get('down') === '1',
      names: app.projectNames(),
      limited,
    }),
    step,
    view: viewOf(app),
    others: {address: ({query}) => write(`/reservations${written(query)}`, true)},
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

// written returns the part of the address after the question mark. What has its usual value is not there.
function written(query) {
  const usual = {past: 'none', by: 'start'},
    pairs = Object.entries(query).filter(([key, value]) => value && value !== usual[key]);
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}
