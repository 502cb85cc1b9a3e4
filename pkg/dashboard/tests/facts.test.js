// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {factsOf} from '../page/calendar-facts.js';
import {follow} from '../page/time.js';
import {setZone} from '../page/zones.js';
import {words} from './elements.js';

const NOW = Date.parse('2027-03-01T12:00:00Z') / 1000,
  HOUR = 3600,
  DAY = 24 * HOUR;

follow(NOW, 1);
setZone('UTC');

const app = {may: () => true, project: id => id};

const maintenance = {start: NOW + 21 * DAY, end: NOW + 21 * DAY + 4 * HOUR, maintenance: true, kind: 'host', name: 'new memory', project: 'ops', status: 'pending', share: 1};

test('maintenance that is to come names when it begins and ends, and no project', () => {
  const text = words(factsOf({}, {host: {name: 'node-01'}, at: maintenance.start, claim: maintenance}, app));
  assert.match(text, /^Maintenance from Mon, Mar 22, 12:00 until Mon, Mar 22, 16:00Reasonnew memory/);
  assert.doesNotMatch(text, /Out of order|Project|ops|Kind/);
});

const hostWith = (...claims) => ({name: 'node-01', claims}),
  knows = (from, to) => ({data: {known: from === undefined ? null : {from, to}}}),
  ofHost = (state, host, at = 0) => words(factsOf(state, {host, at, claim: null}, app));

test('a host names its next maintenance, or that there is none in the time that is shown', () => {
  const past = {...maintenance, start: NOW - 2 * DAY, end: NOW - DAY, name: 'old'},
    all = knows(NOW - 7 * DAY, NOW + 30 * DAY);
  assert.match(ofHost(all, hostWith(past, maintenance)), /Next maintenanceMon, Mar 22, 12:00 – 16:00: new memory/);
  assert.match(ofHost(all, hostWith(past)), /Next maintenancein the time shown: none/);
  assert.doesNotMatch(ofHost(all, hostWith(past), NOW), /Next maintenance/, 'over free time it is told only if there is one');
});

test('of time that was not read a host does not say which maintenance is the next', () => {
  assert.match(ofHost(knows(), hostWith()), /Next maintenancenot loaded yet/);
  assert.match(ofHost(knows(NOW - 9 * DAY, NOW - DAY), hostWith()), /Next maintenancenot loaded yet/);
  assert.match(ofHost(knows(NOW + 20 * DAY, NOW + 30 * DAY), hostWith(maintenance)), /Next maintenancein the time shown: Mon, Mar 22/);
});
