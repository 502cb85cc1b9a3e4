// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {canChange, draftOf, overtaken, values} from '../page/reservation-fields.js';
import {canSubmit, nothing, step} from '../page/reservation-state.js';
import {add} from '../page/texts.js';
import {texts} from '../page/texts-reservation.js';
import {edited, shownField} from '../page/timevalue.js';
import {pass} from './clock.js';

add(texts);

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

const sized = {
  ...first,
  kind: 'instance',
  resources: {vcpus: 4, memory_mb: 8192, custom: {CUSTOM_GPU: 1}},
  affinity: 'same',
  on_end: 'delete',
  before_end: 3600,
  host_properties: ['=', '$gpu', 'a100'],
};

test('each field is changed alone, for the value that the page shows, and its message tells the new one', () => {
  for (const [field, value, body, message] of [
    ['quantity', '5', {quantity: 5}, /quantity is 5/],
    ['resources', {...draftOf(opened(sized).state, 'resources'), memory_mb: '16384'}, {resources: {vcpus: 4, memory_mb: 16384, disk_gb: 0, custom: {CUSTOM_GPU: 1}}}, /4 vCPUs, 16384 MB, 0 GB/],
    ['affinity', 'none', {affinity: 'none'}, /on any hosts/],
    ['on_end', 'shelve', {on_end: 'shelve'}, /At the end its servers are shelved/],
    ['before_end', '90m', {before_end: 5400}, /1h 30m before/],
    ['before_end', '0', {before_end: 0}, /none/],
    ['host_properties', '["=","$gpu","h100"]', {host_properties: ['=', '$gpu', 'h100']}, /gpu = h100/],
    ['host_properties', '', {host_properties: ''}, /All hosts/],
  ]) {
    const page = opened(sized);
    page.type(field, value);
    assert.equal(canSubmit(page.state, field), true, field);
    page.send({type: 'submit', field});
    const {host_properties: filter, ...others} = body;
    const request = page.answer('change', {...sized, ...others, ...(filter !== undefined && {host_properties: filter || undefined})});
    assert.deepEqual([request.body, request.provided], [body, {[field]: sized[field]}]);
    assert.match(page.told.at(-1).text, message);
    assert.deepEqual([page.state.drafts, page.told.at(-1).undo.before], [{}, values[field](sized)]);
  }
});

test('a size without vCPUs or memory, and a warning that is no length, cannot be sent', () => {
  const page = opened(sized);
  for (const [name, amount] of [
    ['vcpus', '0'],
    ['memory_mb', ''],
    ['disk_gb', '1.5'],
  ]) {
    page.type('resources', {...draftOf(page.state, 'resources'), [name]: amount});
    assert.equal(canSubmit(page.state, 'resources'), false, `${name} ${amount}`);
    page.send({type: 'drop', field: 'resources'});
  }
  for (const text of ['', 'soon', '60']) {
    page.type('before_end', text);
    assert.equal(canSubmit(page.state, 'before_end'), false, text);
    assert.equal(draftOf(page.state, 'before_end'), text); // 60 means the hour that it is, and stays as it is typed
  }
});

test('what the status does not allow is not sent', () => {
  const page = opened(sized);
  for (const field of ['resources', 'affinity', 'quantity']) assert.deepEqual([canChange({one: sized}, field), canChange({one: {...sized, status: 'active'}}, field)], [true, false], field);
  page.type('affinity', 'none');
  page.hear({...sized, status: 'active'});
  page.send({type: 'submit', field: 'affinity'});
  assert.equal(page.requests.has('change'), false);
});

test('what is held is confirmed once, and nothing else of it changes meanwhile', () => {
  const held = {...sized, held_until: '2027-10-01T00:10:00Z'};
  for (const field of Object.keys(values)) assert.equal(canChange({one: held}, field), false, field);
  const page = opened(held);
  page.send({type: 'confirmHold'});
  page.send({type: 'cancel'});
  assert.equal(page.requests.has('foresee'), false, 'not while it is confirmed');
  const request = page.answer('confirmHold', sized);
  page.pass(1500);
  page.answer('one', sized);
  assert.deepEqual([request.method, request.body], ['PATCH', {hold: 0}]);
  assert.deepEqual([page.state.one.held_until, page.told.at(-1)], [undefined, {do: 'focus', id: 'reservation-head'}], 'the keyboard goes on there: the button is gone');
});

test('a confirmation that comes too late is told, and the reservation is read again', () => {
  const page = opened({...sized, held_until: '2027-10-01T00:10:00Z'});
  page.send({type: 'confirmHold'});
  page.answer('confirmHold', null, {message: 'the hold expired at 2027-10-01T00:10:00Z'});
  page.pass(1500);
  page.answer('one', {...sized, status: 'canceled'});
  assert.match(page.told.find(one => one.do === 'toast').text, /the hold expired/);
  assert.equal(page.state.one.status, 'canceled');
});

test('a filter is edited as in the calendar, and a condition that is typed but not added is not left out', () => {
  const page = opened(sized),
    edit = event => page.send({type: 'filter', event});
  page.send({type: 'filterWanted'});
  page.answer('properties', {properties: [{name: 'gpu', type: 'string', values: ['a100', 'h100']}, {name: 'id', type: 'number', values: [1]}]});
  page.send({type: 'filterWanted'});
  assert.equal(page.requests.has('properties'), false);
  edit({type: 'removed', index: 0});
  edit({type: 'typed', plain: 'gpu'});
  assert.equal(canSubmit(page.state, 'host_properties'), false);
  edit({type: 'typed', plain: 'gpu = h100'});
  edit({type: 'entered'});
  assert.equal(canSubmit(page.state, 'host_properties'), true);
  page.hear({...sized, host_properties: undefined});
  assert.deepEqual([overtaken(page.state, 'host_properties'), draftOf(page.state, 'host_properties')], [true, '["=","$gpu","h100"]']);
  edit({type: 'typed', plain: 'gpu'});
  page.send({type: 'drop', field: 'host_properties'});
  assert.deepEqual([draftOf(page.state, 'host_properties'), page.state.editor.plain], ['', '']);
});

// asked opens the question before a cancellation.
function asked(page) {
  page.send({type: 'cancel'});
  page.answer('foresee', {cancellation: {servers: []}});
  return page;
}
const shownFirst = {name: first.name, start: first.start, end: first.end, quantity: first.quantity};

test('a cancellation is meant for what the question shows', () => {
  const page = asked(opened());
  page.send({type: 'confirm'});
  assert.deepEqual(page.requests.get('cancel').request.provided, shownFirst);
});

test('a reservation that changed before its cancellation is shown as it is now, and its user is asked again', () => {
  const page = asked(opened()),
    now = {...first, end: '2027-10-31T05:00:00Z'};
  page.send({type: 'confirm'});
  page.answer('cancel', null, {...refused('somebody has changed it'), now});
  assert.deepEqual([page.state.one, page.state.dialog.changed], [now, true]);
  page.send({type: 'confirm'}); // not before it is known what happens to the servers
  assert.equal(page.requests.has('cancel'), false);
  page.answer('foresee', {cancellation: {servers: [{id: 's', name: 'vm', becomes: 'deleted'}]}});
  assert.deepEqual([page.state.dialog.servers.length, page.state.dialog.changed], [1, true]);
  page.send({type: 'confirm'});
  assert.deepEqual(page.answer('cancel', null).provided, {...shownFirst, end: now.end});
  assert.equal(page.state.one.status, 'canceled');
});

test('a change that is heard while the question is open is shown in it', () => {
  const page = asked(opened());
  page.hear({...first, updated_at: 'later'});
  assert.deepEqual([page.state.dialog.changed, page.requests.has('foresee')], [false, false]);
  page.hear({...first, quantity: 5});
  page.answer('foresee', {cancellation: {servers: []}});
  assert.deepEqual([page.state.dialog.changed, page.state.dialog.provided.quantity], [true, 5]);
  page.send({type: 'keep'});
  asked(page);
  assert.equal(page.state.dialog.changed, false);
});

test('a reservation that somebody else canceled before is not asked about any more', () => {
  const page = asked(opened());
  page.send({type: 'confirm'});
  page.answer('cancel', null, {...refused('somebody has changed it'), now: {...first, end: first.start, status: 'canceled'}});
  assert.deepEqual([page.state.one.status, page.state.dialog, page.told.at(-1).kind], ['canceled', null, 'bad']);
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

const part = {...first, status: 'active', lease_id: 'g/1'},
  group = {id: 'g/1', name: 'cluster', reservations: [{id: 'r-1'}, {id: 'r-2'}]};

test('the servers of a part of a group are those that the end of the group concerns', () => {
  const page = opened(part, {mayCancel: () => true});
  assert.equal(page.requests.has('servers'), false); // not before it is known to be a part
  assert.equal(page.answer('group', group).path, 'v1/groups/g%2F1');
  const asked = page.answer('servers', {
    reservations: [
      {id: 'r-2', servers: [{id: 't', name: 'other'}]},
      {id: 'r-1', servers: [{id: 's', name: 'vm'}]},
    ],
  });
  assert.deepEqual([asked.method, asked.path, asked.query], ['DELETE', 'v1/groups/g%2F1', {dry_run: 'true'}]);
  assert.deepEqual(page.state.servers.list, [{id: 's', name: 'vm'}]);
});

test('a part of a group is read again when another part changes, and is not canceled alone', () => {
  const page = opened(part);
  page.answer('group', group);
  page.send({type: 'changed', event: {reservation_id: 'r-2'}});
  page.pass(1500);
  page.answer('one', part);
  page.answer('group', {...group, name: 'renamed'});
  assert.equal(page.state.group.name, 'renamed');
  page.send({type: 'cancel'});
  assert.equal(page.requests.has('foresee'), false);
});

test('a canceled part of a group asks for no group, which is gone', () => {
  const page = opened({...part, status: 'canceled'});
  assert.equal(page.requests.has('group'), false);
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
        const {provided} = effect.request;
        if (Object.keys(provided).some(name => provided[name] !== current[name])) return page.answer(key, null, {...refused('it has changed'), now: current});
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
