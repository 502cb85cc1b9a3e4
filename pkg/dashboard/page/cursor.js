// SPDX-License-Identifier: Apache-2.0
// The cursor of the keyboard on the picture: a row and a time, and a selection from a mark on.
import {end} from './places.js';
import {claimAt} from './model.js';
import {HOUR} from './time.js';
import {snap, stepOf} from './gestures.js';
import {moved, panned, ranged, revealed, toNow, zoomed} from './calendar-window.js';

const hostAt = ({rows, cursor}) => rows[cursor.row]?.host || null;

// marked returns the first and the last row of the selection.
export function marked({row, mark, markRow}) {
  const from = mark === null ? row : markRow;
  return [Math.min(from, row), Math.max(from, row)];
}

// selection returns what Enter books: the marked time and rows, or an hour at the cursor.
export function selection({view, cursor}) {
  const {at, mark} = cursor,
    [first, last] = marked(cursor);
  if (mark === null || mark === at) return {first, last, start: at, end: at + Math.max(HOUR, stepOf(view))};
  return {first, last, start: Math.min(mark, at), end: Math.max(mark, at)};
}

// toRow moves the cursor by a number of hosts; heads of groups are passed over.
function toRow({rows, cursor}, by) {
  let index = cursor.row;
  for (let left = Math.abs(by); left > 0 && rows[index + Math.sign(by)];) {
    index += Math.sign(by);
    if (rows[index].host) left--;
  }
  while (index < rows.length - 1 && !rows[index].host) index++;
  return {...cursor, row: index};
}

// toEdge moves the cursor to where the next claim begins or the last one ends.
function toEdge(state, forward) {
  const {at} = state.cursor,
    edges = (hostAt(state)?.claims || []).flatMap(claim => [claim.start, claim.end]),
    there = edges.filter(edge => (forward ? edge > at : edge < at));
  return there.length ? {...state.cursor, at: forward ? Math.min(...there) : Math.max(...there)} : state.cursor;
}

const toTime = ({view, cursor}, by) => ({...cursor, at: snap(view, cursor.at + by * stepOf(view))});

// keys are what the keys do to the state; each returns what changes of it, or an act for the calendar.
const keys = {
  ArrowUp: state => ({cursor: toRow(state, -1)}),
  ArrowDown: state => ({cursor: toRow(state, 1)}),
  PageUp: state => ({cursor: toRow(state, -10)}),
  PageDown: state => ({cursor: toRow(state, 10)}),
  ArrowLeft: (state, {shift, control}) =>
    shift ? {view: panned(state.view, -80)} : {cursor: control ? toEdge(state, false) : toTime(state, -1)},
  ArrowRight: (state, {shift, control}) =>
    shift ? {view: panned(state.view, 80)} : {cursor: control ? toEdge(state, true) : toTime(state, 1)},
  Home: (state, {at}) => ({cursor: {...state.cursor, at: snap(state.view, at)}, view: toNow(state.view, at)}),
  '+': state => ({view: zoomed(state.view, 1 / 1.4, null)}),
  '=': state => ({view: zoomed(state.view, 1 / 1.4, null)}),
  '-': state => ({view: zoomed(state.view, 1.4, null)}),
  t: (state, {at}) => ({cursor: {...state.cursor, at: snap(state.view, at)}, view: toNow(state.view, at)}),
  d: (state, {at}) => ({view: ranged(state.view, 'day', at)}),
  w: (state, {at}) => ({view: ranged(state.view, 'week', at)}),
  m: (state, {at}) => ({view: ranged(state.view, 'month', at)}),
  q: (state, {at}) => ({view: ranged(state.view, 'quarter', at)}),
  n: state => ({view: panned(state.view, state.view.span * state.view.scale * 0.8)}),
  p: state => ({view: panned(state.view, state.view.span * state.view.scale * -0.8)}),
  ' ': state => {
    const {at, mark, row} = state.cursor;
    return {cursor: {...state.cursor, mark: mark === null ? at : null, markRow: row}};
  },
  c: () => ({act: 'book'}),
  Enter: state => ({act: state.cursor.mark === null && claimUnder(state) ? 'open' : 'select'}),
  Escape: state => ({cursor: {...state.cursor, mark: null}, act: 'escape'}),
  f: () => ({act: 'free'}),
  h: () => ({act: 'host'}),
  '?': () => ({act: 'help'}),
  '/': () => ({act: 'search'}),
};

// letters are the keys with their meaning, in the order of the help.
export const letters = ['t', 'd', 'w', 'm', 'q', 'n', 'p', 'c', 'f', 'h', '/', '?'];

export const claimUnder = state => (hostAt(state) ? claimAt(hostAt(state), state.cursor.at) : null);

// isKey reports whether the picture takes a key.
export const isKey = ({key, alt, meta, control}) => Boolean(keys[key]) && !alt && !meta && (!control || key.startsWith('Arrow'));

// pressedKey returns the parts of the state that a key changes, with `act` for what the calendar does. The cursor stays
// in view.
export function pressedKey(state, event) {
  const {act = '', ...parts} = keys[event.key](state, event),
    next = {...state, ...parts};
  if (parts.view || act) return {...parts, act};
  return {...parts, act, view: inView(next)};
}

function inView({view, cursor, rows}) {
  const shown = cursor.at < view.start ? moved(view, cursor.at - view.span * 0.2) : cursor.at > end(view) ? moved(view, cursor.at - view.span * 0.8) : view;
  return rows[cursor.row] ? revealed(shown, rows[cursor.row]) : shown;
}

// entered returns the cursor when the picture gets the keyboard: on a host, and at a time that is in view.
export function entered(state, at) {
  const cursor = hostAt(state) ? state.cursor : toRow(state, 1),
    {view} = state;
  const outside = cursor.at < view.start || cursor.at > end(view);
  return outside ? {...cursor, at: snap(view, Math.max(view.start, Math.min(end(view), at)))} : cursor;
}
