// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {again, answered, ask, close, closeAll, failure, isOpen, none, understood} from '../page/questions.js';

const passes = {passes: true, message: 'the service cannot be reached'};

test('the answer to a question that a new one has replaced is late', () => {
  const [first, asked] = ask(none, 'offer', {path: 'a'});
  const [second, askedAgain] = ask(first, 'offer', {path: 'b'});
  assert.equal(answered(second, {...asked}), null);
  const taken = answered(second, {...askedAgain});
  assert.equal(isOpen(taken.questions, 'offer'), false);
  assert.equal(taken.request.path, 'b');
});

test('the answer to a closed question is late, and its request ends', () => {
  const [open, asked] = ask(none, 'offer', {});
  const [shut, effect] = close(open, 'offer');
  assert.deepEqual(effect, {do: 'forget', key: 'offer'});
  assert.equal(answered(shut, {...asked}), null);
  assert.deepEqual(close(shut, 'offer'), [shut]);
});

test('what may pass is asked again after growing times, of at most a minute', () => {
  let [questions, effect] = ask(none, 'hosts', {path: 'hosts'});
  const waits = [];
  for (let i = 0; i < 9; i++) {
    const failed = answered(questions, {...effect, error: passes, clock: 100, chance: 0.5});
    assert.equal(failure(failed.questions, 'hosts'), passes);
    waits.push(failed.effects[0].ms);
    [questions, effect] = again(failed.questions, 'hosts');
    assert.equal(effect.request.path, 'hosts');
    assert.equal(failure(questions, 'hosts'), null);
  }
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000]);
});

test('the service says how long to wait at least', () => {
  const [questions, effect] = ask(none, 'hosts', {});
  assert.equal(answered(questions, {...effect, error: {...passes, after: 7}}).effects[0].ms, 7000);
});

test('pages that failed together do not ask again together', () => {
  const [questions, effect] = ask(none, 'hosts', {});
  const [early, late] = [0, 1].map(chance => answered(questions, {...effect, error: passes, chance}).effects[0].ms);
  assert.ok(early < late && early >= 750 && late <= 1250);
});

test('a refusal, and a failed change, is not asked again', () => {
  const [questions, effect] = ask(none, 'offer', {});
  const refused = answered(questions, {...effect, error: {passes: false}});
  assert.deepEqual([isOpen(refused.questions, 'offer'), refused.effects], [false, []]);
  const [changing, sent] = ask(none, 'booking', {}, {lasting: false});
  assert.deepEqual(answered(changing, {...sent, error: passes}).effects, []);
});

test('a question is asked again by hand only after it failed', () => {
  const [questions] = ask(none, 'hosts', {});
  assert.deepEqual(again(questions, 'hosts'), [questions]);
  assert.deepEqual(again(none, 'hosts'), [none]);
});

test('a part of the page that is closed has no questions', () => {
  let [questions] = ask(none, 'form offer', {});
  [questions] = ask(questions, 'hosts', {});
  const [left, ...effects] = closeAll(questions, key => key.startsWith('form'));
  assert.deepEqual([Object.keys(left.open), effects.length], [['hosts'], 1]);
});

test('an answer that is not what the API promises is a failure that is asked again, and leaves no trace in the state', () => {
  const unreadable = {passes: true, message: 'not as expected'},
    told = [];
  const step = (state, event) => {
    if (event.error) return [{...state, ...answered(state, event).questions}];
    return [{...state, hosts: event.answer.hosts.map(one => one.name)}];
  };
  const [questions] = ask(none, 'hosts', {path: 'v1/hosts'});
  const [next] = understood(step, questions, {type: 'answered', key: 'hosts', number: 1, answer: {hosts: null}}, () => unreadable, fault => told.push(fault));
  assert.equal(failure(next, 'hosts'), unreadable);
  assert.equal(told.length, 1);
  assert.throws(() => understood(() => assert.fail('a fault of the page'), questions, {type: 'pressed'}, () => unreadable, () => {}));
});
