// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, beforeEach, test} from 'node:test';
import {chosen, choices, clockText, edited, exact, leave, readClock, shownField, twice} from '../page/timevalue.js';
import {seconds} from '../page/time.js';
import {setUTC, setZone} from '../page/zones.js';

beforeEach(() => setZone('Europe/Paris'));
afterEach(() => setZone('local'));

test('a field that is not edited keeps its instant: seconds, fractions, and the half of the hour that comes twice', () => {
  for (const time of ['2027-10-31T01:30:00Z', '2027-10-31T00:30:00Z', '2026-11-30T17:58:03Z', '2026-11-30T17:58:03.25Z']) {
    const value = exact(seconds(time));
    assert.deepEqual(value, {at: seconds(time), text: null});
    assert.equal(edited(value, shownField(value)).at, seconds(time));
    assert.equal(leave(value), value);
  }
});

test('a field shows seconds only if there are some', () => {
  assert.equal(shownField(exact(seconds('2026-11-30T17:58:03Z'))), '2026-11-30T18:58:03');
  assert.equal(shownField(exact(seconds('2026-11-30T17:58:00Z'))), '2026-11-30T18:58');
});

test('another zone changes the text of a field, never its instant', () => {
  const dragged = exact(seconds('2026-12-20T10:00:00Z')),
    typed = edited(dragged, '2026-12-20T12:30');
  assert.equal(typed.at, seconds('2026-12-20T11:30:00Z'));
  setUTC(true);
  assert.equal(shownField(dragged), '2026-12-20T10:00');
  assert.equal(shownField(typed), '2026-12-20T11:30');
  assert.equal(edited(typed, shownField(typed)).at, typed.at);
  assert.equal(edited(typed, '2026-12-20T11:45').at, seconds('2026-12-20T11:45:00Z'));
});

test('a text is read in the zone that is shown', () => {
  const read = zone => {
    setZone(zone);
    return new Date(edited(exact(0), '2027-07-01T12:00').at * 1000).toISOString();
  };
  assert.deepEqual(['Europe/Paris', 'Asia/Kolkata', 'America/Santiago', 'utc'].map(read), [
    '2027-07-01T10:00:00.000Z',
    '2027-07-01T06:30:00.000Z',
    '2027-07-01T16:00:00.000Z',
    '2027-07-01T12:00:00.000Z',
  ]);
});

test('a text of the hour that comes twice names both of its instants', () => {
  assert.deepEqual(twice('2027-10-31T02:30'), [
    {at: seconds('2027-10-31T00:30:00Z'), name: 'CEST'},
    {at: seconds('2027-10-31T01:30:00Z'), name: 'CET'},
  ]);
  for (const text of ['2027-10-31T01:59', '2027-10-31T03:00', '2027-10-31T', '', '2027-03-28T02:30']) assert.equal(twice(text), null);
  assert.deepEqual(
    twice('2027-04-03T23:15', 'America/Santiago').map(one => one.name),
    ['UTC−3', 'UTC−4'],
  );
  const [first, second] = twice('2027-04-04T01:45', 'Australia/Lord_Howe');
  assert.equal(second.at - first.at, 1800);
  assert.notEqual(first.name, second.name);
});

test('both halves can be chosen, and an edit stays in its half', () => {
  const value = edited(exact(seconds('2027-10-30T10:00:00Z')), '2027-10-31T02:30');
  assert.equal(value.at, seconds('2027-10-31T00:30:00Z'));
  const later = chosen(value, choices(value)[1].at);
  assert.equal(later.at, seconds('2027-10-31T01:30:00Z'));
  assert.equal(shownField(later), '2027-10-31T02:30');
  assert.equal(edited(later, '2027-10-31T02:45').at, seconds('2027-10-31T01:45:00Z'));
  assert.equal(edited(value, '2027-10-31T02:45').at, seconds('2027-10-31T00:45:00Z'));
  assert.equal(leave(later).at, later.at);
  const typed = ['0', '02', '02:', '02:4', '02:45'].reduce((before, clock) => edited(before, `2027-10-31T${clock}`), leave(later));
  assert.equal(typed.at, seconds('2027-10-31T01:45:00Z'));
});

test('a time that the clock leaves out becomes the later one, and the value says so', () => {
  const value = edited(exact(0), '2027-03-28T02:30');
  assert.deepEqual([value.at, value.moved], [seconds('2027-03-28T01:30:00Z'), true]);
  const left = leave(value);
  assert.deepEqual([shownField(left), left.moved], ['2027-03-28T03:30', true]);
  assert.equal(edited(left, '2027-03-28T03:31').moved, false);
  assert.equal(edited(exact(0), '2027-09-05T00:15', 'America/Santiago').at, seconds('2027-09-05T04:15:00Z'));
  assert.equal(edited(exact(0), '2027-10-03T02:10', 'Australia/Lord_Howe').at, seconds('2027-10-02T15:40:00Z'));
});

test('a text that is no time has no instant, and stays as it was typed', () => {
  for (const text of ['2026-12-20T', 'T10:00', '2026-02-30T10:00', '2026-12-20T25:00', '', '0002-12-20T10:00', '99999-12-20T10:00']) {
    const value = leave(edited(exact(seconds('2026-12-20T10:00:00Z')), text));
    assert.ok(Number.isNaN(value.at), text);
    assert.equal(shownField(value), text);
    setUTC(true);
    assert.equal(shownField(value), text);
    setZone('Europe/Paris');
  }
});

test('a time of day is read as people write it', () => {
  const times = {
    9: '09:00',
    '09': '09:00',
    930: '09:30',
    '0930': '09:30',
    '9:30': '09:30',
    ' 9.30 ': '09:30',
    '9h30': '09:30',
    '9h': '09:00',
    '9 pm': '21:00',
    '9:30PM': '21:30',
    '12am': '00:00',
    '12 p.m.': '12:00',
    '00:00': '00:00',
    2359: '23:59',
    '21:15:30': '21:15:30',
    211530: '21:15:30',
  };
  for (const [text, clock] of Object.entries(times)) assert.equal(clockText(readClock(text), 'UTC'), clock, text);
  assert.equal(readClock('24:00'), 86400);
  for (const text of ['', '25', '24:01', '9:60', '199', '13pm', '0am', '9:3', '9:30:61', 'noon', '-9', '1e1', '1234567'])
    assert.ok(Number.isNaN(readClock(text)), text);
});

test('24:00 is the end of a day', () => {
  const value = leave(edited(exact(0), '2027-10-31T24:00'));
  assert.equal(shownField(value), '2027-11-01T00:00');
});
