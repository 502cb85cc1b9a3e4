// SPDX-License-Identifier: Apache-2.0
// Days as people write them, such as 15 December, next Monday or the 20th, in the zone that is shown.
import {dayStart, instant, wallDate, weekStart} from './zones.js';

const months = ['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september', 'october', 'november', 'december'],
  weekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];

// shortOf writes a pattern for a name or its beginning: Dec, Sept or December.
const shortOf = name => `${name.slice(0, 3)}(?:${name[3] || ''}${name[3] ? '|' : ''}${name.slice(3)})?`;
const month = `(${months.map(shortOf).join('|')})\\.?`,
  date = '(\\d{1,2})(?:st|nd|rd|th)?',
  year = '(?:,?\\s+(\\d{4}))?';

const monthOf = text => months.findIndex(name => name.startsWith(text.toLowerCase().slice(0, 3)));
const today = at => dayStart(at);

// kinds are the ways to write a day: a pattern, and the beginning of the day it means at a time; null if there is no
// such day.
const kinds = [
  ['(\\d{4})-(\\d\\d)-(\\d\\d)', (_, [y, m, d]) => dayOf(Number(y), m - 1, Number(d))],
  [`(?:the\\s+)?${date}\\s+(?:of\\s+)?${month}${year}`, (at, [d, m, y]) => dated(at, Number(d), monthOf(m), y)],
  [`${month}\\s+${date}${year}(?!\\d|:)`, (at, [m, d, y]) => dated(at, Number(d), monthOf(m), y)],
  ['the\\s+(\\d{1,2})(?:st|nd|rd|th)', (at, [d]) => numbered(at, Number(d))],
  ['(?:(next|this)\\s+)?(' + weekdays.map(shortOf).join('|') + ')', (at, [which, name]) => weekday(at, (which || '').toLowerCase(), name)],
  ['today', at => today(at)],
  ['tomorrow', at => dayStart(at, 1)],
];

// dayOf returns when a day of the calendar begins; null if there is none.
function dayOf(y, m, d) {
  const wall = new Date(Date.UTC(y, m, d));
  return d > 0 && wall.getUTCMonth() === m && wall.getUTCFullYear() === y ? instant(wall / 1000) : null;
}

// dated returns a day of a month: without a year, the next one from today on.
function dated(at, d, m, y) {
  if (y) return dayOf(Number(y), m, d);
  const first = wallDate(at).getUTCFullYear();
  return firstOf(8, ahead => dayOf(first + ahead, m, d), at); // of 29 February, a leap year
}

// numbered returns the next day with a number in its month.
function numbered(at, d) {
  const from = wallDate(at);
  return firstOf(12, ahead => dayOf(from.getUTCFullYear() + Math.floor((from.getUTCMonth() + ahead) / 12), (from.getUTCMonth() + ahead) % 12, d), at);
}

function firstOf(most, make, at) {
  for (let ahead = 0; ahead <= most; ahead++) {
    const begin = make(ahead);
    if (begin !== null && begin >= today(at)) return begin;
  }
  return null;
}

// weekday returns the first day of a name after today; with `next` that of the week after this one, as in next week.
function weekday(at, which, name) {
  const number = weekdays.findIndex(one => one.startsWith(name.toLowerCase().slice(0, 3)));
  if (which === 'next') return dayStart(weekStart(at, 1), number);
  const todays = (wallDate(at).getUTCDay() + 6) % 7;
  return dayStart(at, which === 'this' && number === todays ? 0 : (number - todays + 6) % 7 + 1);
}

const bounded = pattern => new RegExp(`(?<![\\w-])${pattern}(?![\\w-])`, 'i');
const patterns = kinds.map(([pattern, of]) => ({pattern: bounded(pattern), of}));

// dayIn finds the first day in a text. It returns {begin, found, index}; null if there is none. The begin is null for a
// day that the calendar does not have.
export function dayIn(text, at) {
  const all = patterns.map(({pattern, of}) => ({match: text.match(pattern), of})).filter(one => one.match);
  if (all.length === 0) return null;
  const {match, of} = all.reduce((first, one) => (one.match.index < first.match.index ? one : first));
  return {begin: of(at, match.slice(1)), found: match[0], index: match.index};
}
