// SPDX-License-Identifier: Apache-2.0
// Lengths of time: as the page writes them, and as people write them.
import {t} from './texts.js';

export const MINUTE = 60,
  HOUR = 3600,
  DAY = 24 * HOUR,
  WEEK = 7 * DAY;

const LONGEST = 3000 * 366 * DAY;

// length returns a duration with all of its seconds: 1d 12h.
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
    if (amount > 0) parts.push(amount + unit);
    rest -= amount * size;
  }
  return parts.join(' ') || '0m';
}

const units = {
  w: /^(w|wks?|weeks?)$/,
  d: /^(d|days?)$/,
  h: /^(h|hrs?|hours?)$/,
  m: /^(m|mins?|minutes?)$/,
  s: /^(s|secs?|seconds?)$/,
};
const uneven = /^(mo|months?|y|yrs?|years?)$/; // these have no fixed length
const size = {w: WEEK, d: DAY, h: HOUR, m: MINUTE, s: 1};
const smaller = {w: 'd', d: 'h', h: 'm', m: 's'};

const token = /\d+:[0-5]?\d(?::[0-5]?\d)?(?![\d:])|\d*\.\d+|\d+|[a-z]+/g;

// readDuration returns the seconds of a duration as people write it, NaN if it is unclear; `problem` then says why, and
// `said` says what was understood where the text does not say it itself. A number alone counts minutes, and after a
// unit it counts the next smaller one: 1h30.
export function readDuration(text) {
  const plain = text.trim().toLowerCase();
  if (/[a-z\d]\s*[-–]\s*\d|^[-–−]/.test(plain)) return unclear('durationWrong');
  if (/\d,\d{3}(?!\d)/.test(plain)) return unclear('durationComma');
  const even = plain
    .replace(/(\d),(\d)/g, '$1.$2')
    .replace(/[\s,;+]+/g, ' ')
    .replace(/\b(a|an|one) (?=[a-z])/g, '1 ');
  const parts = even.match(token) || [];
  if (parts.length === 0 || parts.join('') !== even.replace(/ /g, '')) return unclear('durationWrong');
  const {total, problem} = sum(parts.filter(part => part !== 'and'));
  if (problem) return unclear(problem);
  const seconds = Math.round(total);
  if (seconds <= 0) return unclear('durationZero');
  if (!(seconds < LONGEST)) return unclear('durationEndless');
  const written = length(seconds);
  return {seconds, said: plain.replace(/\s/g, '') === written.replace(/\s/g, '') ? '' : t('durationRead', {length: written}), problem: ''};
}

const unclear = problem => ({seconds: NaN, said: '', problem: t(problem)});

// sum adds numbers with their units.
function sum(parts) {
  let total = 0,
    last = '';
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    if (part.includes(':')) {
      total += clock(part);
      last = 's';
      continue;
    }
    if (!/\d/.test(part)) return {problem: uneven.test(part) ? 'durationMonth' : 'durationWrong'};
    const following = parts[i + 1],
      named = following && !/\d/.test(following);
    if (named && uneven.test(following)) return {problem: 'durationMonth'};
    const unit = named ? unitOf(following) : last ? smaller[last] : parts.length === 1 && /^\d+$/.test(part) ? 'm' : undefined;
    if (!unit) return {problem: 'durationWrong'};
    total += Number(part) * size[unit];
    last = unit;
    if (named) i++;
  }
  return {total};
}

const unitOf = word => Object.keys(units).find(unit => units[unit].test(word));

// clock returns the seconds of hours and minutes, with seconds if there are any: 48:00.
function clock(part) {
  const [hours, minutes, seconds = 0] = part.split(':').map(Number);
  return hours * HOUR + minutes * MINUTE + seconds;
}

// readLength returns the seconds of a duration; NaN if it is none.
export const readLength = text => readDuration(text).seconds;
