// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {readWish} from '../page/wish.js';
import {setZone} from '../page/zones.js';

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
