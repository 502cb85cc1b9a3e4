// SPDX-License-Identifier: Apache-2.0
// The rows of the hosts that a form offers, or that are in its way.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {calendarView} from '../page/calendar-view.js';
import {HEAD, end} from '../page/places.js';
import {iso} from '../page/time.js';
import {t} from '../page/texts.js';
import {byID, parts, words} from './elements.js';
import {World} from './world.js';

const HOUR = 3600;

// shown returns a calendar with room for one row, of whose hosts others have reserved some at once.
function shown(...taken) {
  const w = new World();
  for (const host of taken) w.service.book({name: 'theirs', start: Math.floor(w.at), duration: 50 * HOUR, hosts: [host]}, false);
  w.settle();
  w.send({type: 'resized', width: 1000, height: HEAD + 30, ratio: 1});
  w.settle();
  return w;
}

// names returns the hosts in the rows.
const names = w => w.state.rows.map(row => row.host.name).join('');

// inSight returns the names of the hosts whose rows are wholly in view.
const inSight = ({state: {rows, view}}) => rows.filter(row => row.y >= view.scroll && row.y + row.height <= view.scroll + view.height - HEAD).map(row => row.host.name);

// refuse answers the question of the form with what is in the way on a host.
function refuse(w, host, start) {
  w.pass(0.3);
  const {key, number, request} = w.flying.find(one => one.key === 'form.offer'),
    refusal = {blocked_by: [{host, start: iso(start), end: iso(start + HOUR)}], earliest_start: null, largest_quantity: 0, latest_end: null};
  w.flying = [];
  w.send({type: 'answered', key, number, request, error: {status: 409, passes: false, message: 'not enough hosts', field: '', refusal}});
}

const fold = w => {
  const sent = [];
  return {sent, button: byID(calendarView(w.state, event => sent.push(event), {may: () => true, project: id => id}), 'fold-rows')};
};

// press presses the button that folds the rows.
function press(w) {
  const {sent, button} = fold(w);
  button.props.onclick();
  for (const event of sent) w.send(event);
}

test('an offer on a host out of sight is scrolled into view', () => {
  const w = shown('a', 'b');
  assert.deepEqual(inSight(w), ['a']);
  w.send({type: 'booked'});
  w.settle();
  assert.deepEqual(w.state.form.offer.hosts, ['c']);
  assert.deepEqual(inSight(w), ['c']);
});

test('what is in the way out of sight is scrolled into view, and its time is shown', () => {
  const w = shown(),
    start = w.at + 900 * HOUR;
  w.send({type: 'booked'});
  refuse(w, 'd', start);
  assert.deepEqual(inSight(w), ['d']);
  assert.ok(w.state.view.start <= start && start < end(w.state.view));
});

test('the user scrolls away from an offer as long as it stays the same', () => {
  const w = shown('a', 'b');
  w.send({type: 'booked'});
  w.settle();
  w.send({type: 'scrolled', scroll: 0});
  w.send({type: 'form.edit', field: 'name', value: 'run'});
  assert.deepEqual(inSight(w), ['a']);
});

test('the rows can be folded to the hosts of the offer, and all of them come back', () => {
  const w = shown('a', 'b');
  w.send({type: 'booked'});
  w.settle();
  assert.equal(words(fold(w).button), t('onlyOffered'));
  press(w);
  assert.equal(names(w), 'c');
  assert.deepEqual(inSight(w), ['c']);
  assert.equal(words(fold(w).button), t('allRows'));
  press(w);
  assert.equal(names(w), 'abcd');
  assert.deepEqual(inSight(w), ['c'], 'the offer is in view among all hosts, too');
});

test('folded rows follow the next offer, and what is in the way of it', () => {
  const w = shown('a', 'b');
  w.send({type: 'booked'});
  w.settle();
  press(w);
  w.send({type: 'form.edit', field: 'quantity', value: '2'});
  assert.equal(names(w), 'c', 'the rows stay until the answer');
  w.settle();
  assert.equal(names(w), 'cd');
  w.send({type: 'form.edit', field: 'quantity', value: '3'});
  refuse(w, 'a', w.at);
  assert.equal(names(w), 'a');
});

test('with the form folded rows end', () => {
  const w = shown('a', 'b');
  w.send({type: 'booked'});
  w.settle();
  press(w);
  w.send({type: 'form.close'});
  assert.equal(names(w), 'abcd');
});

test('there is nothing to fold without an offer, and if all hosts are in it', () => {
  const w = shown();
  w.send({type: 'booked'});
  assert.equal(fold(w).button, undefined);
  w.send({type: 'form.edit', field: 'quantity', value: '4'});
  w.settle();
  assert.equal(w.state.form.offer.hosts.length, 4);
  assert.equal(fold(w).button, undefined);
});

// clickAt presses and releases at a time in the row of a host.
function clickAt(w, host, at) {
  const {view, rows} = w.state,
    row = rows.find(one => one.host.name === host),
    place = {px: view.label + (at - view.start) * view.scale, py: HEAD + row.y - view.scroll + row.height / 2};
  w.send({type: 'pressed', ...place, button: 0});
  w.send({type: 'released', ...place, button: 0});
}

// withWindow returns a form for two hosts for five hours between two times, in which there is one time with room.
function withWindow() {
  const w = shown(),
    start = Math.ceil(w.at / HOUR) * HOUR + 3 * HOUR;
  w.send({type: 'booked'});
  w.send({type: 'form.edit', field: 'quantity', value: '2'});
  w.send({type: 'form.edit', field: 'lasts', value: '5h'});
  w.send({type: 'form.edit', field: 'when', value: 'between'});
  w.pass(1);
  w.deliver(w.flying.find(one => one.key === 'form.offer'));
  const {key, number, request} = w.flying.find(one => one.key === 'form.windows'),
    windows = [{start: iso(start), end: iso(start + 9 * HOUR), latest_start: iso(start + 4 * HOUR), free: 3}];
  w.flying = w.flying.filter(one => one.key !== 'form.windows');
  w.send({type: 'answered', key, number, request, answer: {windows}});
  return {w, start};
}

test('a click on a time with room takes its start, and keeps the hosts and the length that were asked for', () => {
  const {w, start} = withWindow();
  clickAt(w, 'a', start + 7 * HOUR);
  const {fields} = w.state.form;
  assert.deepEqual([fields.when, fields.start.at, fields.quantity, fields.lasts], ['at', start, '2', '5h']);
  w.settle();
  assert.equal(w.state.form.offer.start, start);
});

test('a click on the offer changes nothing', () => {
  const {w, start} = withWindow();
  clickAt(w, 'a', start);
  w.settle();
  const {form} = w.state;
  clickAt(w, form.offer.hosts[0], form.offer.start + HOUR);
  assert.equal(w.state.form, form);
});

test('after a booking the keyboard goes on at what was booked', () => {
  const w = shown('a', 'b');
  w.send({type: 'booked'});
  w.settle();
  const {offer} = w.state.form;
  w.send({type: 'form.submit'});
  w.settle();
  assert.equal(w.state.form, null);
  assert.deepEqual([w.state.rows[w.state.cursor.row].host.name, w.state.cursor.at], [offer.hosts[0], offer.start]);
});

test('the facts at the cursor are not shown while its row is out of sight', () => {
  const w = shown(),
    tip = () => parts(calendarView(w.state, () => {}, {may: () => true, project: id => id})).find(one => one.props.class === 'tip');
  w.send({type: 'focused'});
  assert.ok(tip());
  w.send({type: 'scrolled', scroll: 90});
  assert.equal(tip(), undefined);
});
