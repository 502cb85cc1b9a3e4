// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, beforeEach, test} from 'node:test';
import {clamped, follow, format, iso, now, readable, seconds, span, startOfDay, when, whenExactly} from '../page/time.js';
import {setZone, shownZone} from '../page/zones.js';

beforeEach(() => {
  setZone('Europe/Paris');
  follow(seconds('2026-11-28T14:26:00Z'), 0);
});
afterEach(() => setZone('local'));

const spanOf = (from, to) => span(seconds(from), seconds(to));

test('a time names its year unless it is the present one of the clock of the page', () => {
  assert.doesNotMatch(when(seconds('2026-12-31T22:30:00Z')), /2026/);
  assert.match(when(seconds('2026-12-31T23:30:00Z')), /2027, 00:30/); // it is New Year in Paris
  follow(seconds('2027-01-01T12:00:00Z'), 0);
  assert.match(when(seconds('2026-12-31T22:30:00Z')), /2026, 23:30/);
});

test('a span names the years if it crosses years or lies in another one', () => {
  assert.equal((spanOf('2026-10-09T00:00:00Z', '2027-11-13T00:00:00Z').match(/2026|2027/g) || []).join(), '2026,2027');
  assert.match(spanOf('2028-01-03T10:00:00Z', '2028-01-03T12:00:00Z'), /2028, 11:00 – 13:00$/);
  assert.doesNotMatch(spanOf('2026-12-01T00:00:00Z', '2026-12-24T00:00:00Z'), /20\d\d/);
});

test('a refusal names the year at all of its times if one needs it', () => {
  const text = readable('it would start at 2027-11-30T11:00:00Z; the farthest allowed now is 2026-11-28T15:29:00Z');
  assert.match(text, /^it would start at .*2027, 12:00; the farthest allowed now is .*2026, 16:29$/);
  assert.equal(readable('from 2026-12-01T11:00:00Z'), `from ${when(seconds('2026-12-01T11:00:00Z'))}`);
});

test('a message shows times with an offset and fractions in the shown zone, and keeps their seconds', () => {
  const exact = readable('at 2026-11-30T20:00:07.123456789Z');
  assert.match(exact, /21:00:07$/);
  for (const same of ['2026-11-30T22:00:07+02:00', '2026-11-30T15:00:07.9-0500', '2026-11-30T20:00:07Z'])
    assert.equal(readable(`at ${same}`), exact);
  setZone('utc');
  assert.match(readable('end from 2026-11-30T20:00:00Z'), /20:00$/);
});

test('what looks like a time and is none stays in a message', () => {
  for (const text of ['2026-13-45T99:99:99Z', 'a2026-11-30T20:00:00Z', '2026-11-30T20:00', '2026-11-30']) assert.equal(readable(text), text);
});

test('in the night of the change a span names both halves of the hour that comes twice', () => {
  assert.match(spanOf('2027-10-31T00:00:00Z', '2027-10-31T01:30:00Z'), /02:00 CEST – 02:30 CET$/);
  assert.match(spanOf('2027-10-31T00:10:00Z', '2027-10-31T00:40:00Z'), /02:10 – 02:40 CEST$/);
  assert.match(spanOf('2027-10-31T01:10:00Z', '2027-10-31T01:40:00Z'), /02:10 – 02:40 CET$/);
  assert.match(spanOf('2027-03-28T00:30:00Z', '2027-03-28T01:30:00Z'), /01:30 CET – 03:30 CEST$/);
  assert.match(when(seconds('2027-10-31T01:30:00Z')), /02:30 CET$/);
  assert.match(whenExactly(seconds('2027-10-31T00:30:00Z')), /02:30:00 CEST$/);
  assert.match(readable('until 2027-10-31T01:30:00Z'), /02:30 CET$/);
});

test('where the halves have no names of their own they have offsets', () => {
  setZone('America/Santiago');
  assert.match(spanOf('2027-04-04T02:30:00Z', '2027-04-04T03:30:00Z'), /23:30 UTC−3 – 23:30 UTC−4$/);
  setZone('Australia/Lord_Howe');
  assert.match(spanOf('2027-04-03T14:45:00Z', '2027-04-03T15:15:00Z'), /01:45 (LHDT|UTC\+11) – 01:45 (LHST|UTC\+10:30)$/);
});

test('other spans name no zone', () => {
  assert.doesNotMatch(spanOf('2027-10-29T08:00:00Z', '2027-11-01T08:00:00Z'), /CE/);
  assert.doesNotMatch(spanOf('2027-10-31T10:00:00Z', '2027-10-31T12:00:00Z'), /CE/);
  setZone('utc');
  assert.match(spanOf('2027-10-31T00:00:00Z', '2027-10-31T01:30:00Z'), /00:00 – 01:30$/);
});

test('no number makes a text of a time fail', () => {
  for (const at of [1e20, -1e20, Infinity, -Infinity, 8.64e12 + 1, NaN, undefined]) {
    for (const zone of ['utc', 'Europe/Paris', 'America/Santiago']) {
      setZone(zone);
      for (const shown of [when, whenExactly, iso, startOfDay, one => span(one, one), one => span(0, one), one => format(one, {})])
        assert.doesNotThrow(() => shown(at), `${at} ${zone}`);
    }
  }
  assert.equal(when(NaN), 'unknown');
  assert.equal(iso(1e20), '9999-12-31T23:59:59Z');
  assert.equal(iso(NaN), '');
});

test('a time is clamped to the years that the page shows, with room for what follows', () => {
  assert.equal(iso(clamped(1e20)), '9999-12-31T23:59:59Z');
  assert.equal(clamped(-5), 0);
  assert.equal(clamped(NaN), now());
  assert.equal(clamped(1e20) - clamped(1e20, 500), 500);
  assert.equal(clamped(1234.5), 1234.5);
});

test('a zone that the browser does not know is the local one', () => {
  setZone('local');
  const local = shownZone();
  for (const choice of ['Mars/Olympus', '', '{}', null, undefined]) {
    setZone(choice);
    assert.equal(shownZone(), local);
  }
});
