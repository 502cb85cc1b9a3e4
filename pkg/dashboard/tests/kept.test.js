// SPDX-License-Identifier: Apache-2.0
// What the browser keeps for the user.
import {afterEach, test} from 'node:test';
import assert from 'node:assert/strict';
import {calendarPlace, forgetTab, formBefore, keep, keepCalendarPlace, keepForm, kept} from '../page/kept.js';

const denied = () => {
  throw new Error('site data is blocked');
};

function browser({denies = false} = {}) {
  const memory = new Map(),
    storage = denies
      ? {getItem: denied, setItem: denied, removeItem: denied}
      : {getItem: name => memory.get(name) ?? null, setItem: (name, text) => memory.set(name, text), removeItem: name => memory.delete(name)};
  globalThis.sessionStorage = globalThis.localStorage = storage;
  return memory;
}

afterEach(() => {
  delete globalThis.sessionStorage;
  delete globalThis.localStorage;
});

test('a form and the place in the calendar stay in their tab until the user leaves', () => {
  const memory = browser();
  keepForm('a form');
  keepCalendarPlace('https://almanac/dashboard/#/calendar?start=1&again=r1');
  assert.deepEqual([formBefore(), calendarPlace()], ['a form', '#/calendar?start=1&']);
  forgetTab();
  assert.deepEqual([formBefore(), calendarPlace(), memory.size], [null, '#/calendar', 0]);
});

test('an address of another part is not kept as a place in the calendar', () => {
  browser();
  keepCalendarPlace('https://almanac/dashboard/#/reservations');
  assert.equal(calendarPlace(), '#/calendar');
});

test('a browser that keeps nothing forgets choices with the tab, and forms with the reload', () => {
  browser({denies: true});
  keep('zone', 'UTC');
  keepForm('a form');
  keepCalendarPlace('#/calendar?start=1');
  forgetTab();
  assert.deepEqual([kept('zone'), formBefore(), calendarPlace()], ['UTC', null, '#/calendar']);
});
