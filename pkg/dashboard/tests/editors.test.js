// SPDX-License-Identifier: Apache-2.0
// The editors of the filters of the calendar and of its form, which are parts of the state.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {draft, restored} from '../page/form-state.js';
import {complaintOf} from '../page/form-request.js';
import {World} from './world.js';

const gpus = [{name: 'gpu', type: 'string', values: ['a100', 'h100']}],
  a100 = '["=","$gpu","a100"]';

// asked returns the questions for the properties that wait for an answer.
const asked = w => w.flying.filter(one => one.key === 'properties');

// answer answers the question for the properties.
function answer(w, outcome = {answer: {properties: [...gpus, {name: 'id', type: 'string', values: ['x']}]}}) {
  const [{key, number, request}] = asked(w);
  w.flying = w.flying.filter(one => one.key !== key);
  w.send({type: 'answered', key, number, request, ...outcome});
}

// filtering returns a calendar at rest of which somebody has opened the filter.
function filtering() {
  const w = new World();
  w.settle();
  w.send({type: 'filterWanted'});
  answer(w);
  return w;
}

const type = (w, plain, name = 'filter') => {
  w.send({type: name, event: {type: 'typed', plain}});
  w.send({type: name, event: {type: 'entered'}});
};

test('the values of all properties are asked for once, when somebody has an editor of a filter', () => {
  for (const event of [{type: 'filterWanted'}, {type: 'booked'}, {type: 'filtered', filter: a100}]) {
    const w = new World();
    w.settle();
    assert.equal(asked(w).length, 0);
    w.send(event);
    w.send({type: 'booked'});
    w.send({type: 'filterWanted'});
    assert.equal(asked(w).length, 1, event.type);
    answer(w);
    assert.deepEqual(w.state.editor.properties, gpus, 'the id is no property of hosts to choose');
    w.send({type: 'booked'});
    assert.equal(asked(w).length, 0);
  }
});

test('the properties are asked for again after a failure, but not after a refusal', () => {
  const w = new World(),
    error = {message: '', field: '', refusal: null};
  w.settle();
  w.send({type: 'filterWanted'});
  answer(w, {error: {...error, status: 503, passes: true}});
  w.pass(5);
  assert.equal(asked(w).length, 1);
  answer(w, {error: {...error, status: 403, passes: false}});
  w.pass(500);
  assert.equal(asked(w).length, 0);
});

test('a condition that is typed above the calendar filters it once it is read', () => {
  const w = filtering();
  type(w, 'gpu');
  assert.deepEqual([w.state.filter, w.state.editor.plain], ['', 'gpu']);
  assert.ok(w.state.editor.wrong);
  type(w, 'gpu = a100');
  assert.deepEqual([w.state.filter, w.state.editor.plain, w.state.editor.wrong], [a100, '', '']);
  assert.ok(w.flying.some(({request}) => request.calendar && request.query.filter === a100));
  w.send({type: 'filter', event: {type: 'named', name: 'gpus'}});
  w.send({type: 'filter', event: {type: 'saved'}});
  assert.deepEqual(w.done.findLast(one => one.do === 'keep'), {do: 'keep', name: 'filters', value: JSON.stringify({gpus: a100})});
});

test('a condition that is typed into the form waits there, over a reload and another drag too', () => {
  const w = filtering();
  w.send({type: 'booked'});
  w.send({type: 'form.filter', event: {type: 'typed', plain: 'gpu = '}});
  assert.equal(complaintOf(w.state.form).field, 'filter');
  assert.equal(restored(draft(w.state.form)).editor.plain, 'gpu =');
  w.send({type: 'booked'});
  assert.equal(w.state.form.editor.plain, 'gpu = ');
  type(w, 'gpu = a100', 'form.filter');
  assert.deepEqual([w.state.form.fields.filter, w.state.form.fields.unadded], [a100, '']);
  assert.equal(complaintOf(w.state.form), null);
  assert.equal(w.state.filter, '', 'the filter of the calendar is another one');
});

test('while a booking is sent its filter stays', () => {
  const w = filtering();
  w.send({type: 'booked'});
  w.settle();
  w.send({type: 'form.submit'});
  type(w, 'gpu = a100', 'form.filter');
  assert.deepEqual([w.state.form.fields.filter, w.state.form.editor.plain], ['', '']);
});
