// SPDX-License-Identifier: Apache-2.0
// Which time and which rows the calendar shows: moving, zooming, and the address of what is in view.
import {DAY, HOUR, startOfDay} from './time.js';
import {HEAD, end, timeAt} from './places.js';

export const ranges = {day: DAY, week: 7 * DAY, month: 31 * DAY, quarter: 92 * DAY};
const NARROWEST = HOUR,
  WIDEST = 400 * DAY,
  FIRST = 0,
  LAST = Date.UTC(8998, 0, 1) / 1000; // what is around a year of it is within the 8999 years that the service knows

const within = (low, value, high) => Math.min(high, Math.max(low, value));

// room is how many pixels the time has.
export const room = view => Math.max(1, view.width - view.label);

// widthOf returns a width of time that the calendar can show; what is no number is a week.
export const widthOf = value => (Number.isFinite(value) && value > 0 ? within(NARROWEST, value, WIDEST) : ranges.week);

// opened returns the view of an address: its start and its width in seconds, or a week from an eighth before now.
export function opened(query, at) {
  const span = widthOf(Number(query.get('width'))),
    start = Number(query.get('start'));
  return {start: within(FIRST, query.get('start') && Number.isFinite(start) ? start : at - span / 8, LAST), span};
}

// resized fits the view to its frame: the same time is shown.
export function resized(view, {width, height, ratio}) {
  const label = width < 600 ? 104 : 168,
    next = {...view, width, height, ratio, label};
  return {...next, scale: room(next) / view.span};
}

// moved returns the view from another time on.
export const moved = (view, start) => ({...view, start: within(FIRST, start, LAST)});

export const panned = (view, pixels) => moved(view, view.start + pixels / view.scale);

// zoomed widens the view by a factor around a place; null is its middle.
export function zoomed(view, factor, px) {
  const center = px === null ? view.label + room(view) / 2 : Math.max(px, view.label),
    at = timeAt(view, center),
    span = widthOf(view.span * factor),
    scale = room(view) / span;
  return moved({...view, span, scale}, at - (center - view.label) / scale);
}

// ranged shows a day, a week, a month or a quarter around now.
export function ranged(view, name, at) {
  const span = ranges[name],
    start = span >= ranges.month ? startOfDay(at, -Math.round(span / DAY / 10)) : at - span / 8;
  return moved({...view, span, scale: room(view) / span}, start);
}

export const toNow = (view, at) => moved(view, at - view.span / 8);

// shows moves the view until it has a time with some room around it.
export function shows(view, from, to) {
  return from > end(view) || to < view.start ? moved(view, from - view.span / 4) : view;
}

// revealed scrolls until a row is in view.
export function revealed(view, row) {
  const height = view.height - HEAD;
  if (row.y < view.scroll) return {...view, scroll: row.y};
  if (row.y + row.height > view.scroll + height) return {...view, scroll: Math.max(0, row.y + row.height - height)};
  return view;
}

// addressOf returns the address of what is in view.
export function addressOf({view, filter, group, search}) {
  const address = new URLSearchParams({start: Math.round(view.start), width: Math.round(view.span)});
  for (const [name, value] of Object.entries({filter, group, search})) if (value) address.set(name, value);
  return `/calendar?${address}`;
}

// isNear reports whether two addresses show nearly the same, so that Back need not know both: the times overlap, and
// everything else is equal.
export function isNear(before, after) {
  const [a, b] = [before, after].map(address => new URLSearchParams(address.split('?')[1])),
    [from, to] = [a, b].map(one => Number(one.get('start'))),
    [short, long] = [a, b].map(one => Number(one.get('width'))).sort((x, y) => x - y);
  const same = ['filter', 'group', 'search'].every(name => a.get(name) === b.get(name));
  return same && long < short * 1.25 && Math.abs(from - to) < short / 2;
}
