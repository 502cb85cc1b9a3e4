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

// values returns the values of the options of a list, and of those in its groups.
const values = ({type, props}) => (type === 'option' ? [props.value] : [props.children].flat(2).flatMap(values));

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

test('the many zones of the browser are made once, since each move of the calendar draws its tools', () => {
  const groups = () => secondZoneSelect(() => {}).props.children.filter(one => one.props);
  assert.equal(groups().length, 1);
  assert.equal(groups()[0], groups()[0]);
});

test('an older name of a zone is offered beside those of the browser', () => {
  setSecondZone('Asia/Calcutta');
  const list = secondZoneSelect(() => {});
  assert.deepEqual([list.props.value, values(list).filter(one => one === 'Asia/Calcutta').length], ['Asia/Calcutta', 1]);
});

test('a second zone that is the shown one is no choice of the list', () => {
  setSecondZone('utc');
  setUTC(true);
  assert.equal(secondZoneSelect().props.value, '');
});
