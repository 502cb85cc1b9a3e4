// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {DAY, HOUR, MINUTE, WEEK, length, readDuration, readLength} from '../page/lengths.js';

test('a duration is read as people write it', () => {
  const written = {
    '90m': 90 * MINUTE,
    '2 hours': 2 * HOUR,
    '1 Hour': HOUR,
    '1.5h': 90 * MINUTE,
    '1,5 h': 90 * MINUTE,
    '.5h': 30 * MINUTE,
    '2 weeks': 2 * WEEK,
    '1d12h': DAY + 12 * HOUR,
    '1 day 12 hours': DAY + 12 * HOUR,
    '1 day, 12 hours and 5 min': DAY + 12 * HOUR + 5 * MINUTE,
    'a day': DAY,
    'an hour': HOUR,
    '30 secs': 30,
  };
  for (const [text, seconds] of Object.entries(written)) assert.equal(readLength(text), seconds, text);
});

test('a number alone counts minutes, and after a unit the next smaller one', () => {
  assert.deepEqual(['90', '1h30', '2d12', '1 w 1'].map(readLength), [90 * MINUTE, 90 * MINUTE, 2 * DAY + 12 * HOUR, 8 * DAY]);
});

test('a colon stands between hours, minutes and seconds', () => {
  assert.deepEqual(['48:00', '1:30', '0:00:30', '1d 12:00'].map(readLength), [48 * HOUR, 90 * MINUTE, 30, 36 * HOUR]);
});

test('the page says what it understood, unless that stands there already', () => {
  assert.equal(readDuration('90').said, 'That is 1h 30m.');
  assert.equal(readDuration('2 weeks').said, 'That is 14d.');
  assert.equal(readDuration('1d 12h').said, '');
  assert.equal(readDuration('1d12h').said, '');
});

test('what has two meanings or none is explained, each in its way', () => {
  for (const [text, why] of Object.entries({
    '1,500 h': /comma/,
    '1 month': /30 days/,
    '2y': /30 days/,
    0: /longer than nothing/,
    '0.1s': /longer than nothing/,
    '99999999999999d': /10000/,
    '1.5': /1:30/,
    '-3h': /1:30/,
    '3-4h': /1:30/,
    '1h-2h': /1:30/,
    '1:75': /1:30/,
    '2 moons': /1:30/,
    'an hour and a half': /1:30/,
    '5 10': /1:30/,
    '': /1:30/,
    NaN: /1:30/,
    Infinity: /1:30/,
    '1e9h': /1:30/,
  })) {
    const {seconds, said, problem} = readDuration(text);
    assert.ok(Number.isNaN(seconds), text);
    assert.equal(said, '');
    assert.match(problem, why, text);
  }
});

test('a length has all of its seconds, and is read as the same length', () => {
  assert.equal(length(DAY + 2 * HOUR + 3 * MINUTE + 4), '1d 2h 3m 4s');
  assert.equal(length(172778), '1d 23h 59m 38s');
  assert.equal(length(0), '0m');
  for (let seconds = 1; seconds < 40 * DAY; seconds = Math.ceil(seconds * 1.01)) assert.equal(readLength(length(seconds)), seconds);
});
