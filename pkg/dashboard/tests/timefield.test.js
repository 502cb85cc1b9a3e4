// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, beforeEach, test} from 'node:test';
import {seconds} from '../page/time.js';
import {timeField} from '../page/timefield.js';
import {edited, exact, leave} from '../page/timevalue.js';
import {setUTC, setZone} from '../page/zones.js';

beforeEach(() => setZone('Europe/Paris'));
afterEach(() => setZone('local'));

const parts = node => (Array.isArray(node) ? node.flatMap(parts) : node?.props ? [node, ...parts(node.props.children)] : []);
const words = node =>
  Array.isArray(node) ? node.map(words).join('') : node?.props ? words(node.props.children) : typeof node === 'string' ? node : '';

// shown returns the parts of a field by their ids, the radio buttons, and the values that it was changed to.
function shown(value) {
  const changes = [],
    field = timeField({label: 'Starts', id: 'starts', value, change: next => changes.push(next)}),
    all = parts(field);
  return {
    field,
    changes,
    part: id => all.find(one => one.props.id === id),
    halves: all.filter(one => one.props.type === 'radio'),
    choice: words(all.filter(one => one.type === 'fieldset')),
  };
}

const typeIn = (part, text) => part.props.oninput({currentTarget: {value: text}});

test('a field has a day, and a time in 24 hours', () => {
  const {part} = shown(exact(seconds('2026-11-30T18:00:00Z')));
  assert.deepEqual([part('starts').props.value, part('starts-clock').props.value], ['2026-11-30', '19:00']);
  assert.deepEqual([part('starts').props.type, part('starts-clock').props.type], ['date', 'text']);
});

test('the zone stands beside the field, and in the night of a change which time it has then', () => {
  const zone = time => words(shown(exact(seconds(time))).part('starts-zone'));
  assert.equal(zone('2026-11-30T18:00:00Z'), 'Europe/Paris');
  assert.equal(zone('2027-10-31T00:00:00Z'), 'Europe/Paris, CEST');
  assert.equal(zone('2027-10-31T04:00:00Z'), 'Europe/Paris, CET');
  setUTC(true);
  assert.equal(zone('2027-10-31T04:00:00Z'), 'UTC');
});

test('a time that comes twice can be chosen both ways', () => {
  const {halves, choice, changes} = shown(exact(seconds('2027-10-31T01:30:00Z')));
  assert.match(choice, /02:30 CEST.*02:30 CET, 1h after the first/);
  assert.deepEqual(
    halves.map(one => one.props.checked),
    [false, true],
  );
  halves[0].props.onchange();
  assert.equal(changes[0].at, seconds('2027-10-31T00:30:00Z'));
  assert.equal(shown(exact(seconds('2027-10-31T04:00:00Z'))).halves.length, 0);
});

test('day and time are edited alone, and what is shown already changes nothing', () => {
  const {part, changes} = shown(exact(seconds('2026-11-30T18:00:07Z')));
  typeIn(part('starts-clock'), '19:00:07');
  assert.deepEqual(changes, []);
  typeIn(part('starts-clock'), '930');
  typeIn(part('starts'), '2026-12-01');
  assert.deepEqual(
    changes.map(one => one.at),
    ['2026-11-30T08:30:00Z', '2026-12-01T18:00:07Z'].map(seconds),
  );
});

test('a wrong text is explained once the user has gone on, and not while it is typed', () => {
  const typed = edited(exact(seconds('2026-11-30T18:00:00Z')), '2026-11-30T9:');
  assert.equal(shown(typed).part('starts-complaint'), undefined);
  const {part} = shown(leave(typed));
  assert.match(words(part('starts-complaint')), /9:30/);
  assert.equal(part('starts-clock').props['aria-invalid'], 'true');
  assert.match(part('starts-clock').props['aria-describedby'], /starts-complaint/);
  assert.match(words(shown(leave(edited(exact(0), 'T9:30'))).part('starts-complaint')), /day/);
  assert.match(words(shown(leave(edited(exact(0), '0002-01-01T9:30'))).part('starts-complaint')), /1970/);
});

test('only who leaves the whole field goes on', () => {
  const {field, changes} = shown(edited(exact(0), '2026-11-30T930'));
  const inside = {},
    currentTarget = {contains: one => one === inside};
  field.props.onfocusout({currentTarget, relatedTarget: inside});
  assert.deepEqual(changes, []);
  field.props.onfocusout({currentTarget, relatedTarget: null});
  assert.equal(shown(changes[0]).part('starts-clock').props.value, '09:30');
});

test('a time that the clocks leave out is moved, and the field says so', () => {
  const value = leave(edited(exact(0), '2027-03-28T2:30'));
  assert.match(words(shown(value).part('starts-moved')), /03:30/);
  assert.equal(shown(value).part('starts-clock').props.value, '03:30');
});
