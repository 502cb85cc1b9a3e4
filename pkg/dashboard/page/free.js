// SPDX-License-Identifier: Apache-2.0
// How many of the hosts in the rows are free over time. Time that the page has not read has no number, and neither has
// the past. Nothing here needs a browser.
import {freeOver} from './model.js';
import {AXIS, HEAD, timeAt} from './places.js';

const counted = new WeakMap();

// countsOf returns the numbers of free hosts over all time that was read, counted once for the same rows.
function countsOf(rows, known) {
  let counts = counted.get(rows);
  if (counts?.known !== known) {
    const hosts = rows.flatMap(row => (row.host ? [row.host] : []));
    counts = {known, total: hosts.length, steps: freeOver(hosts, known.from, known.to)};
    counted.set(rows, counts);
  }
  return counts;
}

// freeParts returns the numbers between two times as spans, {from, to, free, total}, in order; `now` is the present.
export function freeParts({rows, data: {known}}, from, to, now) {
  if (!known || rows.length === 0) return [];
  const {total, steps} = countsOf(rows, known),
    first = Math.max(from, known.from, now),
    last = Math.min(to, known.to);
  return steps
    .map(({at, free}, i) => ({from: Math.max(first, at), to: Math.min(last, steps[i + 1]?.at ?? last), free, total}))
    .filter(part => part.to > part.from);
}

// freeAt returns the span with its number that a time is in; null where there is none.
export const freeAt = (state, at, now) => freeParts(state, -Infinity, Infinity, now).find(part => part.from <= at && at < part.to) || null;

// timeOverFree returns the time at a place of the row of the free hosts; null at any other place.
export const timeOverFree = (view, {px, py}) => (py >= AXIS && py < HEAD && px >= view.label ? timeAt(view, px) : null);
