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
