// SPDX-License-Identifier: Apache-2.0
// The times that people search by their names, in the zone that is shown.
import {dayIn} from './dates.js';
import {DAY, MINUTE} from './lengths.js';
import {readClock} from './timevalue.js';
import {dayStart, instant, monthStart, wall, wallDate, weekStart} from './zones.js';

const months = ['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september', 'october', 'november', 'december'];

// soon is the next quarter of an hour, when a search can begin.
const soon = at => Math.ceil(at / (15 * MINUTE)) * 15 * MINUTE;

// periods returns the times that the form proposes to search: {name, from, until}.
export const periods = at => [
  {name: 'thisWeek', from: soon(at), until: weekStart(at, 1)},
  {name: 'nextWeek', from: weekStart(at, 1), until: weekStart(at, 2)},
  {name: 'nextMonth', from: monthStart(at, 1), until: monthStart(at, 2)},
];

const named = [
  [/\bthis week\b/i, at => [soon(at), weekStart(at, 1)]],
  [/\bnext week\b/i, at => [weekStart(at, 1), weekStart(at, 2)]],
  [/\bthis month\b/i, at => [soon(at), monthStart(at, 1)]],
  [/\bnext month\b/i, at => [monthStart(at, 1), monthStart(at, 2)]],
  [/\b(?:in |within )?the next (\d{1,3}) days\b/i, (at, [, days]) => [soon(at), soon(at) + days * DAY]],
  ...months.map((name, i) => [new RegExp(`\\bin ${name}\\b`, 'i'), at => monthOf(at, i)]),
];

// monthOf returns the month with a number: the present one, or the next of that name.
function monthOf(at, number) {
  const ahead = (number - wallDate(at).getUTCMonth() + 12) % 12;
  return [Math.max(soon(at), monthStart(at, ahead)), monthStart(at, ahead + 1)];
}

const clock = '(\\d{1,2}(?::\\d\\d)?\\s*(?:[ap]\\.?m\\.?)?)(?=[\\s,]|$)',
  atClock = new RegExp(`(?:^|\\s)at\\s+${clock}`, 'i'),
  bareClock = /(?:^|\s)(\d{1,2}:\d\d\s*(?:[ap]\.?m\.?)?)(?=[\s,]|$)/i;

// periodIn finds a time in a text: {from, until, rest} for a time to search, {start, rest} for a start to the minute, and
// {from, until, whole, rest} for one from a day to another. `rest` is the text around it. It returns {unread} for what
// is no time of the future, and null if there is no time in the text.
export function periodIn(text, at) {
  return between(text, at) || before(text, at) || namedIn(text, at) || oneDay(text, at) || clockOnly(text, at);
}

const without = (text, found) => text.replace(found, ' ');

// ahead returns a time to search from now on.
const ahead = (from, until, at, text, found, more = {}) => {
  const first = Math.max(from, soon(at));
  return until > first ? {from: first, until, rest: without(text, found), ...more} : {unread: found.trim()};
};

// dayAfter returns the day that a text begins with after a word, such as from or before.
function dayAfter(text, word, at) {
  const match = text.match(word),
    start = match && match.index + match[0].length,
    day = match && dayIn(text.slice(start), at);
  return day && day.index === 0 ? {...day, from: match.index, to: start + day.found.length} : null;
}

// between reads from one day to another. The second one is in it.
function between(text, at) {
  const first = dayAfter(text, /\bfrom\s+/i, at);
  if (!first) return null;
  const rest = text.slice(first.to),
    second = dayAfter(rest, /^\s*(?:to|until|till|through|–|-)\s*/i, first.begin ?? at);
  if (!second) return null;
  const found = text.slice(first.from, first.to + second.to);
  if (first.begin === null || second.begin === null) return {unread: found};
  return ahead(first.begin, dayStart(second.begin, 1), at, text, found, {whole: true});
}

// before reads a time that ends when a day begins.
function before(text, at) {
  const day = dayAfter(text, /\bbefore\s+/i, at);
  if (!day) return null;
  const found = text.slice(day.from, day.to);
  return day.begin === null ? {unread: found} : ahead(soon(at), day.begin, at, text, found);
}

// oneDay reads a day, or a time of the clock on it.
function oneDay(text, at) {
  const day = dayIn(text, at);
  if (!day) return null;
  if (day.begin === null) return {unread: day.found};
  const rest = without(text, day.found),
    time = rest.match(atClock) || rest.match(bareClock);
  if (!time) return ahead(day.begin, dayStart(day.begin, 1), at, text, day.found, {oneDay: true});
  return starting(day.begin, time, rest, at, `${day.found}${time[0]}`);
}

// clockOnly reads a time of the clock: that of today, or of tomorrow if it has passed.
function clockOnly(text, at) {
  const time = text.match(atClock);
  if (!time) return null;
  const first = starting(dayStart(at), time, text, at, time[0]);
  return first.unread ? starting(dayStart(at, 1), time, text, at, time[0]) : first;
}

function starting(begin, time, rest, at, found) {
  const start = instant(wall(begin) - (wall(begin) % DAY) + readClock(time[1]));
  return start > at ? {start, rest: without(rest, time[0])} : {unread: found.trim()};
}

// namedIn reads the name of a time, such as next week.
function namedIn(text, at) {
  for (const [pattern, of] of named) {
    const match = text.match(pattern);
    if (!match) continue;
    const [from, until] = of(at, match);
    return {from, until, rest: text.replace(match[0], ' ')};
  }
  return null;
}
