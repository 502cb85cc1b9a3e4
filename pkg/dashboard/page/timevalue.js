// SPDX-License-Identifier: Apache-2.0
// What a field for a time has: {at, text}. `at` is the instant, exact to the second and to the half of the hour that
// comes twice, and `text` is what the user typed, null as long as the field was not edited. An edited one also has the
// `zone` in which the text was read, `moved` if the clock leaves the time out and a later one was taken, `left` once the
// user has gone on, and `second` if the time before the edit was in the second half of the hour that comes twice.
import {t} from './texts.js';
import {DAY, HOUR, MINUTE} from './lengths.js';
import {LAST, fromUTC, instant, instants, isTwice, offset, shownZone, wall, within, zoneAt} from './zones.js';

// exact returns the value of a field that shows an instant and keeps it until it is edited.
export const exact = at => ({at, text: null});

// isUnread reports whether the value has no instant: its text is no time.
export const isUnread = ({at}) => Number.isNaN(at);

const two = n => String(n).padStart(2, '0');

// dateText returns the date of an instant as <input type="date"> has it.
export const dateText = (at, zone = shownZone()) => new Date(wall(at, zone) * 1000).toISOString().slice(0, 10);

// clockText returns the time of an instant in 24 hours, with seconds if there are some.
export function clockText(at, zone = shownZone()) {
  const sinceMidnight = Math.floor(wall(at, zone)) % DAY,
    rest = sinceMidnight % MINUTE;
  return `${two(Math.floor(sinceMidnight / HOUR))}:${two(Math.floor((sinceMidnight % HOUR) / MINUTE))}${rest ? `:${two(rest)}` : ''}`;
}

// shownField returns the text of a value: as it was typed while the zone is the same, else the instant in the zone.
export function shownField({at, text, zone: read}, zone = shownZone()) {
  if (text !== null && (read === zone || Number.isNaN(at))) return text;
  if (Number.isNaN(at)) return '';
  const valid = within(at);
  return `${dateText(valid, zone)}T${clockText(valid, zone)}`;
}

// readClock returns the seconds since midnight of a time as people write it: 9, 930, 9:30, 9h30, 21:15:30, 9:30 pm; NaN
// if it is none. 24:00 is the end of the day.
export function readClock(text) {
  const found = text
    .trim()
    .toLowerCase()
    .match(/^(\d{1,2})(?:(?:\s*[:.h]\s*)?(\d\d)(?:[:.]?(\d\d))?)?(?:h|\s*([ap])\.?m\.?)?$/);
  if (!found) return NaN;
  const [minute, second] = [Number(found[2] || 0), Number(found[3] || 0)];
  let hour = Number(found[1]);
  if (found[4]) {
    if (hour < 1 || hour > 12) return NaN;
    hour = (hour % 12) + (found[4] === 'p' ? 12 : 0);
  }
  const sum = hour * HOUR + minute * MINUTE + second;
  return minute < 60 && second < 60 && sum <= DAY ? sum : NaN;
}

// halves divides the text of a field into its day and its time of day.
export function halves(text) {
  const at = text.indexOf('T');
  return at < 0 ? ['', text] : [text.slice(0, at), text.slice(at + 1)];
}

// problemOf says why the text of a value is no time; nothing for one that is.
export function problemOf(value) {
  if (!isUnread(value)) return '';
  const [day, clock] = halves(value.text || '');
  return t(day === '' ? 'dayMissing' : Number.isNaN(readClock(clock)) ? 'clockWrong' : 'yearOutside');
}

// shownTime returns the seconds that a text means on the clock on the wall; NaN if it is no time.
function shownTime(text) {
  const [, date, clock] = text.match(/^(\d{4,6}-\d\d-\d\d)T(.*)$/) || [];
  const midnight = date ? Date.parse(`${date}T00:00Z`) / 1000 : NaN,
    sum = midnight + readClock(clock || '');
  return sum >= 0 && sum <= LAST && new Date(midnight * 1000).toISOString().startsWith(date) ? sum : NaN;
}

// edited returns the value after the user typed a text. Of two instants it takes the one in the half of the hour in which
// the value was when the edit began, else the first.
export function edited(value, text, zone = shownZone()) {
  if (text === shownField(value, zone)) return value;
  const second = value.left === false ? value.second : isSecond(value.at, zone),
    shown = shownTime(text),
    next = {text, zone, moved: false, left: false, second};
  if (Number.isNaN(shown)) return {...next, at: NaN};
  const meant = instants(shown, zone);
  return {...next, at: (second && meant[1]) || instant(shown, zone), moved: meant.length === 0};
}

// isSecond reports whether the clock has shown the time of an instant once before.
function isSecond(at, zone) {
  if (!(at >= 0 && at <= LAST) || !isTwice(at, zone)) return false;
  return at - instants(wall(at, zone), zone)[0] > 1;
}

// leave returns the value after the user has gone on from the field: a text that was understood is shown in full.
export const leave = value => (value.text === null ? value : {...value, text: isUnread(value) ? value.text : null, left: true});

// twice returns the two instants that a text means, each with the name of its time, such as CEST and CET; null for a
// text that means one.
export function twice(text, zone = shownZone()) {
  const shown = shownTime(text);
  return Number.isNaN(shown) ? null : both(instants(shown, zone), zone);
}

// choices returns the same for a value.
export function choices({at}, zone = shownZone()) {
  return at >= 0 && at <= LAST ? both(instants(wall(at, zone), zone), zone) : null;
}

function both(meant, zone) {
  if (meant.length < 2) return null;
  const names = meant.map(at => zoneAt(at, zone)),
    same = names[0] === names[1];
  return meant.map((at, i) => ({at, name: same ? fromUTC(offset(at, zone)) : names[i]}));
}

// chosen returns the value after the user chose one of its two instants.
export const chosen = (value, at) => ({...value, at, second: isSecond(at, shownZone())});
