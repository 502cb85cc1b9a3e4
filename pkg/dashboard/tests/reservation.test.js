// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {canSubmit, draftOf, nothing, overtaken, step, values} from '../page/reservation-state.js';
import {edited, shownField} from '../page/timevalue.js';
import {pass} from './clock.js';

const first = {
  id: 'r-1',
  name: 'training',
  status: 'pending',
  start: '2027-10-30T10:00:00Z',
  end: '2027-10-31T01:30:07Z',
  quantity: 3,
  updated_at: '2027-10-01T00:00:00Z',
};

// Page is a page of one reservation, and the shell that carries its effects out.
class Page {
  constructor(options = {}) {
    [this.clock, this.requests, this.timers, this.told] = [0, new Map(), new Map(), []];
    this.state = nothing({id: 'r-1', ...options});
    this.send({type: 'begin'});
  }
  send(event) {
    const [next, ...effects] = step(this.state, {clock: this.clock, chance: 0.5, ...event});
    this.state = next;
    for (const effect of effects) {
      if (effect.do === 'ask') this.requests.set(effect.key, effect);
      else if (effect.do === 'forget') this.requests.delete(effect.key);
      else if (effect.do === 'wait') this.timers.set(effect.key, {due: this.clock + effect.ms, event: effect.event});
      else this.told.push(effect);
    }
  }
  answer(key, answer, error) {
    const asked = this.requests.get(key);
    assert.ok(asked, `${key} is asked`);
    this.requests.delete(key);
    this.send({type: 'answered', ...asked, ...(error ? {error} : {answer})});
    return asked.request;
  }
  pass(ms) {
    pass(this, ms);
  }
  // hear lets the stream tell of a change, and answers the question that follows.
  hear(one) {
    this.send({type: 'changed', event: {reservation_id: 'r-1', mine: true}});
    this.pass(1500);
    this.answer('one', one);
  }
  type(field, value) {
    this.send({type: 'typed', field, value});
  }
}

function opened(one = first, options = {}) {
  const page = new Page(options);
  page.answer('one', one);
  return page;
}

const refused = (message, refusal) => ({passes: false, message, refusal});
const away = {passes: true, message: 'the service cannot be reached'};

test('a cancellation is shown at once, whatever was typed before', () => {
  const page = opened();
  page.type('name', 'training!');
  page.send({type: 'cancel'});
  page.answer('foresee', {cancellation: {servers: []}});
  page.send({type: 'confirm'});
  page.answer('cancel', null);
  assert.deepEqual([page.state.one.status, page.state.dialog, page.state.drafts], ['canceled', null, {}]);
  page.pass(1500);
  page.answer('one', {...first, status: 'canceled'});
  assert.equal(page.state.one.status, 'canceled');
});

test('what others change is shown while something is typed, and the draft stays', () => {
  const page = opened();
  page.type('name', 'my name');
  page.hear({...first, name: 'their name', quantity: 5, status: 'active'});
  assert.deepEqual(
    [page.state.one.name, page.state.one.status, draftOf(page.state, 'name'), draftOf(page.state, 'quantity')],
    ['their name', 'active', 'my name', 5],
  );
  assert.deepEqual([overtaken(page.state, 'name'), overtaken(page.state, 'quantity')], [true, false]);
  page.send({type: 'drop', field: 'name'});
  assert.deepEqual([draftOf(page.state, 'name'), overtaken(page.state, 'name')], ['their name', false]);
});

test('a change is meant for the value that the page shows', () => {
  const page = opened();
  page.send({type: 'longer', more: 3600});
  assert.deepEqual(page.requests.get('change').request.provided, {end: first.end});
});

test('a change of the end keeps a typed name', () => {
  const page = opened();
  page.type('name', 'typed');
  page.send({type: 'longer', more: 3600});
  const request = page.answer('change', {...first, end: '2027-10-31T02:30:07Z'});
  assert.deepEqual(request.body, {end_time: '2027-10-31T02:30:07Z'});
  assert.equal(draftOf(page.state, 'name'), 'typed');
});

test('the message after a change tells the new value, and is about its field', () => {
  const page = opened();
  for (const end of ['2027-10-31T02:30:07Z', '2027-10-31T03:30:07Z']) {
    page.send({type: 'longer', more: 3600});
    page.answer('change', {...first, end});
  }
  const [one, two] = page.told.filter(effect => effect.do === 'toast');
  assert.match(one.text, /^The new end is .*Oct 31, 2027, 02:30 UTC\.$/);
  assert.match(two.text, /03:30 UTC\.$/);
  assert.equal(one.about, two.about);
  page.type('quantity', '7');
  page.send({type: 'submit', field: 'quantity'});
  page.answer('change', {...first, quantity: 7});
  assert.notEqual(page.told.at(-1).about, two.about);
});

test('what is typed while a change is under way stays typed', () => {
  const page = opened();
  page.type('name', 'second');
  page.send({type: 'submit', field: 'name'});
  page.type('name', 'second and third');
  page.answer('change', {...first, name: 'second'});
  assert.deepEqual(
    [page.state.one.name, draftOf(page.state, 'name'), overtaken(page.state, 'name')],
    ['second', 'second and third', false],
  );
});

test('an end that nobody edited cannot be sent, and keeps its seconds', () => {
  const page = opened();
  assert.equal(canSubmit(page.state, 'end'), false);
  page.send({type: 'submit', field: 'end'});
  assert.equal(page.requests.has('change'), false);
  const value = draftOf(page.state, 'end');
  assert.equal(value.at, values.end(first));
  const later = edited(value, shownField(value).replace('2027-10-31', '2027-11-02'));
  page.type('end', later);
  assert.equal(canSubmit(page.state, 'end'), true);
  page.type('end', edited(later, shownField(value)));
  assert.equal(canSubmit(page.state, 'end'), false);
});

test('a text that is no time cannot be sent', () => {
  const page = opened();
  page.type('end', edited(draftOf(page.state, 'end'), '2027-10-31Tnonsense'));
  assert.equal(canSubmit(page.state, 'end'), false);
});

test('a blank name and no quantity cannot be sent', () => {
  const page = opened();
  for (const [field, value] of [
    ['name', ' '],
    ['quantity', ''],
    ['quantity', '0'],
    ['quantity', '3'],
  ]) {
    page.type(field, value);
    assert.equal(canSubmit(page.state, field), false, `${field} ${value}`);
  }
});

test('the answer to a question before a change is late', () => {
  const page = opened();
  page.send({type: 'changed', event: {reservation_id: 'r-1'}});
  page.pass(300);
  const asked = page.requests.get('one');
  page.type('name', 'new');
  page.send({type: 'submit', field: 'name'});
  page.answer('change', {...first, name: 'new'});
  page.send({type: 'answered', ...asked, answer: first}); // it is from before
  assert.equal(page.state.one.name, 'new');
  page.pass(1500);
  page.answer('one', {...first, name: 'new'});
  assert.equal(page.state.one.name, 'new');
});

test('while a change is under way no other is sent', () => {
  const page = opened();
  page.send({type: 'longer', more: 3600});
  const number = page.requests.get('change').number;
  page.send({type: 'longer', more: 3600});
  page.type('name', 'x');
  page.send({type: 'submit', field: 'name'});
  page.send({type: 'cancel'});
  assert.deepEqual([page.requests.get('change').number, page.requests.has('foresee')], [number, false]);
});

test('a refused extension shows why until the next attempt, and the latest end is one press away', () => {
  const page = opened();
  page.send({type: 'longer', more: 86400});
  page.answer('change', null, refused('3 are asked for', {latest_end: '2027-10-31T05:00:00Z', blocked_by: [{host: 'a'}]}));
  assert.equal(page.state.refusal.error.refusal.blocked_by[0].host, 'a');
  page.send({type: 'until', end: Date.parse('2027-10-31T05:00:00Z') / 1000});
  assert.equal(page.state.refusal, null);
  assert.deepEqual(page.answer('change', {...first, end: '2027-10-31T05:00:00Z'}).body, {end_time: '2027-10-31T05:00:00Z'});
});

test('a change can be undone once, and only while it is the last one', () => {
  const page = opened();
  page.type('name', 'new');
  page.send({type: 'submit', field: 'name'});
  page.answer('change', {...first, name: 'new'});
  const {undo} = page.told.find(one => one.do === 'toast');
  page.send(undo);
  assert.deepEqual(page.answer('change', first).body, {name: 'training'});
  assert.equal(page.told.at(-1).undo, null);
  page.hear({...first, name: 'theirs'});
  page.send(undo);
  assert.equal(page.requests.has('change'), false);
  assert.equal(page.told.at(-1).kind, 'bad');
});

test('an undo that the service refuses says so', () => {
  const page = opened();
  page.send({type: 'longer', more: 3600});
  page.answer('change', {...first, end: '2027-10-31T02:30:07Z'});
  page.send(page.told.find(one => one.do === 'toast').undo);
  page.answer('change', null, refused('it ends too soon'));
  assert.deepEqual(
    [page.state.refusal.error.message, values.end(page.state.one)],
    ['it ends too soon', Date.parse('2027-10-31T02:30:07Z') / 1000],
  );
});

test('a change whose answer is lost is told once it is seen to be made', () => {
  const page = opened();
  page.type('name', 'new');
  page.send({type: 'submit', field: 'name'});
  page.answer('change', null, away);
  assert.equal(page.state.refusal.error, away);
  page.pass(1500);
  page.answer('one', {...first, name: 'new'});
  assert.deepEqual([page.state.refusal, page.state.drafts], [null, {}]);
  assert.equal(page.told.at(-1).do, 'toast');
});

test('a cancellation whose answer is lost is looked up, and the button is there again', () => {
  const page = opened();
  page.send({type: 'cancel'});
  page.answer('foresee', {cancellation: {servers: []}});
  page.send({type: 'confirm'});
  page.answer('cancel', null, away);
  assert.deepEqual([page.state.one.status, page.state.dialog], ['pending', null]);
  page.pass(1500);
  page.answer('one', {...first, status: 'canceled'});
  assert.equal(page.state.one.status, 'canceled');
});

test('the question before a cancellation goes when it is answered with no, or there is nothing to cancel', () => {
  const page = opened();
  page.send({type: 'cancel'});
  page.answer('foresee', {cancellation: {servers: [{id: 's', name: 'vm', becomes: 'deleted'}]}});
  assert.equal(page.state.dialog.servers[0].name, 'vm');
  page.send({type: 'keep'});
  assert.equal(page.state.dialog, null);
  page.send({type: 'cancel'});
  page.answer('foresee', {cancellation: {servers: []}});
  page.hear({...first, status: 'ended'});
  assert.equal(page.state.dialog, null);
});

test('a reading that failed keeps what was shown, and is tried again', () => {
  const page = opened();
  page.send({type: 'changed', event: {reservation_id: 'r-1'}});
  page.pass(300);
  page.answer('one', null, away);
  assert.deepEqual([page.state.one, page.state.questions.open.one.error], [first, away]);
  page.send({type: 'retry'});
  page.answer('one', {...first, name: 'now'});
  assert.equal(page.state.one.name, 'now');
});

test('a reservation that the user may not see any more is not shown any more', () => {
  const page = opened();
  page.send({type: 'lost'});
  page.pass(300);
  page.answer('one', null, refused('there is no such reservation'));
  assert.equal(page.state.one, null);
});

test('ten events a second cost one request a second, and events of others none', () => {
  const page = opened();
  let asked = 0;
  for (let i = 0; i < 300; i++) {
    page.send({type: 'changed', event: {reservation_id: 'r-1'}});
    page.send({type: 'changed', event: {reservation_id: 'r-2'}});
    page.send({type: 'changed', event: {hosts: ['a']}});
    if (page.requests.has('one')) {
      page.answer('one', first);
      asked++;
    }
    page.pass(100);
  }
  assert.ok(asked > 10 && asked <= 31, String(asked));
  page.pass(5000);
  if (page.requests.has('one')) page.answer('one', first);
  page.send({type: 'changed', event: {reservation_id: 'r-2'}});
  page.pass(5000);
  assert.equal(page.requests.has('one'), false);
});

test('the servers of an active reservation are asked for once for each of its versions', () => {
  const active = {...first, status: 'active'},
    page = opened(active, {mayCancel: () => true});
  page.answer('servers', {cancellation: {servers: [{id: 's', name: 'vm'}]}});
  assert.equal(page.state.servers.list[0].name, 'vm');
  page.hear(active);
  assert.equal(page.requests.has('servers'), false);
  page.hear({...active, updated_at: '2027-10-31T00:00:00Z'});
  assert.equal(page.requests.has('servers'), true);
  assert.equal(opened(active).requests.has('servers'), false); // who may not cancel may not ask
});

test('the link to the feed is asked for only where there is one', () => {
  assert.equal(new Page().requests.has('feed'), false);
  const page = new Page({feeds: true});
  page.answer('feed', {url: 'https://almanac.example/feeds/x.ics'});
  assert.equal(page.state.feed, 'https://almanac.example/feeds/x.ics');
});

// drawn returns a function that draws numbers from 0 to 1, always the same ones.
function drawn(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Whatever users, others and the network do, and in whichever order: the page shows what the service had, never goes back
// to an older version, keeps what is typed, sends only what the user saw, and in the end shows what the service has.
test('drawn sequences end with the reservation of the service, and never go back', () => {
  for (let seed = 1; seed <= 1500; seed++) {
    const draw = drawn(seed),
      pick = list => list[Math.floor(draw() * list.length)],
      page = new Page();
    let current = {...first, version: 0},
      shown = 0,
      typed = null;
    const change = more => (current = {...current, ...more, version: current.version + 1}),
      tell = () => page.send({type: 'changed', event: {reservation_id: 'r-1'}}),
      asked = new Map(); // by number: what the service had when it was asked
    const over = () => current.status === 'canceled';
    // serve carries out a request; the answer may be lost.
    const serve = (key, lose, early) => {
      const effect = page.requests.get(key);
      const {method = 'GET', body, query} = effect.request;
      if (method === 'PATCH') {
        if (over()) return page.answer(key, null, refused('it is over'));
        const fields = {...(body.name !== undefined && {name: body.name}), ...(body.end_time && {end: body.end_time})};
        change(fields);
        tell();
        return lose ? page.answer(key, null, away) : page.answer(key, current);
      }
      if (method === 'DELETE' && query)
        return page.answer(key, over() ? null : {cancellation: {servers: []}}, over() && refused('it is over'));
      if (method === 'DELETE') {
        if (over()) return page.answer(key, null, refused('it is over'));
        change({status: 'canceled'});
        tell();
        return lose ? page.answer(key, null, away) : page.answer(key, null);
      }
      if (lose) return page.answer(key, null, away);
      return page.answer(key, early ? asked.get(effect.number) || current : current);
    };
    const look = () => {
      for (const effect of page.requests.values()) if (!asked.has(effect.number)) asked.set(effect.number, current);
      const {one} = page.state;
      if (!one) return;
      if (one.version < shown) assert.fail(`seed ${seed}: version ${one.version} is shown after ${shown}`);
      shown = one.version;
      if (typed !== null && page.state.drafts.name) assert.equal(page.state.drafts.name.value, typed, `seed ${seed}: what is typed stays`);
    };
    look();
    for (let i = 0; i < 50; i++) {
      const act = pick([
        'others',
        'type',
        'submit',
        'longer',
        'cancel',
        'confirm',
        'keep',
        'serve',
        'serve',
        'serve',
        'lose',
        'pass',
        'pass',
        'gap',
        'retry',
      ]);
      const keys = [...page.requests.keys()];
      if (act === 'others' && !over()) {
        change({name: `theirs ${i}`});
        tell();
      } else if (act === 'type' && page.state.one && !over()) page.type('name', (typed = `mine ${i}`));
      else if (act === 'submit' && page.state.one) {
        const [saw, before] = [draftOf(page.state, 'name'), page.requests.get('change')];
        page.send({type: 'submit', field: 'name'});
        const sent = page.requests.get('change');
        if (sent !== before) assert.equal(sent.request.body.name, saw, `seed ${seed}: what the user saw is sent`);
      } else if (act === 'longer') page.send({type: 'longer', more: 3600});
      else if (['cancel', 'confirm', 'keep'].includes(act) && page.state.one) page.send({type: act});
      else if (act === 'serve' && keys.length) serve(pick(keys), false, draw() < 0.5);
      else if (act === 'lose' && keys.length) serve(pick(keys), true);
      else if (act === 'pass') page.pass(draw() * 1500);
      else if (act === 'gap') page.send({type: 'lost'});
      else if (act === 'retry') page.send({type: 'retry'});
      look();
    }
    for (let i = 0; i < 20; i++) {
      for (const key of [...page.requests.keys()]) serve(key, false, false);
      page.pass(61000);
      look();
    }
    assert.deepEqual([page.state.one.version, page.state.one.status], [current.version, current.status], `seed ${seed}`);
  }
});
