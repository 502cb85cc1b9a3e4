// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {World} from './world.js';
import {t} from '../page/texts.js';

const undoOf = id => ({type: 'undo', request: {method: 'DELETE', path: `v1/reservations/${id}`}});

test('two messages can be undone at once, and each tells its outcome', () => {
  const w = new World();
  w.connect();
  w.settle();
  w.send(undoOf('r1'));
  w.send(undoOf('r2'));
  const [first, second] = w.flying.filter(one => one.key.startsWith('undo'));
  assert.notEqual(first.key, second.key, 'the second ends the request of the first');
  w.send({type: 'answered', key: second.key, number: second.number, answer: null});
  w.send({type: 'answered', key: first.key, number: first.number, error: {status: 0, passes: true, message: 'no answer', field: '', refusal: null}});
  assert.deepEqual(
    w.done.filter(one => one.do === 'toast').map(one => one.text),
    [t('undone'), 'no answer'],
  );
  assert.equal(w.timers.has(first.key), false, 'what failed is not sent again by itself');
});
