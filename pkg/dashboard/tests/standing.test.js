// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {withMessage} from '../page/standing.js';
import {Filled, NOW} from './filled.js';
import {DAY, HOUR} from '../page/lengths.js';

const texts = list => list.reduce(withMessage, []).map(one => one.text);

test('a message takes the place of the one about the same, and of the same text', () => {
  assert.deepEqual(texts([{text: 'ends at 1', about: 'end'}, {text: 'copied'}, {text: 'ends at 2', about: 'end'}, {text: 'copied'}]), ['ends at 2', 'copied']);
});

test('two messages with the same text stay if each can be undone', () => {
  const undo = () => {};
  assert.deepEqual(texts([{text: 'booked', undo}, {text: 'booked', undo}]), ['booked', 'booked']);
});

test('at most three messages stand, and the oldest goes', () => {
  assert.deepEqual(texts(['a', 'b', 'c', 'd', 'e'].map(text => ({text}))), ['c', 'd', 'e']);
});

test('the message that a form is closed goes when another form opens', () => {
  const drag = {kind: 'book', hosts: ['a'], all: ['a'], start: NOW + DAY, duration: 2 * HOUR},
    f = new Filled(drag);
  f.edit('name', 'precious');
  f.send({type: 'form.close'});
  const {about} = f.toast();
  assert.ok(about);
  f.open(drag);
  assert.deepEqual(
    f.done.filter(one => one.do === 'untoast').at(-1),
    {do: 'untoast', about},
  );
});
