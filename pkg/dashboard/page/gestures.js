// SPDX-License-Identifier: Apache-2.0
// What a pointer does on the picture, without a browser: what is under it, and a drag from its begin to its end.
import {HEAD, timeAt, x} from './places.js';
import {claimAt, rowAt, usable} from './model.js';
import {HOUR, MINUTE} from './lengths.js';
import {snapStep, snapped} from './axis.js';

const EDGE = 7, // how near to its edge a reservation is caught, in pixels
  STILL = 5; // how far a pointer moves before a press is a drag, in pixels
export const LEAST = 15 * MINUTE;

// stepOf returns how fine times are chosen: a quarter of an hour, an hour, or six.
export const stepOf = view => snapStep(view.scale);

export const snap = (view, at) => snapped(at, stepOf(view));

// placeAt returns what is under a place of the picture: the row with its index, the time, the claim, whether it is the
// name of the row, and the edge of a claim that may be changed: 'start' or 'end'. `may` tells which claims may be.
export function placeAt(state, {px, py}, may) {
  const {view, rows} = state;
  if (py < HEAD || rows.length === 0) return null;
  const y = py - HEAD + view.scroll,
    index = rowAt(rows, y),
    row = rows[index];
  if (y > row.y + row.height) return null;
  if (!row.host) return {index, row, at: 0, claim: null, name: false, edge: ''};
  if (px < view.label) return {index, row, at: 0, claim: null, name: true, edge: ''};
  const at = timeAt(view, px),
    part = Math.min(1, Math.max(0, (y - row.y - 3) / (row.height - 9))),
    claim = claimAt(row.host, at, part),
    near = claim || claimAt(row.host, at, part, EDGE / view.scale);
  const edge = near ? edgeOf(view, near, px, may(near)) : '';
  return {index, row, at, claim: edge ? near : claim, name: false, edge};
}

// edgeOf returns which edge of a claim is caught: the end of every one that may change, the start before it begins.
function edgeOf(view, claim, px, {change, move}) {
  if (change && Math.abs(x(view, claim.end) - px) < EDGE) return 'end';
  return move && Math.abs(x(view, claim.start) - px) < EDGE ? 'start' : '';
}

// pressed begins a gesture at what is under the pointer.
export function pressed(found, {px, py}, may) {
  if (!found?.row.host) return null;
  const allowed = found.claim ? may(found.claim) : {};
  const kind = found.edge ? found.edge : found.claim ? (allowed.move ? 'move' : 'none') : found.name ? 'none' : 'select';
  return {kind, found, px, py, drawn: null};
}

// dragged moves a gesture to a place. Its `drawn` is the time and the rows that it has chosen; null until it has left
// where it began.
export function dragged(state, gesture, {px, py}, now, mayBook) {
  if (!gesture.drawn && Math.hypot(px - gesture.px, py - gesture.py) <= STILL) return gesture;
  const {view, rows} = state,
    at = timeAt(view, Math.max(px, view.label));
  if (gesture.kind === 'select') {
    if (!mayBook || !usable(gesture.found.row.host)) return gesture;
    return {...gesture, drawn: selected(view, rows, gesture.found, at, py, now)};
  }
  const {claim} = gesture.found;
  if (gesture.kind === 'end') {
    const least = snap(view, Math.max(claim.start, now)) + LEAST;
    return {...gesture, drawn: {start: claim.start, end: Math.max(snap(view, at), least)}};
  }
  if (gesture.kind === 'start') {
    const start = Math.min(Math.max(snap(view, at), now), claim.end - LEAST);
    return {...gesture, drawn: {start, end: claim.end}};
  }
  if (gesture.kind === 'move') {
    const start = Math.max(now, snap(view, claim.start + at - gesture.found.at));
    return {...gesture, drawn: {start, end: start + claim.end - claim.start}};
  }
  return gesture;
}

function selected(view, rows, from, at, py, now) {
  const to = rowAt(rows, Math.max(0, py - HEAD + view.scroll)),
    [a, b] = [from.at, at].map(time => snap(view, time)),
    start = Math.max(Math.min(a, b), Math.min(now, from.at));
  return {first: Math.min(from.index, to), last: Math.max(from.index, to), start, end: Math.max(a, b, start + LEAST)};
}

// hourAt returns the hour of a click on free time, as a drag would have drawn it; null where no booking can begin.
export function hourAt(state, found, now) {
  if (!found?.row.host || found.claim || found.name || !usable(found.row.host) || found.at + HOUR < now) return null;
  const step = Math.min(HOUR, stepOf(state.view)),
    start = Math.max(now, snapped(found.at - step / 2, step));
  return {first: found.index, last: found.index, start, end: start + HOUR};
}

// cursorOf returns the CSS cursor over a place.
export function cursorOf(found, may, mayBook, now) {
  if (!found?.row.host) return '';
  if (found.edge) return 'ew-resize';
  if (found.claim) return may(found.claim).open ? 'pointer' : '';
  if (found.name) return 'pointer';
  return mayBook && usable(found.row.host) && found.at >= now ? 'crosshair' : '';
}
