// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, beforeEach, test} from 'node:test';
import {secondZoneSelect} from '../page/zonechoice.js';
import {secondZone, setSecondZone, setUTC, setZone} from '../page/zones.js';

beforeEach(() => setZone('Europe/Paris'));
afterEach(() => {
  setZone('local');
  setSecondZone('');
});

const values = list => list.props.children.flat().map(one => one.props.value);

test('the second axis can have each zone of the browser, and the one that is not shown first', () => {
  const offered = values(secondZoneSelect(() => {}));
  assert.deepEqual(offered.slice(0, 2), ['', 'utc']);
  assert.ok(offered.includes('Asia/Tokyo') && offered.length > 300);
  assert.equal(new Set(offered).size, offered.length);
  setUTC(true);
  assert.deepEqual(values(secondZoneSelect(() => {})).slice(0, 2), ['', 'local']);
});

test('a chosen zone is kept and told', () => {
  let told = 0;
  const choose = value => secondZoneSelect(() => told++).props.onchange({currentTarget: {value}});
  choose('Asia/Tokyo');
  assert.deepEqual([secondZone(), secondZoneSelect().props.value, told], ['Asia/Tokyo', 'Asia/Tokyo', 1]);
  choose('');
  assert.deepEqual([secondZone(), secondZoneSelect().props.value, told], [null, '', 2]);
});

test('a second zone that is the shown one is no choice of the list', () => {
  setSecondZone('utc');
  setUTC(true);
  assert.equal(secondZoneSelect().props.value, '');
});
