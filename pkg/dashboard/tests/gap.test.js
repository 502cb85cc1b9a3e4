// SPDX-License-Identifier: Apache-2.0
// What the calendar does after changes that it has not heard of.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {World} from './world.js';
import {HOSTS} from './service.js';

const HOUR = 3600;

test('an open form asks again after a gap in the events', () => {
  const w = new World();
  w.connect();
  w.send({type: 'booked'});
  w.settle();
  assert.ok(w.state.form.offer);
  w.disconnect();
  for (const host of HOSTS) w.service.book({name: 'theirs', start: Math.floor(w.at), duration: 5 * HOUR, hosts: [host]}, false);
  w.settle();
  assert.equal(w.state.form.offer, null);
  assert.ok(w.state.form.refusal.real);
  w.disconnect();
  for (const id of [...w.service.reservations.keys()]) w.service.cancel(id);
  w.settle();
  assert.ok(w.state.form.offer);
});
