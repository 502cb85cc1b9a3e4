// SPDX-License-Identifier: Apache-2.0
// Zones of time: what the clock on the wall shows at an instant, and which instants a time of that clock means. All
// other parts of the page ask here which zone is shown.
import {keep, kept} from './kept.js';
import {DAY, HOUR, MINUTE} from './lengths.js';

// The page shows the years 1970 to 9999.
export const LAST = Date.UTC(10000, 0, 1) / 1000 - 1;

// isTime reports whether a value is a time at all.
export const isTime = at => typeof at === 'number' && !Number.isNaN(at);

// within returns the time nearest to a value that the page can show; `room` is how much must follow.
export const within = (at, room = 0) => (isTime(at) ? Math.min(LAST - room, Math.max(0, at)) : 0);

// known returns the name of a zone if the browser knows it, else null.
function known(name) {
  try {
    new Intl.DateTimeFormat('en', {timeZone: name});
    return name;
  } catch {
    return null;
  }
}

const here = known(Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC') || 'UTC';

// zoneOf returns the zone that a choice means: local, utc, or the name of a zone. Others mean none.
const zoneOf = choice => (choice === 'local' ? here : choice === 'utc' ? 'UTC' : choice ? known(choice) : null);

let first = kept('zone') || 'local',
  second = kept('zone2') || '';

// shownZone returns the name of the zone in which the page shows and reads times.
export const shownZone = () => zoneOf(first) || here;

export function setZone(choice) {
  first = zoneOf(choice) ? choice : 'local';
  keep('zone', first);
}

export const isUTC = () => shownZone() === 'UTC';
export const setUTC = value => setZone(value ? 'utc' : 'local');

// secondZone returns the name of the zone of the second axis; null if none is wished, or if it is the one shown anyway.
export function secondZone() {
  const zone = zoneOf(second);
  return zone === shownZone() ? null : zone;
}

// secondChoice returns what was chosen for the second axis: local, utc, the name of a zone, or nothing.
export const secondChoice = () => (zoneOf(second) ? second : '');

export function setSecondZone(choice) {
  second = zoneOf(choice) ? choice : '';
  keep('zone2', second || null);
}

// zoneNames returns the zones that the browser knows.
export const zoneNames = () => Intl.supportedValuesOf?.('timeZone') || [];

const clocks = new Map(),
  offsets = new Map();

function clockOf(zone) {
  if (!clocks.has(zone)) {
    const two = '2-digit',
      parts = {year: 'numeric', month: two, day: two, hour: two, minute: two, second: two, hourCycle: 'h23', timeZone: zone};
    clocks.set(zone, new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', parts));
  }
  return clocks.get(zone);
}

// offset returns how many seconds the clock of a zone is ahead of UTC at an instant. Zones change at full minutes.
export function offset(at, zone = shownZone()) {
  if (zone === 'UTC') return 0;
  const minute = Math.floor(at / MINUTE),
    key = `${minute} ${zone}`;
  if (!offsets.has(key)) {
    if (offsets.size > 10000) offsets.clear();
    const [month, day, year, hour, min, sec] = clockOf(zone)
      .format(minute * MINUTE * 1000)
      .match(/\d+/g);
    offsets.set(key, Date.UTC(year, month - 1, day, hour, min, sec) / 1000 - minute * MINUTE);
  }
  return offsets.get(key);
}

// wall returns what the clock of a zone shows, in seconds as if the clock were one of UTC.
export const wall = (at, zone = shownZone()) => at + offset(at, zone);

// wallDate returns the same as a Date, whose UTC fields are those of the clock.
export const wallDate = (at, zone = shownZone()) => new Date(wall(at, zone) * 1000);

// instants returns the instants at which the clock of a zone shows a time, the earliest first: none in the hour that is
// left out in spring, two in the one that comes twice in autumn, else one.
export function instants(shown, zone = shownZone()) {
  const around = new Set([offset(shown - DAY, zone), offset(shown + DAY, zone)]);
  return [...around]
    .filter(ahead => offset(shown - ahead, zone) === ahead)
    .map(ahead => shown - ahead)
    .sort((a, b) => a - b);
}

// instant returns the first instant at which a clock shows a time. One that is left out is read as if the clock had not
// been changed yet: half past two means half past three.
export const instant = (shown, zone = shownZone()) => instants(shown, zone)[0] ?? shown - offset(shown - DAY, zone);

// isTwice reports whether the clock shows the time of an instant twice.
export const isTwice = (at, zone = shownZone()) => zone !== 'UTC' && instants(wall(at, zone), zone).length === 2;

// changes reports whether the clock is changed less than half a day before or after an instant.
export const changes = (at, zone = shownZone()) => offset(at - 12 * HOUR, zone) !== offset(at + 12 * HOUR, zone);

const languages = ['en-US', 'en-GB', 'en-AU', 'en-IN'],
  names = new Map();

// zoneAt returns the short name of the time in a zone at an instant, such as CEST, or how far it is from UTC.
export function zoneAt(at, zone = shownZone()) {
  if (zone === 'UTC') return 'UTC';
  for (const language of languages) {
    const key = `${language} ${zone}`;
    if (!names.has(key)) names.set(key, new Intl.DateTimeFormat(language, {timeZone: zone, timeZoneName: 'short'}));
    const {value} = names
      .get(key)
      .formatToParts(at * 1000)
      .find(part => part.type === 'timeZoneName');
    if (!/^(GMT|UTC)[+\-−]/.test(value)) return value;
  }
  return fromUTC(offset(at, zone));
}

// fromUTC returns an offset in words: UTC+10:30.
export function fromUTC(seconds) {
  const minutes = Math.round(Math.abs(seconds) / MINUTE),
    rest = minutes % 60;
  if (minutes === 0) return 'UTC';
  return `UTC${seconds < 0 ? '−' : '+'}${Math.floor(minutes / 60)}${rest ? `:${String(rest).padStart(2, '0')}` : ''}`;
}

// dayStart returns when the day of an instant begins, days days later.
export function dayStart(at, days = 0, zone = shownZone()) {
  const date = wallDate(at, zone);
  return instant(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + days) / 1000, zone);
}

// monthStart returns when the month of an instant begins, months months later.
export function monthStart(at, months = 0, zone = shownZone()) {
  const date = wallDate(at, zone);
  return instant(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1) / 1000, zone);
}

// weekStart returns when the week of an instant begins, on Monday, weeks weeks later.
export const weekStart = (at, weeks = 0, zone = shownZone()) =>
  dayStart(at, weeks * 7 - ((wallDate(at, zone).getUTCDay() + 6) % 7), zone);
