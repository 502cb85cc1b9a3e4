// SPDX-License-Identifier: Apache-2.0
// What the calendar shows beside its picture.
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {calendarView} from '../page/calendar-view.js';
import {secondZone, setSecondZone, setZone} from '../page/zones.js';
import {byID} from './elements.js';
import {World} from './world.js';

afterEach(() => {
  setZone('local');
  setSecondZone('');
});

const app = rules => ({may: rule => rules.includes(rule), project: id => id});

// shown returns the view of a calendar with its hosts, and the events that its elements send.
function shown(rules = []) {
  const w = new World(),
    sent = [];
  w.settle();
  return {w, sent, view: () => calendarView(w.state, event => sent.push(event), app(rules))};
}

test('the tools have the zones of the second axis, and a choice draws the picture anew', () => {
  setZone('Europe/Paris');
  const {sent, view} = shown();
  byID(view(), 'second-zone').props.onchange({currentTarget: {value: 'Asia/Tokyo'}});
  assert.deepEqual(sent, [{type: 'zoned'}]);
  assert.equal(secondZone(), 'Asia/Tokyo');
  assert.equal(byID(view(), 'second-zone').props.value, 'Asia/Tokyo');
});
