// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, beforeEach, test} from 'node:test';
import {bands, secondText, snapped, stepFor, tickText, ticks, weekends} from '../page/axis.js';
import {DAY, HOUR, MINUTE, WEEK, seconds, timeOnly} from '../page/time.js';
import {dayStart, secondChoice, secondZone, setSecondZone, setZone, wallDate, weekStart} from '../page/zones.js';

beforeEach(() => setZone('Europe/Paris'));
afterEach(() => {
  setZone('local');
  setSecondZone('');
});

// linesOf returns the texts of the lines of the day after a time.
function linesOf(time, step) {
  const day = dayStart(seconds(time)),
    next = dayStart(day, 1);
  return ticks(day, next, step)
    .filter(({at}) => at >= day)
    .map(({at}) => timeOnly(at));
}

const usual = ['00:00', '03:00', '06:00', '09:00', '12:00', '15:00', '18:00', '21:00'];

test('the lines of a day of 23, 25, 24.5 or 23.5 hours are at the usual times of the clock', () => {
  for (const [zone, ...days] of [
    ['Europe/Paris', '2027-03-28T12:00:00Z', '2027-10-31T12:00:00Z', '2027-07-01T12:00:00Z'],
    ['Australia/Lord_Howe', '2027-04-03T20:00:00Z', '2027-10-02T20:00:00Z'],
    ['America/Santiago', '2027-04-03T16:00:00Z'],
    ['Asia/Kolkata', '2027-07-01T12:00:00Z'],
    ['utc', '2027-10-31T12:00:00Z'],
  ]) {
    setZone(zone);
    for (const day of days) assert.deepEqual(linesOf(day, 3 * HOUR), usual, `${zone} ${day}`);
  }
});

test('a day that begins at one o’clock has its line there', () => {
  setZone('America/Santiago');
  assert.deepEqual(linesOf('2027-09-05T16:00:00Z', 3 * HOUR), ['01:00', ...usual.slice(1)]);
});

test('an hour that is left out has no line, and one that comes twice has two where there is room', () => {
  assert.deepEqual(linesOf('2027-03-28T12:00:00Z', HOUR).slice(0, 4), ['00:00', '01:00', '03:00', '04:00']);
  assert.deepEqual(linesOf('2027-10-31T12:00:00Z', HOUR).slice(0, 5), ['00:00', '01:00', '02:00', '02:00', '03:00']);
  assert.deepEqual(linesOf('2027-10-31T12:00:00Z', 2 * HOUR).slice(0, 3), ['00:00', '02:00', '04:00']);
  setZone('Australia/Lord_Howe');
  assert.deepEqual(linesOf('2027-04-03T20:00:00Z', 30 * MINUTE).slice(2, 6), ['01:00', '01:30', '01:30', '02:00']);
  assert.deepEqual(linesOf('2027-04-03T20:00:00Z', HOUR).slice(0, 4), ['00:00', '01:00', '02:00', '03:00']);
});

test('the two lines of an hour that comes twice have the names of their time', () => {
  assert.deepEqual(
    ['2027-10-31T00:00:00Z', '2027-10-31T01:00:00Z', '2027-10-31T02:00:00Z'].map(time => tickText(seconds(time), HOUR)),
    ['02:00 CEST', '02:00 CET', '03:00'],
  );
});

test('a week begins on Monday, in every zone', () => {
  for (const zone of ['Europe/Paris', 'America/Santiago', 'Australia/Lord_Howe', 'Asia/Kolkata', 'utc']) {
    setZone(zone);
    const lines = ticks(seconds('2027-01-05T00:00:00Z'), seconds('2027-12-05T00:00:00Z'), WEEK);
    assert.equal(lines.length, 48);
    for (const {at} of lines) assert.deepEqual([wallDate(at).getUTCDay(), dayStart(at)], [1, at]);
    assert.equal(weekStart(seconds('2027-10-31T12:00:00Z'), 1), lines.find(({at}) => at > seconds('2027-10-31T12:00:00Z')).at);
  }
});

test('lines that are days apart stay where they are when the calendar moves', () => {
  const lines = from => ticks(from, from + 60 * DAY, 2 * DAY).map(({at}) => at);
  const from = seconds('2027-09-20T00:00:00Z'),
    moved = lines(from + 37 * HOUR);
  assert.deepEqual(
    moved.filter(at => at < from + 60 * DAY).slice(1),
    lines(from).filter(at => at > moved[0]),
  );
});

test('weekends are the Saturdays and Sundays of the shown zone, with the hours of their days', () => {
  const [one, ...more] = weekends(seconds('2027-10-26T00:00:00Z'), seconds('2027-11-03T00:00:00Z'));
  assert.deepEqual([one, more.length], [{from: seconds('2027-10-29T22:00:00Z'), to: seconds('2027-10-31T23:00:00Z')}, 0]);
  assert.deepEqual(weekends(seconds('2027-10-25T00:00:00Z'), seconds('2027-10-29T12:00:00Z')), []);
  setZone('Asia/Kolkata');
  assert.equal(weekends(seconds('2027-10-26T00:00:00Z'), seconds('2027-11-03T00:00:00Z'))[0].from, seconds('2027-10-29T18:30:00Z'));
});

test('round times are those since the midnight that is shown', () => {
  setZone('Asia/Kolkata');
  assert.equal(timeOnly(snapped(seconds('2026-12-10T04:29:00Z'), HOUR)), '10:00');
  setZone('Europe/Paris');
  assert.equal(timeOnly(snapped(seconds('2026-12-09T23:10:00Z'), 6 * HOUR)), '00:00');
  setZone('utc');
  assert.equal(timeOnly(snapped(seconds('2026-12-09T23:10:00Z'), 6 * HOUR)), '00:00');
});

test('round times stay round in the night of the change, and both halves can be met', () => {
  const met = (from, to, step) => {
    const found = new Set();
    for (let at = seconds(from); at < seconds(to); at += MINUTE) {
      const near = snapped(at, step);
      assert.ok(Math.abs(near - at) <= step * 0.75, `${at}`); // half an hour may come twice
      found.add(near);
    }
    return [...found].map(at => timeOnly(at)).join(' ');
  };
  assert.equal(met('2027-10-30T23:00:00Z', '2027-10-31T02:20:00Z', HOUR), '01:00 02:00 02:00 03:00');
  assert.equal(met('2027-03-28T00:00:00Z', '2027-03-28T02:20:00Z', HOUR), '01:00 03:00 04:00');
  setZone('Australia/Lord_Howe');
  assert.equal(met('2027-04-03T14:00:00Z', '2027-04-03T16:40:00Z', HOUR), '01:00 02:00 03:00');
  assert.equal(met('2027-04-03T14:00:00Z', '2027-04-03T15:40:00Z', 30 * MINUTE), '01:00 01:30 01:30 02:00');
  setZone('America/Santiago');
  assert.equal(met('2027-09-05T03:00:00Z', '2027-09-05T05:20:00Z', HOUR), '23:00 01:00 02:00');
});

test('bands are whole days, months and years of the shown zone', () => {
  const [from, to] = [seconds('2027-10-30T12:00:00Z'), seconds('2027-11-01T12:00:00Z')];
  assert.deepEqual(
    bands(from, to, HOUR).map(band => (band.to - band.from) / HOUR),
    [24, 25, 24],
  );
  assert.deepEqual(
    bands(from, to, DAY).map(band => band.text),
    ['October 2027', 'November 2027'],
  );
  assert.deepEqual(
    bands(from, to, 0).map(band => band.text),
    ['2027'],
  );
});

test('the second axis shows the same instants in its zone, with the day where it is another one', () => {
  assert.equal(secondText(seconds('2026-12-10T09:00:00Z'), HOUR, 'UTC'), '09:00');
  assert.match(secondText(seconds('2026-12-09T23:00:00Z'), HOUR, 'UTC'), /^Wed 23:00$/);
  assert.equal(secondText(seconds('2026-12-10T09:00:00Z'), HOUR, 'Asia/Kolkata'), '14:30');
  assert.match(secondText(seconds('2026-12-09T23:00:00Z'), DAY, 'UTC'), /9.* 23:00$/);
  assert.equal(secondText(seconds('2026-12-09T23:00:00Z'), DAY, 'Asia/Kolkata'), '04:30');
  assert.equal(secondText(seconds('2026-12-09T23:00:00Z'), 0, 'UTC'), '');
});

test('a second zone that is unknown, or the shown one, is none', () => {
  assert.equal(secondZone(), null);
  setSecondZone('utc');
  assert.deepEqual([secondZone(), secondChoice()], ['UTC', 'utc']);
  setZone('utc');
  assert.deepEqual([secondZone(), secondChoice()], [null, 'utc']);
  setSecondZone('Mars/Olympus');
  assert.deepEqual([secondZone(), secondChoice()], [null, '']);
});

test('no damaged range makes the axis fail or run for ever', () => {
  for (const zone of ['utc', 'Europe/Paris', 'Pacific/Apia']) {
    setZone(zone);
    for (const start of [1e20, -1e20, NaN, Infinity, 253402300799]) {
      for (const step of [MINUTE * 5, HOUR, DAY, WEEK, 0]) {
        for (const list of [ticks, bands]) assert.ok(list(start, start + HOUR, step).length < 20);
        assert.ok(weekends(start, start + HOUR).length < 2);
        assert.ok(Number.isFinite(snapped(start, step || DAY)));
      }
    }
  }
  assert.equal(stepFor(1e-9, 74), 0);
});
