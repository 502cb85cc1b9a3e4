// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {add} from '../page/texts.js';
import {texts} from '../page/texts-operator.js';
import {allowed, isOperator} from '../page/operator-pages.js';
import {freshness, isOld, nothing, step, troubleOf} from './operator.world.js';
import {World, lost} from './operator.world.js';

add(texts);

test('who may only what everybody may is no operator', () => {
  const may = (...rules) => rule => rules.includes(rule);
  assert.equal(isOperator(may('decisions:get', 'besteffort:list')), false);
  assert.equal(isOperator(may('doctor:get')), true);
  assert.deepEqual(allowed(may('energy:get', 'usage:get_all_projects')), ['usage', 'energy']);
});

test('a page asks at once, and again when its answer has become old', () => {
  const world = new World('images');
  assert.deepEqual(world.asks(), ['images']);
  world.answer('images', {images: []});
  world.pass(14000);
  assert.equal(freshness(world.state), 14000);
  assert.deepEqual(world.asks(), ['images']);
  world.pass(1000);
  assert.deepEqual(world.asks(), ['images', 'images']);
  world.answer('images', {images: []});
  assert.equal(freshness(world.state), 0);
});

test('the doctor, who asks the whole cloud, is asked every five minutes', () => {
  const world = new World('doctor');
  world.answer('doctor', {findings: []});
  world.pass(299000);
  assert.deepEqual(world.asks(), ['doctor']);
  world.pass(1000);
  assert.deepEqual(world.asks(), ['doctor', 'doctor']);
});

test('the age of a page is that of its oldest answer', () => {
  const world = new World('energy', {may: rule => rule !== 'energy:list_hosts' && rule !== 'energy:get_audit'});
  world.answer('energy', {});
  world.pass(3000);
  world.answer('plan', {});
  assert.equal(freshness(world.state), 3000);
});

test('a page asks only what its user may ask', () => {
  assert.deepEqual(new World('energy', {may: rule => rule === 'energy:get'}).asks(), ['energy']);
  assert.deepEqual(new World('queue', {may: () => false}).asked[0].request.query, {});
  assert.deepEqual(new World('queue').asked[0].request.query, {all_projects: true});
});

test('an event makes a page read again, at most every five seconds', () => {
  const world = new World('images');
  world.answer('images', {images: []});
  for (let i = 0; i < 40; i++) {
    world.send({type: 'changed'});
    world.pass(100);
  }
  assert.deepEqual(world.asks(), ['images']);
  world.pass(1000);
  assert.deepEqual(world.asks(), ['images', 'images']);
  world.answer('images', {images: []});
  world.pass(6000);
  assert.deepEqual(world.asks(), ['images', 'images']);
});

test('an answer that takes long is asked for seldom, also after events', () => {
  const world = new World('images');
  world.pass(3000);
  world.answer('images', {images: []});
  world.send({type: 'changed'});
  world.pass(56000);
  assert.deepEqual(world.asks(), ['images']);
  world.pass(1000);
  assert.deepEqual(world.asks(), ['images', 'images']);
});

test('an outage is no slow answer', () => {
  const world = new World('images');
  for (let i = 0; i < 6; i++) {
    world.answer('images', null, lost);
    world.pass(60000);
  }
  world.answer('images', {images: []});
  assert.equal(world.state.asked.images.took <= 60000, true);
  const asked = world.asks().length;
  world.send({type: 'reread'});
  world.answer('images', {images: []});
  world.pass(15000);
  assert.equal(world.asks().length, asked + 2);
});

test('a hidden tab asks seldom, and at once when it is seen again', () => {
  const world = new World('images');
  world.answer('images', {images: []});
  world.send({type: 'hidden', on: true});
  world.send({type: 'changed'});
  world.pass(290000);
  assert.deepEqual(world.asks(), ['images']);
  world.send({type: 'hidden', on: false});
  assert.deepEqual(world.asks(), ['images', 'images']);
});

test('after a failure the last good answer stays, marked as old, and the page asks again after growing times', () => {
  const world = new World('images');
  world.answer('images', {images: []});
  world.pass(15000);
  world.answer('images', null, lost);
  assert.ok(isOld(world.state, 'images'));
  assert.deepEqual(world.state.answers.images.value, {images: []});
  assert.equal(troubleOf(world.state).wait, 1000);
  world.pass(1000);
  world.answer('images', null, lost);
  assert.equal(troubleOf(world.state).wait, 2000);
  world.pass(2000);
  world.answer('images', {images: []});
  assert.equal(troubleOf(world.state), null);
  assert.ok(!isOld(world.state, 'images'));
});

test('a user does not wait for the next attempt', () => {
  const world = new World('images');
  world.answer('images', null, lost);
  world.send({type: 'reread'});
  assert.deepEqual(world.asks(), ['images', 'images']);
  assert.equal(troubleOf(world.state), null);
  world.send({type: 'reread'});
  assert.deepEqual(world.asks(), ['images', 'images'], 'what is under way is not asked twice');
});

test('a refusal stands beside the last answer, and that there is no plan is an answer', () => {
  const world = new World('energy');
  for (const key of ['energy', 'plan', 'demand', 'energyHosts']) world.answer(key, {});
  world.pass(15000);
  world.answer('energy', null, {status: 403, passes: false, message: 'not allowed'});
  assert.equal(troubleOf(world.state).error.message, 'not allowed');
  assert.ok(isOld(world.state, 'energy'));
  world.answer('plan', null, {status: 404, passes: false, message: 'there is no plan yet'});
  assert.equal(world.state.answers.plan, undefined);
  world.pass(15000);
  world.answer('energy', {});
  assert.equal(troubleOf(world.state), null);
});

test('the answer to the question of another page or another choice changes nothing', () => {
  const world = new World('usage');
  const first = world.requests.get('usage');
  world.send({type: 'edit', form: 'usage', field: 'by', value: 'host'});
  assert.equal(world.requests.get('usage').request.query.by, 'host');
  world.send({type: 'answered', ...first, answer: {rows: ['projects']}});
  assert.equal(world.state.answers.usage, undefined);
  world.send({type: 'went', page: 'images', item: ''});
  assert.deepEqual([...world.requests.keys()], ['images']);
  world.send({type: 'went', page: 'usage', item: ''});
  assert.equal(world.requests.get('usage').request.query.by, 'host', 'a choice stays');
});

test('who comes back to a page sees its last answer with its age', () => {
  const world = new World('images');
  world.answer('images', {images: [1]});
  world.send({type: 'went', page: 'doctor', item: ''});
  world.pass(20000);
  world.send({type: 'went', page: 'images', item: ''});
  assert.equal(freshness(world.state), 20000);
  assert.deepEqual(world.asks(), ['images', 'doctor', 'images']);
});

test('another choice forgets the answer to the one before, and the same one keeps it', () => {
  const world = new World('usage');
  world.answer('usage', {rows: []});
  world.pass(60000);
  assert.deepEqual(world.state.answers.usage.value, {rows: []});
  world.send({type: 'edit', form: 'usage', field: 'days', value: '30'});
  assert.equal(world.state.answers.usage, undefined);
});

test('what is typed is asked when the form is sent, and stays over readings', () => {
  const world = new World('decisions');
  world.send({type: 'edit', form: 'decisions', field: 'server', value: 'a b'});
  assert.deepEqual(world.asks(), []);
  world.send({type: 'submit', form: 'decisions'});
  assert.equal(world.asked[0].request.path, 'v1/decisions/a%20b');
  world.answer('decisions', {decisions: []});
  world.send({type: 'edit', form: 'decisions', field: 'server', value: 'another'});
  world.pass(60000);
  assert.equal(world.asked[1].request.path, 'v1/decisions/a%20b');
  assert.equal(world.state.fields.decisions.server, 'another');
  world.answer('decisions', {decisions: []});
  world.send({type: 'submit', form: 'decisions'});
  assert.equal(world.asked[2].request.path, 'v1/decisions/another');
});

const order = {title: 'Off?', lines: [], yes: 'Off', request: {method: 'POST', path: 'v1/energy/hosts/a', body: {action: 'off'}}, takes: ['reason'], said: 'done'};

test('an order is sent once, after the confirmation, with what was typed', () => {
  const world = new World('images');
  world.answer('images', {images: []});
  world.send({type: 'ask', order});
  assert.equal(world.requests.get('order'), undefined);
  world.send({type: 'edit', form: 'order', field: 'reason', value: ' dust '});
  world.send({type: 'confirm'});
  world.send({type: 'confirm'});
  assert.deepEqual(world.asked.filter(({key}) => key === 'order').map(({request}) => request.body), [{action: 'off', reason: 'dust'}]);
  world.answer('order', {});
  assert.equal(world.state.order, null);
  assert.deepEqual(world.others, [{do: 'toast', text: 'done'}]);
  assert.deepEqual(world.asks(), ['images', 'order', 'images']);
});

test('an order that failed stays with its error, is not sent again by itself, and leaves with a press', () => {
  const world = new World('images');
  world.send({type: 'ask', order});
  world.send({type: 'confirm'});
  world.answer('order', null, lost);
  world.pass(120000);
  assert.equal(world.asks().filter(key => key === 'order').length, 1);
  assert.equal(world.state.order.error, lost);
  world.send({type: 'keep'});
  assert.equal(world.state.order, null);
});

test('an order with a trial asks first what would happen, and a late answer changes nothing', () => {
  const world = new World('images');
  world.send({type: 'ask', order: {...order, trial: true}});
  const trial = world.requests.get('trial');
  assert.deepEqual(trial.request.query, {dry_run: 'true'});
  world.answer('trial', {outcome: 'switched off'});
  assert.equal(world.state.order.trial.outcome, 'switched off');
  world.send({type: 'ask', order: {...order, trial: true}});
  const second = world.requests.get('trial');
  world.send({type: 'keep'});
  world.send({type: 'answered', ...second, answer: {outcome: 'late'}});
  assert.equal(world.state.order, null);
});

test('an answer to a question before an order is not taken for what is after it', () => {
  const world = new World('images');
  const before = world.requests.get('images');
  world.send({type: 'ask', order});
  world.send({type: 'confirm'});
  world.answer('order', {});
  world.send({type: 'answered', ...before, answer: {images: ['before']}});
  assert.equal(world.state.answers.images, undefined);
  world.answer('images', {images: ['after']});
  assert.deepEqual(world.state.answers.images.value, {images: ['after']});
});

test('a step never changes the state that it was given', () => {
  const freeze = one => (Object.values(one).forEach(value => value && typeof value === 'object' && freeze(value)), Object.freeze(one));
  let state = freeze(nothing({page: 'energy', may: () => true}));
  for (const event of [{type: 'begin'}, {type: 'changed'}, {type: 'reread'}, {type: 'ask', order}, {type: 'confirm'}, {type: 'went', page: 'images', item: ''}])
    state = freeze(step(state, {clock: 1, at: 1, ...event})[0]);
});
