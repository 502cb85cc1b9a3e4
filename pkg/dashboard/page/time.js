// SPDX-License-Identifier: Apache-2.0
// Times. The page counts in seconds since 1970 and shows local time or UTC.
import {t} from './texts.js';

export const MINUTE = 60,
  HOUR = 3600,
  DAY = 24 * HOUR,
  WEEK = 7 * DAY;

let utc = localStorage.getItem('zone') === 'utc';

export const isUTC = () => utc;

export function setUTC(value) {
  utc = value;
  localStorage.setItem('zone', utc ? 'utc' : 'local');
}

// The service's clock: its time at a moment of this machine's clock, and how many times as fast it runs.
const clock = {here: 0, there: 0, speed: 1};

// follow makes now follow the service's clock; a time that is not a number changes nothing.
export function follow(there, speed) {
  if (!Number.isNaN(there)) Object.assign(clock, {here: Date.now() / 1000, there, speed});
}

export const now = () => clock.there + (Date.now() / 1000 - clock.here) * clock.speed;

// redrawEvery is how many milliseconds pass between two pictures of the same data.
export const redrawEvery = () => Math.max(500, 20000 / clock.speed);
export const seconds = text => Date.parse(text) / 1000;
export const iso = at => new Date(Math.round(at) * 1000).toISOString().replace('.000Z', 'Z');

const formats = new Map();

// format returns a time in words; options are those of Intl.DateTimeFormat.
export function format(at, options) {
  const key = JSON.stringify(options) + utc;
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, {...options, timeZone: utc ? 'UTC' : undefined}));
  return formats.get(key).format(at * 1000);
}

const clockTime = {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'};
export const when = at => format(at, {weekday: 'short', day: 'numeric', month: 'short', ...clockTime});
export const whenExactly = at => format(at, {dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23'});
export const timeOnly = at => format(at, clockTime);
export const dayOnly = at => format(at, {weekday: 'short', day: 'numeric', month: 'short'});
export const span = (start, end) =>
  dayOnly(start) === dayOnly(end) ? `${when(start)} – ${timeOnly(end)}` : `${when(start)} – ${when(end)}`;
export const zoneName = () => (utc ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone);

// readable returns a message of the API with its times as the page shows them.
export const readable = text => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, time => when(Date.parse(time) / 1000));

// length returns a duration as people write it: 1d 12h.
export function length(total) {
  const parts = [];
  let rest = Math.round(total);
  for (const [unit, size] of [
    ['d', DAY],
    ['h', HOUR],
    ['m', MINUTE],
    ['s', 1],
  ]) {
    const amount = Math.floor(rest / size);
    if (amount > 0 && (unit !== 's' || parts.length === 0)) parts.push(amount + unit);
    rest -= amount * size;
  }
  return parts.slice(0, 3).join(' ') || '0m';
}

// readLength returns the seconds of a duration such as 1d12h or 90m; NaN if it is none.
export function readLength(text) {
  const compact = text.replace(/\s+/g, '').toLowerCase();
  if (!/^(\d+(\.\d+)?[wdhms])+$/.test(compact)) return NaN;
  const size = {w: WEEK, d: DAY, h: HOUR, m: MINUTE, s: 1};
  return Math.round([...compact.matchAll(/(\d+(?:\.\d+)?)([wdhms])/g)].reduce((sum, [, n, unit]) => sum + Number(n) * size[unit], 0));
}

const two = n => String(n).padStart(2, '0');

// field returns a time for <input type="datetime-local">; readField reads one.
export function field(at) {
  const d = new Date(at * 1000);
  return utc
    ? d.toISOString().slice(0, 16)
    : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`;
}
export const readField = text => Date.parse(utc ? text + 'Z' : text) / 1000;

// startOfDay returns midnight before a time, days days later.
export function startOfDay(at, days = 0) {
  const d = new Date(at * 1000);
  if (utc) return Date.UTC(d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate() + days) / 1000;
  return new Date(d.getFullYear(), d.getMonth(), d.getDate() + days).getTime() / 1000;
}

function startOfMonth(at, months = 0) {
  const d = new Date(at * 1000);
  if (utc) return Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + months, 1) / 1000;
  return new Date(d.getFullYear(), d.getMonth() + months, 1).getTime() / 1000;
}

const steps = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, WEEK];

// stepFor returns the distance of lines that are at least `room` pixels apart; 0 means months.
export const stepFor = (scale, room) => steps.find(step => step * scale >= room) || 0;

// ticks returns the times of the lines in view, and which of them begin a day (or a month).
export function ticks(start, end, step) {
  const list = [];
  if (step === 0) {
    for (let at = startOfMonth(start); at < end; at = startOfMonth(at, 1)) list.push({at, strong: true});
    return list;
  }
  if (step >= DAY) {
    const days = step / DAY;
    let at = startOfDay(start);
    if (days === 7) at = startOfDay(at, -((new Date(at * 1000).getDay() + 6) % 7));
    else at = startOfDay(at, -(Math.floor((at + HOUR * 12) / DAY) % days));
    for (; at < end; at = startOfDay(at + HOUR, days)) list.push({at, strong: true});
    return list;
  }
  for (let day = startOfDay(start); day < end; day = startOfDay(day + HOUR, 1)) {
    const next = startOfDay(day + HOUR, 1);
    for (let at = day; at < next; at += step) if (at + step >= start && at < end) list.push({at, strong: at === day});
  }
  return list;
}

// tickText returns the text at a line.
export function tickText(at, step) {
  if (step === 0) return format(at, {month: 'short'});
  if (step >= DAY) return format(at, {day: 'numeric', month: 'short'});
  return timeOnly(at);
}

export const bandText = (at, step) =>
  step === 0
    ? format(at, {year: 'numeric'})
    : step >= DAY
      ? format(at, {month: 'long', year: 'numeric'})
      : format(at, {weekday: 'short', day: 'numeric', month: 'short'});

// bandStart returns where the band above a line begins: its day, month or year.
export function bandStart(at, step) {
  if (step === 0) return startOfMonth(at, -(utc ? new Date(at * 1000).getUTCMonth() : new Date(at * 1000).getMonth()));
  return step >= DAY ? startOfMonth(at) : startOfDay(at);
}

export const bandNext = (at, step) => (step === 0 ? startOfMonth(at, 12) : step >= DAY ? startOfMonth(at, 1) : startOfDay(at + HOUR, 1));

// ago returns how far a time lies from now: in 3h, 2d ago.
export function ago(at) {
  const distance = at - now();
  return Math.abs(distance) < 30
    ? t('now')
    : distance > 0
      ? t('in', {length: length(rounded(distance))})
      : t('ago', {length: length(rounded(-distance))});
}

const rounded = distance =>
  distance > DAY ? Math.round(distance / HOUR) * HOUR : distance > HOUR ? Math.round(distance / MINUTE) * MINUTE : distance;
