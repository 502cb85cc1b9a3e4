// SPDX-License-Identifier: Apache-2.0
// The row of the free hosts.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {freeFacts, freeSpoken, tableView} from '../page/calendar-facts.js';
import {step} from '../page/calendar-state.js';
import {freeAt, freeParts, timeOverFree} from '../page/free.js';
import {hostOf, rowsOf} from '../page/model.js';
import {AXIS, HEAD} from '../page/places.js';
import {iso, now} from '../page/time.js';
import {t} from '../page/texts.js';
import {words} from './elements.js';
import {World} from './world.js';

const HOUR = 3600,
  NOW = Math.floor(now() / HOUR) * HOUR + HOUR;

// state returns a calendar that has read some hours from NOW on, with hosts that have claims: [[begin, end], …] in hours.
function state(hosts, read = [0, 100], group = '') {
  const known = {from: NOW + read[0] * HOUR, to: NOW + read[1] * HOUR};
  const list = Object.entries(hosts).map(([name, claims]) =>
    hostOf({
      host: name,
      facts: claims.facts || null,
      claims: (claims.list || claims).map(([from, to, share = 1]) => ({start: iso(NOW + from * HOUR), end: iso(NOW + to * HOUR), share})),
    }),
  );
  return {
    rows: rowsOf(list, group).rows,
    data: {known},
    view: {start: NOW, span: 50 * HOUR, width: 0},
    cursor: {at: NOW, row: 0},
  };
}

// numbers returns the parts of the row between two hours as [begin, end, free].
const numbers = (one, from, to, at = NOW) => freeParts(one, NOW + from * HOUR, NOW + to * HOUR, at).map(part => [(part.from - NOW) / HOUR, (part.to - NOW) / HOUR, part.free]);

test('the row counts the hosts without a reservation, also of a share of a host', () => {
  const one = state({a: [[5, 10]], b: [[8, 20, 0.25], [9, 12, 0.5]], c: []});
  assert.deepEqual(numbers(one, 0, 30), [[0, 5, 3], [5, 8, 2], [8, 10, 1], [10, 20, 2], [20, 30, 3]]);
  assert.equal(freeAt(one, NOW + 8 * HOUR, NOW).total, 3);
});

test('hosts that cannot be reserved are not free, and heads of groups are no hosts', () => {
  const facts = {reservable: false, state: 'up', zone: 'a'};
  assert.deepEqual(numbers(state({a: {list: [], facts}, b: {list: [], facts: {...facts, reservable: true}}}, [0, 9], 'zone'), 0, 9), [[0, 9, 1]]);
});

test('time that was not read, and the past, have no number', () => {
  const one = state({a: []}, [-20, 10]);
  assert.deepEqual(numbers(one, -30, 30), [[0, 10, 1]]);
  assert.equal(freeAt(one, NOW + 11 * HOUR, NOW), null);
  assert.deepEqual(freeParts({...one, data: {known: null}}, 0, Infinity, 0), []);
});

test('the table and screen readers have the numbers too, and call nothing free that was not read', () => {
  const one = state({a: [[5, 10]], b: []}, [0, 20]),
    table = words(tableView({...one, shownRows: 9}, () => {}, null));
  assert.ok(table.includes(t('freeCount', {free: 1, count: 2})) && table.includes(t('notLoaded')), table);
  assert.ok(freeSpoken(one, NOW + 6 * HOUR).endsWith(t('freeCount', {free: 1, count: 2})));
  assert.ok(freeSpoken(one, NOW + 30 * HOUR).endsWith(t('notLoaded')));
  assert.ok(words(freeFacts(one, NOW + 12 * HOUR)).includes('at least'), 'what comes after the time that was read may be free, too');
});

test('the pointer over the row shows its facts, a finger too, and a letter says them at the cursor', () => {
  const w = new World(),
    place = {px: 500, py: (AXIS + HEAD) / 2};
  w.settle();
  w.send({type: 'hovered', ...place});
  assert.equal(w.state.hover.at, timeOverFree(w.state.view, place));
  assert.equal(w.state.pointer, 'help');
  w.send({type: 'touched', id: 1, ...place});
  w.send({type: 'lifted', id: 1, ...place});
  assert.ok(w.state.hover.free && w.state.hover.kept);
  const [, ...effects] = step(w.state, {type: 'key', key: 'f', at: w.at});
  assert.deepEqual(effects.filter(Boolean), [{do: 'said', what: 'free'}]);
});
