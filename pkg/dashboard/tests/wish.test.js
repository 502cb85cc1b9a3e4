// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {readWish} from '../page/wish.js';
import {dayStart, instants, setZone, wallDate, weekStart} from '../page/zones.js';
import {DAY, HOUR} from '../page/lengths.js';

const NOW = Date.UTC(2026, 10, 28, 14, 26) / 1000,
  at = (...parts) => Date.UTC(...parts) / 1000;
const properties = [
  {name: 'aggregates', type: 'list', values: ['fast', 'gpu'], built_in: true},
  {name: 'name', type: 'string', values: ['gpu-01', 'node-01'], built_in: true},
  {name: 'gpu', type: 'string', values: ['a100', 'none'], built_in: false},
  {name: 'model', type: 'string', values: ['big', 'small'], built_in: false},
  {name: 'local', type: 'bool', values: [], built_in: false},
  {name: 'rack', type: 'number', values: [1, 2], built_in: false},
];
const read = text => readWish(text, properties, NOW);

setZone('utc');
afterEach(() => setZone('utc'));

test('a wish in words says how many, which, how long and when', () => {
  const december = {from: at(2026, 11, 1), until: at(2027, 0, 1)},
    gpu = [['=', '$gpu', 'a100']];
  const wishes = {
    '3 gpu=a100 for 2 days next month': {quantity: '3', lasts: '2d', conditions: gpu, ...december},
    'Three GPU hosts for two days next month': {quantity: '3', lasts: '2d', conditions: gpu, ...december},
    '3x a100, 2d, in December': {quantity: '3', lasts: '2d', conditions: gpu, ...december},
    'a host for an hour today': {lasts: '1h', conditions: [], from: at(2026, 10, 28, 14, 30), until: at(2026, 10, 29)},
    '2 hosts for 1 day and 12 hours next week': {quantity: '2', lasts: '1d 12h', conditions: [], from: at(2026, 10, 30), until: at(2026, 11, 7)},
    'rack >= 2 model 4h tomorrow': {lasts: '4h', conditions: [['>=', '$rack', 2], ['in', '$model', 'big', 'small']], from: at(2026, 10, 29), until: at(2026, 10, 30)},
    'local fast 90m': {lasts: '1h 30m', conditions: [['=', '$local', true], ['in', 'fast', '$aggregates']]},
    '1 big host in January': {quantity: '1', conditions: [['=', '$model', 'big']], from: at(2027, 0, 1), until: at(2027, 1, 1)},
    '5 hosts within the next 10 days': {quantity: '5', conditions: [], from: at(2026, 10, 28, 14, 30), until: at(2026, 11, 8, 14, 30)},
    '': {conditions: []},
  };
  for (const [text, wish] of Object.entries(wishes)) assert.deepEqual(read(text), {unread: '', ...wish}, text);
});

test('what is not understood is named, and then nothing is taken', () => {
  for (const [text, unread] of Object.entries({
    '3 quantum hosts for 2 days': 'quantum',
    '2 hosts, colour=red': 'colour=red',
    '3 hosts 4 days 5': '5',
    'hosts for 2 months': 'months',
    '<script>': '<script>',
  }))
    assert.deepEqual([read(text).unread, read(text).lasts], [unread, undefined], text);
});

test('months and weeks are those of the zone that is shown', () => {
  setZone('Asia/Kolkata');
  assert.deepEqual([read('next month').from, read('next week').from], [at(2026, 10, 30, 18, 30), at(2026, 10, 29, 18, 30)]);
});

test('a day is written in many ways', () => {
  const day = (...parts) => ({conditions: [], from: at(...parts), until: at(...parts) + DAY}),
    wishes = {
      '15 December': day(2026, 11, 15),
      '15 Dec': day(2026, 11, 15),
      'on Dec 15th': day(2026, 11, 15),
      'the 15th of december 2027': day(2027, 11, 15),
      '2026-12-15': day(2026, 11, 15),
      'the 20th': day(2026, 11, 20),
      '5 Jan': day(2027, 0, 5),
      '29 Feb': day(2028, 1, 29),
      'next Monday': day(2026, 10, 30),
      'next Saturday': day(2026, 11, 5),
      Sunday: day(2026, 10, 29),
      'before the 20th': {conditions: [], from: at(2026, 10, 28, 14, 30), until: at(2026, 11, 20)},
      '3h before 20 Dec': {conditions: [], lasts: '3h', from: at(2026, 10, 28, 14, 30), until: at(2026, 11, 20)},
      '2 hosts for 3h from Monday to Wednesday': {conditions: [], quantity: '2', lasts: '3h', from: at(2026, 10, 30), until: at(2026, 11, 3)},
      '2 hosts from Monday to Wednesday': {conditions: [], quantity: '2', start: at(2026, 10, 30), end: at(2026, 11, 3)},
      '3 days 15 December': {conditions: [], lasts: '3d', start: at(2026, 11, 15)},
      'a host for 2h tomorrow at 10:00': {conditions: [], lasts: '2h', start: at(2026, 10, 29, 10)},
      'at 9:30 pm on 15 Dec, 2h': {conditions: [], lasts: '2h', start: at(2026, 11, 15, 21, 30)},
      '2h at 10:00': {conditions: [], lasts: '2h', start: at(2026, 10, 29, 10)},
    };
  for (const [text, wish] of Object.entries(wishes)) assert.deepEqual(read(text), {unread: '', ...wish}, text);
});

test('a day that the calendar does not have, or that is past, is not understood', () => {
  for (const text of ['31 February', '2026-13-01', '2020-01-01', 'before today', 'the 32nd', 'today at 9:00', 'from 31 April to 5 May']) assert.notEqual(read(`2 hosts ${text}`).unread, '', text);
});

// Days with times of their own: a change of the clock at midnight, a day that was left out, half hours.
const zonesOfTest = ['UTC', 'Europe/Paris', 'America/Santiago', 'Asia/Kolkata', 'Australia/Lord_Howe', 'Africa/Cairo', 'America/New_York', 'Pacific/Apia', 'Pacific/Chatham'];

function drawnTimes(most, check) {
  let seed = 7;
  const below = n => (seed = (seed * 48271) % 2147483647) % n;
  for (let i = 0; i < most; i++) {
    setZone(zonesOfTest[below(zonesOfTest.length)]);
    const now = Date.UTC(2010 + below(60), below(12), 1 + below(28), below(24), below(60)) / 1000,
      begin = dayStart(now, 2 + below(300));
    check(now, begin, below);
  }
}

const three = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

test('in every zone and year a day that is written is the day that was meant, from its beginning to its end', () => {
  drawnTimes(600, (now, begin) => {
    const wall = wallDate(begin + 12 * HOUR),
      [y, m, d] = [wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate()],
      iso = wall.toISOString().slice(0, 10);
    const next = dayStart(begin + 12 * HOUR, 1);
    for (const text of [`${d} ${three[m]}`, `${three[m]} ${d}, ${y}`, iso]) {
      const {unread, from, until} = readWish(`2 hosts for 1h ${text}`, [], now);
      assert.deepEqual([unread, from, until], ['', begin, next], `${text} at ${now}`);
    }
    const before = readWish(`2 hosts for 1h before ${iso}`, [], now);
    assert.equal(before.until, begin);
    assert.ok(before.from >= now && before.from - now <= 15 * 60);
  });
});

test('in every zone and year a day of the week is one of the next seven days, and next is that of the next week', () => {
  const names = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
  drawnTimes(400, (now, _, below) => {
    const number = below(7),
      coming = readWish(names[number], [], now).from,
      next = readWish(`next ${names[number]}`, [], now).from;
    const days = [1, 2, 3, 4, 5, 6, 7].map(ahead => dayStart(now, ahead));
    assert.ok(days.includes(coming));
    assert.equal((wallDate(coming + 6 * HOUR).getUTCDay() + 6) % 7, number);
    assert.equal(next, dayStart(weekStart(now, 1) + 6 * HOUR, number));
  });
});

test('in every zone and year a time of the clock is shown by the clock then, unless that day leaves it out', () => {
  drawnTimes(600, (now, begin, below) => {
    const wall = wallDate(begin + 12 * HOUR),
      [hour, minute] = [below(24), below(60)],
      clock = `${hour}:${String(minute).padStart(2, '0')}`,
      {start, unread} = readWish(`1h ${wall.toISOString().slice(0, 10)} at ${clock}`, [], now);
    assert.equal(unread, '');
    const shown = Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate(), hour, minute) / 1000;
    if (instants(shown).length > 0) assert.equal(start, instants(shown)[0]);
    else assert.ok(Math.abs(start - begin) < 30 * HOUR);
  });
});
