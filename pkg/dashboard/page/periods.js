// SPDX-License-Identifier: Apache-2.0
// The times that people search by their names, in the zone that is shown.
import {DAY, MINUTE} from './lengths.js';
import {dayStart, monthStart, wallDate, weekStart} from './zones.js';

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
  [/\btoday\b/i, at => [soon(at), dayStart(at, 1)]],
  [/\btomorrow\b/i, at => [dayStart(at, 1), dayStart(at, 2)]],
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

// periodIn finds the name of a time in a text. It returns {from, until, rest} with the text around it; null if there is
// none.
export function periodIn(text, at) {
  for (const [pattern, of] of named) {
    const match = text.match(pattern);
    if (!match) continue;
    const [from, until] = of(at, match);
    return {from, until, rest: text.replace(match[0], ' ')};
  }
  return null;
}
