// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {HEAD} from '../page/places.js';
import {World} from './world.js';
import {t} from '../page/texts.js';

// booked returns a world in which the user has booked, and the event that takes it back.
function booked(...names) {
  const w = new World();
  w.connect();
  w.settle();
  const undos = names.map(name => {
    const body = {name, start_time: new Date((w.at + 3600) * 1000).toISOString(), duration: 3600, quantity: 1},
      made = w.service.answer({method: 'POST', path: 'v1/reservations', body}).answer;
    return {type: 'undo', request: {method: 'DELETE', path: `v1/reservations/${made.id}`}, made};
  });
  w.settle();
  w.done = [];
  return {w, undos};
}

const toasts = w => w.done.filter(one => one.do === 'toast').map(one => one.text),
  undoing = w => w.flying.filter(one => one.key.startsWith('undo'));

test('two messages can be undone at once, and each tells its outcome', () => {
  const {w, undos} = booked('first', 'second');
  for (const undo of undos) w.send(undo);
  const [first, second] = undoing(w);
  assert.notEqual(first.key, second.key, 'the second ends the request of the first');
  w.send({type: 'answered', key: second.key, number: second.number, answer: null});
  w.send({type: 'answered', key: first.key, number: first.number, error: {status: 0, passes: true, message: 'no answer', field: '', refusal: null}});
  assert.deepEqual(toasts(w), [t('undone'), t('undoDoubt')]);
  assert.equal(w.timers.has(first.key), false, 'what failed is not sent again by itself');
});

test('what somebody has changed since is not undone', () => {
  for (const change of [() => ({name: 'important'}), one => ({end: one.end + 7200})]) {
    const {w, undos: [undo]} = booked('run'),
      now = w.service.reservations.get(undo.made.id);
    w.service.put({...now, ...change(now)}, 'changed');
    w.send(undo);
    w.settle();
    assert.deepEqual(toasts(w), ['changed by somebody']);
    assert.ok(w.service.reservations.has(undo.made.id));
  }
});

test('a booking that begins meanwhile can still be undone', () => {
  const {w, undos: [undo]} = booked('run');
  w.service.put({...w.service.reservations.get(undo.made.id), status: 'active'}, 'changed');
  w.send(undo);
  assert.deepEqual(Object.keys(undoing(w)[0].request.provided), ['name', 'start', 'end', 'quantity']);
});

test('the form of a change sees what others make of the reservation', () => {
  const {w, undos: [{made}]} = booked('run'),
    one = w.service.reservations.get(made.id);
  const claim = () => w.state.data.hosts.get(one.hosts[0]).claims.find(claim => claim.id === one.id);
  w.state = {...w.state, form: null};
  const {view, rows} = w.state,
    place = at => ({px: view.label + (at - view.start) * view.scale, py: HEAD + rows.find(row => row.host.name === one.hosts[0]).y + 10});
  w.send({type: 'pressed', ...place(claim().end - 1), button: 0});
  w.send({type: 'hovered', ...place(claim().end + 7200)});
  w.send({type: 'released', ...place(claim().end + 7200), button: 0});
  assert.equal(w.state.form.mode, 'change');
  w.service.put({...one, name: 'theirs', start: one.start + 600, end: one.end + 600}, 'changed');
  w.settle();
  assert.deepEqual(w.state.form.before, {name: 'theirs', start: one.start + 600, end: one.end + 600});
});
