// SPDX-License-Identifier: Apache-2.0
// The time axis: where its lines are, what stands at them, and which round times a pointer meets. Lines are at the
// times that the clock on the wall usually shows, also on a day of 23 or 25 hours.
import {DAY, HOUR, MINUTE, WEEK, dayOnly, format, timeOnly} from './time.js';
import {
  dayStart,
  instant,
  instants,
  isTwice,
  monthStart,
  offset,
  secondZone,
  shownZone,
  wall,
  wallDate,
  weekStart,
  within,
  zoneAt,
} from './zones.js';

const MONTHS = 0; // the step of lines that are months apart
const steps = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK];

// stepFor returns the distance of lines that are at least `room` pixels apart; 0 means months.
export const stepFor = (scale, room) => steps.find(step => step * scale >= room) || MONTHS;

// ticks returns the times of the lines in view, and which of them begin a day (or a month).
export function ticks(from, to, step) {
  const [start, end] = [within(from), within(to)];
  if (step === MONTHS) return until(end, monthStart(start), at => monthStart(at, 1));
  if (step === WEEK) return until(end, weekStart(start), at => weekStart(at, 1));
  if (step >= DAY) {
    const days = step / DAY;
    return until(end, dayStart(start, -(Math.floor(wall(start) / DAY) % days)), at => dayStart(at, days));
  }
  return until(end, dayStart(start), at => dayStart(at, 1))
    .flatMap(({at}) => linesOfDay(at, step))
    .filter(({at}) => at + step >= start && at < end);
}

// until returns a line at a time and at each next one before an end.
function until(end, at, next) {
  const lines = [];
  for (; at < end; at = next(at)) lines.push({at, strong: true});
  return lines;
}

// linesOfDay returns the lines of a day. A time that the clock leaves out has none, and one that comes twice has two if
// there is room for both.
function linesOfDay(day, step) {
  const lines = [{at: day, strong: true}],
    midnight = Math.floor(wall(day) / DAY) * DAY;
  for (let shown = midnight; shown < midnight + DAY; shown += step) {
    const [first, second] = instants(shown);
    if (first > day) lines.push({at: first, strong: false});
    if (second - first >= step) lines.push({at: second, strong: false});
  }
  return lines.sort((a, b) => a.at - b.at);
}

// tickText returns the text at a line.
export function tickText(at, step) {
  if (step === MONTHS) return format(at, {month: 'short'});
  if (step >= DAY) return format(at, {day: 'numeric', month: 'short'});
  return isTwice(at) ? `${timeOnly(at)} ${zoneAt(at)}` : timeOnly(at);
}

// secondText returns the text below a line in a second zone: its time, and its day where that is another one than in the
// shown zone.
export function secondText(at, step, zone) {
  if (step === MONTHS) return '';
  const time = timeOnly(at, zone);
  if (Math.floor(wall(at) / DAY) === Math.floor(wall(at, zone) / DAY)) return time;
  return `${format(at, step >= DAY ? {day: 'numeric', month: 'short'} : {weekday: 'short'}, zone)} ${time}`;
}

// zonesOfAxis returns the names of the zone of the axis and of the second one, null without one.
export const zonesOfAxis = () => [shownZone(), secondZone()];

// bands returns the days, months or years above the lines: {from, to, text}.
export function bands(from, to, step) {
  const [start, end] = [within(from), within(to)],
    next = at => (step === MONTHS ? monthStart(at, 12) : step >= DAY ? monthStart(at, 1) : dayStart(at, 1));
  const first =
    step === MONTHS ? monthStart(start, -wallDate(start).getUTCMonth()) : step >= DAY ? monthStart(start) : dayStart(start);
  return until(end, first, next).map(({at}) => ({from: at, to: next(at), text: bandText(at, step)}));
}

const bandText = (at, step) =>
  step === MONTHS ? format(at, {year: 'numeric'}) : step >= DAY ? format(at, {month: 'long', year: 'numeric'}) : dayOnly(at);

// weekends returns the Saturdays and Sundays in view as spans.
export function weekends(from, to) {
  const [start, end] = [within(from), within(to)];
  return until(end, weekStart(start), at => weekStart(at, 1))
    .map(({at}) => ({from: dayStart(at, 5), to: weekStart(at, 1)}))
    .filter(one => one.to > start && one.from < end);
}

// snapStep returns the distance of the round times that the zoom shows: a quarter of an hour, an hour, or six.
export const snapStep = scale => (scale * HOUR > 24 ? 15 * MINUTE : scale * DAY > 24 ? HOUR : 6 * HOUR);

// snapped returns the nearest time that is round on the clock on the wall: full steps since the midnight that is shown.
export function snapped(time, step) {
  const at = within(time),
    zone = shownZone(),
    shown = wall(at, zone),
    floor = Math.floor(shown / step) * step;
  // Where the clock is changed, round times on both sides of the change may be near.
  const skip = offset(at + DAY, zone) - offset(at - DAY, zone);
  const near = [-1, 0, 1, 2].flatMap(i => [0, skip].map(moved => Math.floor((floor + moved) / step + i) * step));
  const round = near.flatMap(one => (instants(one, zone).length ? instants(one, zone) : [instant(one, zone)]));
  return round.reduce((best, one) => (Math.abs(one - at) < Math.abs(best - at) ? one : best));
}
