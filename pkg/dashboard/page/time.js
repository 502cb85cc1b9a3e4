// SPDX-License-Identifier: Apache-2.0
// Times in words. The page counts in seconds since 1970; zones.js knows which zone is shown.
import {t} from './texts.js';
import {DAY, HOUR, MINUTE, length} from './lengths.js';
import {dayStart, isTime, isTwice, offset, shownZone, wall, wallDate, within, zoneAt} from './zones.js';

export {DAY, HOUR, MINUTE, WEEK, length, readLength} from './lengths.js';
export {isUTC, setUTC} from './zones.js';

// The service's clock: its time at a moment of this machine's clock, and how many times as fast it runs.
const clock = {here: 0, there: 0, speed: 1};

// follow makes now follow the service's clock; a time that is not a number changes nothing.
export function follow(there, speed) {
  if (!Number.isNaN(there)) Object.assign(clock, {here: Date.now() / 1000, there, speed});
}

export const now = () => clock.there + (Date.now() / 1000 - clock.here) * clock.speed;

// clamped returns a time that the page can show: the nearest one, and the present for what is no time. `room` is how
// much of the range must follow.
export const clamped = (at, room = 0) => within(isTime(at) ? at : now(), room);

// redrawEvery is how many milliseconds pass between two pictures of the same data.
export const redrawEvery = () => Math.max(500, 20000 / clock.speed);

// seconds reads a time of the API, which may have fractions and an offset.
export const seconds = text => Date.parse(text) / 1000;

// iso writes a time for the API, to the second. What is no time becomes an empty text, which the API refuses.
export const iso = at => (isTime(at) ? new Date(Math.round(within(at)) * 1000).toISOString().replace('.000Z', 'Z') : '');

const formats = new Map();

// format returns a time in words; options are those of Intl.DateTimeFormat.
export function format(at, options, zone = shownZone()) {
  if (!isTime(at)) return t('unknown');
  const key = JSON.stringify(options) + zone;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, {...options, timeZone: zone}));
  return formats.get(key).format(within(at) * 1000);
}

const clockTime = {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'},
  date = {weekday: 'short', day: 'numeric', month: 'short'};

const yearOf = at => wallDate(within(at)).getUTCFullYear();

// otherYear reports whether one of the times lies outside the present year, so that the year must be named.
const otherYear = (...times) => times.some(at => yearOf(at) !== yearOf(now()));

const inWords = (at, year, more = {}) => format(at, {...date, ...(year && {year: 'numeric'}), ...clockTime, ...more});

// named returns a text with the name of the zone's time where the text alone means two instants.
const named = (at, text) => (isTwice(within(at)) ? `${text} ${zoneNameAt(at)}` : text);

export const when = at => named(at, inWords(at, otherYear(at)));
// whenInZone always names the zone's time, for a text that others read in another zone.
export const whenInZone = at => `${inWords(at, otherYear(at))} ${zoneNameAt(at)}`;
export const whenExactly = at => named(at, format(at, {dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23'}));
export const timeOnly = (at, zone) => format(at, clockTime, zone);
export const dayOnly = at => format(at, {...date, ...(otherYear(at) && {year: 'numeric'})});

// zoneNameAt returns the short name of the time at an instant: CEST, or UTC+10:30.
export const zoneNameAt = (at, zone = shownZone()) => zoneAt(within(at), zone);

// span returns two times in words. Where the clock is changed between them, or one of them comes twice, it names the
// time of the zone too.
export function span(from, to) {
  const [start, end] = [within(from), within(to)],
    year = otherYear(start, end),
    sameDay = Math.floor(wall(start) / DAY) === Math.floor(wall(end) / DAY);
  const first = inWords(from, year),
    last = sameDay ? timeOnly(to) : inWords(to, year);
  if (!isTwice(start) && !isTwice(end) && (offset(start) === offset(end) || end - start > 2 * DAY)) return `${first} – ${last}`;
  return offset(start) === offset(end)
    ? `${first} – ${last} ${zoneNameAt(end)}`
    : `${first} ${zoneNameAt(start)} – ${last} ${zoneNameAt(end)}`;
}

export const zoneName = shownZone;

// readable returns a message of the API with its times as the page shows them, to the second where they have seconds.
// If one of them needs its year, all have it.
export function readable(text) {
  const pattern = /\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)/gi,
    timeOf = found => seconds(found.replace(/[.,](\d{0,3})\d*/, '.$1').replace(/([+-]\d\d)(\d\d)$/, '$1:$2'));
  const year = otherYear(...(text.match(pattern) || []).map(timeOf).filter(at => !Number.isNaN(at)));
  return text.replace(pattern, found => {
    const at = timeOf(found);
    if (Number.isNaN(at)) return found;
    return named(at, inWords(at, year, Math.floor(at) % MINUTE ? {second: '2-digit'} : {}));
  });
}

// sentence returns a message of the API as readable does, with a capital where it begins with a word.
export const sentence = text => readable(text).replace(/^\p{Ll}+(?= )/u, word => word[0].toUpperCase() + word.slice(1));

// startOfDay returns midnight before a time, days days later.
export const startOfDay = (at, days = 0) => dayStart(clamped(at), days);

// ago returns how far a time lies from now: in 3h, 2d ago.
export function ago(at) {
  const distance = at - now();
  return Math.abs(distance) < 30
    ? t('now')
    : distance > 0
      ? t('in', {length: length(rounded(distance))})
      : t('ago', {length: length(rounded(-distance))});
}

// rounded returns a distance to the hour, the minute or the second, as far as it is worth reading.
function rounded(distance) {
  const unit = distance > DAY ? HOUR : distance > MINUTE ? MINUTE : 1;
  return Math.round(distance / unit) * unit;
}
