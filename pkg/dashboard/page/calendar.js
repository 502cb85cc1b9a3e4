// SPDX-License-Identifier: Apache-2.0
// The calendar in the browser: it runs the state, draws the picture, and listens to the stream.
import {announce, toast} from './dom.js';
import {t} from './texts.js';
import {get} from './client.js';
import {write} from './address.js';
import {stream} from './stream.js';
import {formBefore, keepForm, kept} from './kept.js';
import {run} from './loop.js';
import {freeParts} from './free.js';
import {colors} from './ink.js';
import {draw} from './picture.js';
import {now, redrawEvery, seconds} from './time.js';
import {drawing, initial, step} from './calendar-state.js';
import {restored} from './form-state.js';
import {calendarView} from './calendar-view.js';
import {loadOffers} from './offers-part.js';
import {freeSpoken, spoken} from './calendar-facts.js';
import {end as endOf} from './places.js';

// show runs the calendar. It returns what follows another address of it, and what ends it.
export function show(main, app, query) {
  const ending = new AbortController(),
    options = {signal: ending.signal};
  let theme = colors(main),
    asked = false,
    shown = null;

  // paint draws the picture once for all changes of a moment.
  function paint() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      const canvas = main.querySelector('canvas');
      if (canvas && calendar.state().view.width > 0 && !calendar.state().asTable) draw(canvas, pictureOf(calendar.state(), theme));
    });
  }

  const others = {
    address: ({path, replace}) => write(path, replace),
    draft: ({text}) => keepForm(text),
    told: ({name, status}) => toast(t('statusNow', {name, status: t(`status_${status}`)})),
    said: ({what}) => announce((what === 'free' ? freeSpoken : spoken)(calendar.state())),
    focus: ({id}) => queueMicrotask(() => document.getElementById(id)?.focus()),
    bookAgain: ({id, ...time}) => bookAgain(id, time),
    focusForm: () => queueMicrotask(() => main.querySelector('.panel h2')?.focus()),
    focusPicture: () => main.querySelector('.picture')?.focus(),
  };

  const calendar = run({
    place: main,
    state: initial({
      query,
      at: now(),
      kept: {group: kept('group'), table: kept('table'), filters: kept('filters')},
      may: app.session.may,
      draft: restored(formBefore()),
    }),
    step,
    view: (state, send) => {
      paint();
      if (state.data.known && shown !== state.data.hosts) {
        shown = state.data.hosts;
        performance.mark('calendar-shown');
      }
      if (state.form?.fields.when === 'offers') loadOffers(() => send({type: 'ticked'}));
      return calendarView(state, send, app);
    },
    others,
  });
  const {send} = calendar;

  const close = stream({
    calendar: event =>
      send({
        type: 'changed',
        start: seconds(event.start),
        end: seconds(event.end),
        hosts: event.hosts,
        mine: event.mine,
        change: event.change,
        status: event.status,
        id: event.reservation_id,
        name: event.name,
      }),
    hosts: ({hosts}) => send({type: 'hosts', hosts}),
    lost: () => send({type: 'gap'}),
    heard: () => send({type: 'heard'}),
    state: on => send({type: 'live', on}),
  });

  const recolor = () => {
    theme = colors(main);
    paint();
  };
  addEventListener('theme', recolor, options);
  for (const one of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) matchMedia(one).addEventListener('change', recolor, options);
  const tick = setInterval(() => send({type: 'ticked'}), redrawEvery());
  addEventListener('beforeprint', () => send({type: 'printing', on: true}), options);
  addEventListener('afterprint', () => send({type: 'printing', on: false}), options);

  // openForm opens the form that a link asks for.
  function openForm(asked) {
    if (asked.get('maintain')) send({type: 'maintained', host: asked.get('maintain')});
    if (asked.get('again')) bookAgain(asked.get('again'));
  }

  // bookAgain opens the form with the terms of a reservation, at another time if one is given.
  function bookAgain(id, time = {}) {
    get(`v1/reservations/${encodeURIComponent(id)}`, {}, ending.signal).then(
      reservation => send({type: 'againBooked', reservation, ...time}),
      error => error.name === 'AbortError' || toast(error.message, 'bad'),
    );
  }

  send({type: 'opened'});
  openForm(query);
  app.calendar = {state: calendar.state, send};
  const went = next => {
    send({type: 'went', query: next});
    openForm(next);
  };
  const end = () => {
    ending.abort();
    close();
    clearInterval(tick);
    calendar.end();
  };
  return {went, end};
}

// pictureOf returns what the picture draws of a state.
export const pictureOf = (state, theme) => ({
  ...state.view,
  ...drawing(state),
  rows: state.rows,
  total: state.total,
  known: state.data.known,
  free: freeParts(state, state.view.start, endOf(state.view), now()),
  colors: theme,
  hover: state.hover,
  cursor: state.cursor,
  focused: state.focused,
  chosen: state.form?.id || '',
});
