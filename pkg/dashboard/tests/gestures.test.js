// SPDX-License-Identifier: Apache-2.0
// What a pointer, a finger and the keyboard do on the picture.
import assert from 'node:assert/strict';
import {afterEach, beforeEach, test} from 'node:test';
import {drawnText, spoken} from '../page/calendar-facts.js';
import {drawing} from '../page/calendar-state.js';
import {calendarView} from '../page/calendar-view.js';
import {HEAD, x} from '../page/places.js';
import {span, when} from '../page/time.js';
import {setZone} from '../page/zones.js';
import {parts, words} from './elements.js';
import {BEGIN, World} from './world.js';

const HOUR = 3600;

beforeEach(() => setZone('utc'));
afterEach(() => setZone('local'));

// shown returns a calendar at rest, with reservations as [host, begin, end, mine] in hours from its begin.
function shown(...reservations) {
  const w = new World();
  for (const [host, from, to, mine] of reservations)
    w.service.book({name: mine ? 'run' : 'theirs', start: BEGIN + from * HOUR, duration: (to - from) * HOUR, hosts: [host]}, mine);
  w.settle();
  return w;
}

// at returns where the picture has a host at some hours from the begin.
function at(w, host, hours) {
  const row = w.state.rows.find(one => one.host.name === host);
  return {px: x(w.state.view, BEGIN + hours * HOUR), py: HEAD + row.y - w.state.view.scroll + row.height / 2, button: 0};
}

// drag moves the pointer from one place to others with its button pressed.
function drag(w, from, ...places) {
  w.send({type: 'hovered', ...from});
  w.send({type: 'pressed', ...from});
  for (const place of places) w.send({type: 'hovered', ...place});
}

const viewOf = (w, send = () => {}) => calendarView(w.state, send, {may: () => true, project: id => id}),
  tipOf = w => parts(viewOf(w)).filter(one => /\btip\b/.test(one.props.class || ''));
const hours = ({start, end}) => [(start - BEGIN) / HOUR, (end - BEGIN) / HOUR];

test('a drag tells the time, the length and the number of hosts, and nothing else covers it', () => {
  const w = shown();
  drag(w, at(w, 'a', 24), at(w, 'b', 30), at(w, 'c', 48));
  const text = `${span(BEGIN + 24 * HOUR, BEGIN + 48 * HOUR)} · 1d · 3 hosts`;
  assert.equal(drawnText(w.state), text);
  assert.deepEqual(tipOf(w).map(words), [text]);
  assert.equal(w.state.hover, null);
});

test('Escape ends a drag, and its release opens nothing', () => {
  const w = shown();
  drag(w, at(w, 'a', 24), at(w, 'b', 48));
  const picture = parts(viewOf(w, event => w.send(event))).find(one => one.props.role === 'application');
  picture.props.onkeydown({key: 'Escape', preventDefault: () => {}});
  w.send({type: 'hovered', ...at(w, 'c', 60)});
  assert.equal(drawing(w.state).drag, null);
  w.send({type: 'released', ...at(w, 'c', 60)});
  assert.equal(w.state.form, null);
});

test('a click on free time books an hour', () => {
  const w = shown();
  drag(w, at(w, 'b', 24.4));
  w.send({type: 'released', ...at(w, 'b', 24.4)});
  const {fields, hosts} = w.state.form;
  assert.deepEqual(hosts, ['b']);
  assert.deepEqual(hours({start: fields.start.at, end: fields.end.at}), [24, 25]);
});

test('a drag of the start, of the end, or of all of a reservation asks first', () => {
  for (const [from, to, want] of [
    [30, 36, [36, 54]],
    [54, 60, [30, 60]],
    [40, 52, [42, 66]],
  ]) {
    const w = shown(['b', 30, 54, true]);
    drag(w, at(w, 'b', from), at(w, 'b', (from + to) / 2), at(w, 'b', to));
    assert.deepEqual(hours(drawing(w.state).stretch), want);
    w.send({type: 'released', ...at(w, 'b', to)});
    const {mode, fields} = w.state.form;
    assert.equal(mode, 'change');
    assert.deepEqual(hours({start: fields.start.at, end: fields.end.at}), want);
    assert.equal(w.sent.length, 0);
  }
});

test('a reservation of others cannot be dragged', () => {
  const w = shown(['b', 30, 54, false]);
  drag(w, at(w, 'b', 53.9), at(w, 'b', 57), at(w, 'b', 60));
  assert.equal(drawing(w.state).stretch, null);
  w.send({type: 'released', ...at(w, 'b', 60)});
  assert.equal(w.state.form, null);
});

// tap touches a place and lets it go.
function tap(w, place) {
  w.send({type: 'touched', id: 1, ...place});
  w.send({type: 'lifted', id: 1, ...place});
}

test('a tap shows the facts, which stay when the finger has left', () => {
  const w = shown(['b', 30, 54, false]);
  for (const [place, text] of [
    [at(w, 'a', 24), 'a'],
    [at(w, 'b', 40), span(BEGIN + 30 * HOUR, BEGIN + 54 * HOUR)],
  ]) {
    tap(w, place);
    w.send({type: 'left'});
    assert.ok(words(tipOf(w)).includes(text), words(tipOf(w)));
  }
  assert.equal(w.state.form, null);
});

test('a long press books an hour, and a finger that has moved does not', () => {
  const w = shown(),
    place = at(w, 'b', 24.4);
  w.send({type: 'touched', id: 1, ...place});
  w.pass(1);
  assert.deepEqual(w.state.form?.hosts, ['b']);
  const other = shown();
  other.send({type: 'touched', id: 1, ...place});
  other.send({type: 'slid', id: 1, px: place.px - 40, py: place.py});
  other.pass(1);
  assert.equal(other.state.form, null);
});

test('two fingers zoom', () => {
  const w = shown(),
    {scale} = w.state.view;
  w.send({type: 'touched', id: 1, px: 400, py: 200});
  w.send({type: 'touched', id: 2, px: 500, py: 200});
  w.send({type: 'slid', id: 1, px: 350, py: 200});
  w.send({type: 'slid', id: 2, px: 550, py: 200});
  assert.ok(w.state.view.scale > scale * 1.5);
});

test('an arrow says the host, the time and what is there, in one line', () => {
  const w = shown(['b', 30, 54, true]);
  w.send({type: 'focused'});
  w.state = {...w.state, cursor: {...w.state.cursor, row: 1, at: BEGIN + 40 * HOUR}};
  assert.equal(spoken(w.state), `b, ${when(BEGIN + 40 * HOUR)}: run, ${span(BEGIN + 30 * HOUR, BEGIN + 54 * HOUR)}`);
  const facts = {zone: 'az1', aggregates: ['fast'], properties: {gpu: 'a100'}, reservable: true, state: 'up', instance_count: 0};
  const rows = w.state.rows.map(row => ({...row, host: {...row.host, facts}}));
  const free = spoken({...w.state, rows, cursor: {...w.state.cursor, row: 0}});
  assert.ok(free.startsWith('a, ') && !/az1|fast|a100/.test(free), free);
});

test('the begin of a selection is said at once, and its length and its hosts at each arrow', () => {
  const w = shown(),
    key = (name, more) => w.send({type: 'key', key: name, ...more});
  w.send({type: 'focused'});
  const said = () => w.done.filter(one => one.do === 'said').length,
    before = said();
  key(' ');
  assert.equal(said(), before + 1);
  assert.ok(spoken(w.state).startsWith('Selected: '), spoken(w.state));
  key('ArrowRight');
  key('ArrowDown');
  assert.equal(said(), before + 3);
  assert.ok(/, 1h, 2 hosts\./.test(spoken(w.state)), spoken(w.state));
});

// places returns the addresses that Back would find, the present one last.
function places(w) {
  return w.done.filter(one => one.do === 'address').reduce((list, {path, replace}) => [...(replace ? list.slice(0, -1) : list), path], []);
}

test('Back leads to the place before a move, and not to each step of it', () => {
  const w = shown(),
    first = places(w);
  assert.equal(first.length, 1);
  for (let i = 0; i < 3; i++) w.send({type: 'panned', pixels: 300});
  w.settle();
  w.send({type: 'panned', pixels: 30}); // hardly a move
  w.settle();
  const moved = places(w);
  assert.equal(moved.length, 2);
  assert.equal(moved[0], first[0]);
  w.send({type: 'ranged', name: 'month'});
  w.settle();
  assert.equal(places(w).length, 3);
  w.send({type: 'went', query: new URLSearchParams(first[0].split('?')[1])});
  w.settle();
  assert.equal(w.state.view.start, Number(new URLSearchParams(first[0].split('?')[1]).get('start')));
});

test('facts that are shown stay when the hosts are read again, and tell what is there by then', () => {
  const w = new World();
  w.settle();
  const {view, rows} = w.state,
    place = at => ({px: view.label + (at - view.start) * view.scale, py: HEAD + rows[1].y + 10});
  const start = Math.floor(w.at) + 7200;
  w.send({type: 'touched', id: 1, ...place(start + 600)});
  w.send({type: 'lifted', id: 1, ...place(start + 600)});
  assert.equal(w.state.hover.row.host.name, 'b');
  w.service.book({name: 'theirs', start, duration: 3600, hosts: ['b']}, false);
  w.settle();
  assert.equal(w.state.hover.row.host, w.state.data.hosts.get('b'));
  assert.equal(w.state.hover.claim.start, start, 'what was free is not called so any more');
  w.send({type: 'searched', text: 'd'});
  assert.equal(w.state.hover, null, 'the row is gone');
});
