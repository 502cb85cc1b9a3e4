// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {MOST_SHOWN, nothing, step} from '../page/list-state.js';
import {pass} from './clock.js';

// drawn returns a function that draws numbers from 0 to 1, always the same ones.
function drawn(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

const day = n => new Date(Date.UTC(2027, 0, 1) + n * 86400000).toISOString().replace('.000Z', 'Z');

const reservation = (n, more = {}) => ({
  id: `id-${String(n).padStart(5, '0')}`,
  name: `run ${n}`,
  project_id: 'demo',
  kind: 'host',
  status: 'pending',
  start: day(n % 300),
  end: day((n % 300) + 2),
  quantity: 1,
  hosts: [],
  user_id: 'u',
  ...more,
});

// World is a service with reservations, and the shell of the page: it keeps the requests and timers of a list.
class World {
  constructor(count, options = {}) {
    this.there = new Map(Array.from({length: count}, (_, n) => [reservation(n).id, reservation(n)]));
    [this.requests, this.timers, this.asked, this.others] = [new Map(), new Map(), [], []];
    this.clock = 0;
    this.state = nothing({limited: false, ...options});
    this.send({type: 'begin'});
  }

  send(event) {
    const [next, ...effects] = step(this.state, {clock: this.clock, at: 1.8e9 + this.clock / 1000, chance: 0.5, ...event});
    this.state = next;
    for (const effect of effects) {
      if (effect.do === 'ask') {
        this.requests.set(effect.key, effect);
        this.asked.push({...effect, clock: this.clock});
      } else if (effect.do === 'forget') this.requests.delete(effect.key);
      else if (effect.do === 'wait') this.timers.set(effect.key, {due: this.clock + effect.ms, event: effect.event});
      else this.others.push(effect);
    }
  }

  // found is the answer of the service to a request.
  found({query}) {
    const statuses = query.status.split(','),
      ids = query.id?.split(',');
    const list = [...this.there.values()]
      .filter(one => statuses.includes(one.status) && (!ids || ids.includes(one.id)) && (query.all_projects || one.project_id === 'demo'))
      .sort((a, b) => (a.start + a.id < b.start + b.id ? -1 : 1));
    const from = query.marker ? list.findIndex(one => one.id === query.marker) + 1 : 0,
      page = list.slice(from, from + query.limit);
    return {reservations: page, next: from + page.length < list.length ? page.at(-1).id : null};
  }

  // answer answers the request for rows, as it is under way.
  answer(error) {
    const asked = this.requests.get('rows');
    this.requests.delete('rows');
    this.send({type: 'answered', ...asked, ...(error ? {error} : {answer: this.found(asked.request)})});
  }

  pass(ms) {
    pass(this, ms);
  }

  // settle answers everything until nothing is asked any more.
  settle() {
    for (let i = 0; i < 200; i++) {
      while (this.requests.has('rows')) this.answer();
      this.pass(1000);
    }
  }

  // change changes a reservation, and tells the page of it.
  change(id, change) {
    this.there.set(id, {...this.there.get(id), ...change});
    this.tell(id);
  }
  tell(id, more = {}) {
    this.send({type: 'changed', event: {reservation_id: id, mine: this.there.get(id)?.project_id === 'demo', ...more}});
  }

  names() {
    return this.state.found.map(({one}) => one.name);
  }
  rowAsks() {
    return this.asked.filter(({key}) => key === 'rows');
  }
}

test('all reservations are read, page by page, and the first page is soon there', () => {
  const world = new World(2820);
  world.answer();
  assert.equal(world.state.found.length, 100);
  world.settle();
  assert.equal(world.state.found.length, 2820);
  assert.deepEqual(
    world.rowAsks().map(({request}) => request.query.limit),
    [100, 1000, 1000, 1000],
  );
});

test('before the first answer the list does not say that there are no reservations', () => {
  const world = new World(0);
  assert.ok(world.state.load);
  world.answer();
  assert.equal(world.state.load, null);
});

test('what is not read is named, and read on demand', () => {
  const world = new World(7000);
  world.settle();
  assert.deepEqual([world.state.rows.size >= 5000, world.state.rows.size < 7000, Boolean(world.state.more)], [true, true, true]);
  world.send({type: 'readOn'});
  world.settle();
  assert.deepEqual([world.state.rows.size, world.state.more], [7000, null]);
});

test('some hundred rows are shown at most, with the number of all', () => {
  const world = new World(2820);
  world.settle();
  const shown = [world.state.shown];
  for (let i = 0; i < 6; i++) {
    world.send({type: 'more'});
    shown.push(world.state.shown);
  }
  assert.deepEqual(shown, [100, 200, 300, 400, 500, 500, 500]);
  assert.equal(shown.at(-1), MOST_SHOWN);
});

test('the search looks into all rows: names, hosts, ids, states, and projects among all of them', () => {
  const world = new World(2000, {everything: true, names: {p1: 'Physics'}});
  world.there.set('id-x', reservation(1, {id: 'id-x', name: 'Climate  Model', hosts: ['gpu-07'], status: 'active', project_id: 'p1'}));
  world.settle();
  for (const text of ['climate', 'model CLIMATE', 'gpu-07', 'id-x', 'physics climate', 'active']) {
    world.send({type: 'search', text});
    assert.deepEqual(world.names(), ['Climate  Model'], text);
  }
  world.send({type: 'search', text: 'nothing like it'});
  assert.deepEqual(world.names(), []);
  world.send({type: 'search', text: ' '});
  assert.equal(world.names().length, 2001);
});

test('a column sorts all rows, and once more the other way', () => {
  const world = new World(1500);
  world.settle();
  world.send({type: 'sort', by: 'name'});
  assert.deepEqual([world.names()[0], world.names()[2], world.names().at(-1)], ['run 0', 'run 2', 'run 1499']);
  world.send({type: 'sort', by: 'name'});
  assert.equal(world.names()[0], 'run 1499');
  world.send({type: 'sort', by: 'start'});
  assert.equal(world.names()[0], 'run 0');
  assert.deepEqual(world.others.at(-1), {do: 'address', query: {all: '', past: 'none', search: '', by: 'start', down: ''}});
});

test('an event of another project asks for nothing', () => {
  const world = new World(10);
  world.settle();
  const before = world.asked.length;
  world.send({type: 'changed', event: {mine: false, hosts: ['a'], change: 'changed'}});
  world.tell('id-of another project');
  world.pass(10000);
  assert.equal(world.asked.length, before);
});

test('only the rows that events name are read again, together', () => {
  const world = new World(3000);
  world.settle();
  const before = world.asked.length,
    untouched = world.state.rows.get('id-00001');
  for (const id of ['id-00007', 'id-00009', 'id-00007']) world.change(id, {name: `changed ${id}`});
  world.pass(300);
  assert.deepEqual(
    world.asked.slice(before).map(({request}) => request.query.id),
    ['id-00007,id-00009'],
  );
  world.answer();
  assert.equal(world.state.rows.get('id-00007').one.name, 'changed id-00007');
  assert.equal(world.state.rows.get('id-00001'), untouched);
});

test('a reservation that is canceled or gone leaves the list, and a new one enters it', () => {
  const world = new World(5);
  world.settle();
  world.change('id-00002', {status: 'canceled'});
  world.there.delete('id-00003');
  world.send({type: 'changed', event: {reservation_id: 'id-00003', mine: true, change: 'over'}});
  world.there.set('id-new', reservation(400, {id: 'id-new', name: 'new'}));
  world.tell('id-new');
  world.settle();
  assert.deepEqual(world.names(), ['run 0', 'run 1', 'run 4', 'new']);
});

test('with the past, what is over stays', () => {
  const world = new World(3);
  world.settle();
  world.send({type: 'choose', terms: {past: 'all'}});
  assert.deepEqual(world.names(), []); // it is not known yet
  world.settle();
  world.change('id-00002', {status: 'canceled'});
  world.settle();
  assert.deepEqual([world.names().length, world.state.rows.get('id-00002').one.status], [3, 'canceled']);
  const {query} = world.rowAsks().at(-2).request;
  assert.equal(query.start, '');
  world.send({type: 'choose', terms: {past: 'month'}});
  assert.match(world.rowAsks().at(-1).request.query.start, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
});

test('the answer for the terms before is late', () => {
  const world = new World(3);
  const asked = world.requests.get('rows'),
    answer = world.found(asked.request);
  world.send({type: 'choose', terms: {everything: true}});
  world.send({type: 'answered', ...asked, answer});
  assert.equal(world.state.rows.size, 0);
});

test('ten events a second cost at most one request a second, and one at a time', () => {
  const world = new World(3000);
  world.settle();
  const before = world.asked.length,
    from = world.clock,
    draw = drawn(7);
  for (let i = 0; i < 600; i++) {
    world.change(`id-0${1000 + Math.floor(draw() * 1000)}`, {name: `round ${i}`});
    if (world.requests.has('rows') && i % 3 === 0) world.answer();
    world.pass(100);
  }
  const asked = world.asked.slice(before);
  assert.ok(asked.length <= (world.clock - from) / 1000 + 1, `${asked.length} requests in a minute`);
  assert.ok(asked.length > 20);
  assert.ok(asked.every(({request}) => request.query.id.split(',').length <= 100));
});

test('a flood of events reads all rows again, but not all the time', () => {
  const world = new World(3000);
  world.settle();
  const before = world.asked.length;
  for (let i = 0; i < 600; i++) {
    for (let j = 0; j < 50; j++) world.tell(`id-${String((i * 50 + j) % 3000).padStart(5, '0')}`);
    if (world.requests.has('rows')) world.answer();
    world.pass(100);
  }
  const asked = world.asked.slice(before).map(({request}) => request.query);
  assert.ok(asked.filter(({id, marker}) => !id && !marker).length <= 11, 'all rows are read at most every six seconds');
  assert.ok(asked.filter(({id}) => id).length <= 60, 'rows are read by their ids at most every second');
});

test('after a gap everything is read again, and what was shown stays until then', () => {
  const world = new World(1500);
  world.settle();
  world.there.set('id-00000', {...world.there.get('id-00000'), name: 'changed in the gap'});
  world.there.delete('id-00001');
  world.send({type: 'lost'});
  world.pass(300);
  assert.equal(world.names().length, 1500);
  world.answer();
  assert.equal(world.names().length, 1500);
  world.settle();
  assert.deepEqual([world.names().length, world.names()[0]], [1499, 'changed in the gap']);
});

test('a gap while the rows are read begins the reading again', () => {
  const world = new World(2500);
  world.answer();
  world.there.set('id-00000', {...world.there.get('id-00000'), name: 'changed in the gap'});
  world.send({type: 'lost'});
  world.settle();
  assert.deepEqual([world.names().length, world.names()[0]], [2500, 'changed in the gap']);
});

test('a reading that failed is tried again by itself, and by hand, and shows why', () => {
  const world = new World(3);
  const error = {passes: true, message: 'the service cannot be reached'};
  world.answer(error);
  assert.equal(world.state.questions.open.rows.error, error);
  world.pass(1100);
  assert.equal(world.rowAsks().length, 2);
  world.answer(error);
  world.send({type: 'retry'});
  assert.equal(world.rowAsks().length, 3);
  world.answer();
  assert.deepEqual([world.names().length, world.state.questions.open], [3, {}]);
});

test('a refusal is shown, and asked again by hand only', () => {
  const world = new World(3);
  const error = {passes: false, message: 'no'};
  world.answer(error);
  world.pass(100000);
  assert.deepEqual([world.state.refused, world.rowAsks().length], [error, 1]);
  world.send({type: 'retry'});
  world.answer();
  assert.deepEqual([world.names().length, world.state.refused], [3, null]);
});

test('a marker that the service has forgotten begins the list again', () => {
  const world = new World(1500);
  world.answer();
  world.answer({passes: false, field: 'marker', message: 'there is no such reservation'});
  world.settle();
  assert.deepEqual([world.names().length, world.state.refused], [1500, null]);
});

test('a reservation that moves while it marks where a page begins hides no other', () => {
  for (const late of [false, true]) {
    const world = new World(500);
    world.answer();
    const {marker} = world.requests.get('rows').request.query;
    world.there.set(marker, {...world.there.get(marker), start: day(999)});
    if (late) world.answer();
    world.pass(1500);
    world.tell(marker);
    world.settle();
    assert.equal(world.names().length, 500);
  }
});

test('what the project holds is read again after its reservations change, at most every five seconds', () => {
  const world = new World(10, {limited: true});
  world.settle();
  const limits = () => world.asked.filter(({key}) => key === 'limits').length,
    before = limits();
  for (let i = 0; i < 100; i++) {
    world.tell('id-00001');
    if (world.requests.has('rows')) world.answer();
    world.pass(100);
  }
  assert.ok(limits() > before && limits() <= before + 3);
});

// However changes, events, answers and failures follow one another: at most one request for rows is under way, no row is
// shown that the service never had, and in the end the list is what the service has.
test('drawn sequences end with the rows of the service', () => {
  for (let seed = 1; seed <= 150; seed++) {
    const draw = drawn(seed),
      pick = list => list[Math.floor(draw() * list.length)],
      world = new World(Math.floor(draw() ** 2 * 2500)),
      had = new Map();
    let number = 10000;
    const note = () => {
      for (const [id, one] of world.there) had.set(id, (had.get(id) || new Set()).add(one));
    };
    note();
    for (let i = 0; i < 60; i++) {
      const ids = [...world.there.keys()];
      const act = pick([
        'change',
        'change',
        'cancel',
        'add',
        'move',
        'answer',
        'answer',
        'answer',
        'fail',
        'pass',
        'pass',
        'lost',
        'retry',
        'terms',
        'silent',
      ]);
      if (act === 'change' && ids.length) world.change(pick(ids), {name: `name ${number++}`});
      else if (act === 'cancel' && ids.length) world.change(pick(ids), {status: pick(['canceled', 'ended', 'active'])});
      else if (act === 'move' && ids.length) world.change(pick(ids), {start: day(Math.floor(draw() * 500))});
      else if (act === 'add') {
        const one = reservation(number++);
        world.there.set(one.id, one);
        world.tell(one.id);
      } else if (act === 'silent' && ids.length) {
        world.there.set(ids[0], {...world.there.get(ids[0]), name: `name ${number++}`});
        world.send({type: 'lost'}); // the stream was away
      } else if (act === 'answer' && world.requests.has('rows')) world.answer();
      else if (act === 'fail' && world.requests.has('rows')) world.answer({passes: true, message: 'away', after: 0});
      else if (act === 'pass') world.pass(draw() * 2000);
      else if (act === 'lost') world.send({type: 'lost'});
      else if (act === 'retry') world.send({type: 'retry'});
      else if (act === 'terms') world.send({type: 'choose', terms: {past: pick(['none', 'all'])}});
      note();
      for (const {one} of world.state.found) assert.ok(had.get(one.id)?.has(one), `seed ${seed}: the service never had ${one.id} so`);
    }
    world.settle();
    const wanted = world.found({query: {status: world.rowAsks().at(-1).request.query.status, limit: 1e9}}).reservations;
    assert.deepEqual(
      world.state.found.map(({one}) => one.id + one.name + one.status),
      wanted.map(one => one.id + one.name + one.status),
      `seed ${seed}`,
    );
  }
});
