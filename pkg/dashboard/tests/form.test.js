// SPDX-License-Identifier: Apache-2.0
// What the form asks, sends and forgets.
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {Filled, NOW, lost, offerFor, refused} from './filled.js';
import {canSubmit, draft, isAsking, overlay, restored, resumed, trouble} from '../page/form-state.js';
import {alternatives} from '../page/form-answer.js';
import {complaintOf} from '../page/form-request.js';
import {DAY, HOUR, MINUTE} from '../page/lengths.js';
import {chosen, edited, leave} from '../page/timevalue.js';
import {setZone} from '../page/zones.js';

const text = at => new Date(at * 1000).toISOString().replace('.000Z', 'Z');
const START = NOW + DAY,
  made = {id: 'r1', name: 'run', start: '2026-11-29T14:26:00Z', end: '2026-11-29T16:26:00Z', hosts: ['a']};
const drag = {kind: 'book', hosts: ['a'], all: ['a'], start: START, duration: 2 * HOUR};
const stretch = {kind: 'change', id: 'r1', name: 'run', start: NOW - HOUR, end: NOW + HOUR, until: NOW + 2 * HOUR};
const asItWas = {id: 'r1', name: 'run', start: text(stretch.start), end: text(stretch.end), hosts: ['a']};

afterEach(() => setZone('utc'));
setZone('utc');

// Closing and sending.

test('after a booking is sent nothing is asked for it any more, whatever was typed just before', () => {
  const f = new Filled(drag);
  f.offered();
  f.edit('quantity', '2');
  f.offered();
  f.edit('name', 'typed');
  const before = f.asked.length;
  f.send({type: 'form.submit'});
  assert.equal(f.asked.length, before + 1, 'the booking');
  f.pass(5000);
  f.answer(made, f.last('form.send'));
  f.pass(5000);
  assert.equal(f.asked.length, before + 1);
  assert.equal(f.form, null);
  assert.equal(f.timers.size, 0);
});

test('a booking that is sent while its offer is being renewed ends the renewal', () => {
  const f = new Filled(drag);
  f.offered();
  f.send({type: 'form.changed', start: START, end: START + HOUR});
  f.send({type: 'form.submit'});
  assert.deepEqual([...f.timers.keys()], ['form.slow']);
  f.answer(made, f.last('form.send'));
  assert.equal(f.timers.size, 0);
});

test('a closed form has no timer and asks nothing', () => {
  const f = new Filled(drag);
  f.edit('quantity', '2');
  f.send({type: 'form.close'});
  assert.equal(f.form, null);
  assert.equal(f.timers.size, 0);
  assert.deepEqual(f.asked, []);
});

test('a form takes no answer to a question of the form before it', () => {
  const f = new Filled(drag);
  f.pass();
  const late = f.last();
  f.open({...drag, start: START + DAY});
  f.pass();
  f.answer(offerFor(START), late);
  assert.equal(f.form.offer, null);

  f.send({type: 'form.close'});
  f.open(drag);
  f.pass();
  f.answer(offerFor(START), late);
  assert.equal(f.form.offer, null);
});

test('while it is sent a form stays, and closing it tells that the outcome is open', () => {
  const f = new Filled(drag);
  f.offered();
  f.send({type: 'form.submit'});
  const sending = f.form;
  f.open({...drag, start: START + DAY});
  f.edit('quantity', '7');
  assert.equal(f.form, sending);
  f.send({type: 'form.close'});
  assert.match(f.toast().text, /has not answered/);
  assert.equal(f.toast().undo.type, 'reopened');
});

test('a change of nothing asks nothing and cannot be sent', () => {
  const f = new Filled({...stretch, until: stretch.end});
  f.pass(5000);
  f.send({type: 'form.submit'});
  assert.deepEqual(f.asked, []);
  assert.equal(complaintOf(f.form).field, 'end');
});

test('a field that is left as it was asks nothing', () => {
  const f = new Filled(drag);
  f.offered();
  const before = f.asked.length,
    {start} = f.form.fields;
  f.edit('lasts', f.form.fields.lasts);
  f.edit('start', edited(start, '2026-11-29T1426'));
  f.edit('start', leave(f.form.fields.start));
  f.pass(5000);
  assert.equal(f.asked.length, before);
  assert.ok(canSubmit(f.form));
});

test('only the request whose offer is in view is sent', () => {
  const f = new Filled(drag);
  f.send({type: 'form.submit'});
  f.offered();
  f.edit('quantity', '3');
  f.send({type: 'form.submit'});
  f.pass();
  f.send({type: 'form.submit'});
  assert.deepEqual(f.changes(), []);
  f.answer(offerFor(START));
  f.send({type: 'form.submit'});
  const [{query, ...sent}] = f.changes(),
    {body} = f.last().request;
  assert.deepEqual(sent.body, body);
  assert.equal(sent.body.quantity, 3);
});

test('a name is sent as it is typed, and needs no new offer', () => {
  const f = new Filled(drag);
  f.offered();
  const before = f.asked.length;
  f.edit('name', 'precious');
  f.pass();
  f.send({type: 'form.submit'});
  assert.equal(f.asked.length, before + 1);
  assert.equal(f.changes()[0].body.name, 'precious');
});

test('a request that was sent without an answer is sent again with the same key and the same body', () => {
  const f = new Filled(drag);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer(lost, f.last('form.send'));
  const before = f.asked.length;
  setZone('Europe/Paris');
  f.send({type: 'form.zoned'});
  f.send({type: 'form.changed', start: START, end: START + HOUR});
  f.pass(5000);
  assert.equal(f.asked.length, before);
  assert.ok(f.form.unsure);
  f.send({type: 'form.submit'});
  const [first, second] = f.changes();
  assert.equal(first.headers['Idempotency-Key'], second.headers['Idempotency-Key']);
  assert.deepEqual(first.body, second.body);
});

test('another request after one without an answer has another key, and the form warns', () => {
  const f = new Filled(drag);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer(lost, f.last('form.send'));
  f.edit('name', 'another');
  assert.ok(f.form.doubt);
  assert.equal(f.form.offer, null);
  f.offered();
  f.send({type: 'form.submit'});
  const [first, second] = f.changes();
  assert.notEqual(first.headers['Idempotency-Key'], second.headers['Idempotency-Key']);
});

test('a new drag after a request without an answer keeps the warning', () => {
  const f = new Filled(drag);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer(lost, f.last('form.send'));
  f.open({...drag, start: START + DAY});
  assert.ok(f.form.doubt);
});

test('the toast after a booking cancels it, and the one after a change brings the time back', () => {
  const f = new Filled(drag);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer(made, f.last('form.send'));
  assert.deepEqual(f.toast().undo.request, {method: 'DELETE', path: 'v1/reservations/r1'});
  const c = new Filled(stretch);
  c.offered(offerFor(stretch.start, 3 * HOUR));
  c.send({type: 'form.submit'});
  assert.deepEqual(c.changes()[0].body, {end_time: '2026-11-28T16:26:00Z'});
  c.answer({...made, start: '2026-11-28T13:26:00Z', end: '2026-11-28T16:26:00Z'}, c.last('form.send'));
  assert.deepEqual(c.toast().undo.request.body, {end_time: '2026-11-28T15:26:00Z'});
  const m = new Filled({...stretch, kind: 'move', start: NOW + HOUR, end: NOW + 2 * HOUR, from: NOW + 3 * HOUR, until: NOW + 4 * HOUR});
  m.offered();
  m.send({type: 'form.submit'});
  m.answer(made, m.last('form.send'));
  assert.deepEqual(m.toast().undo.request.body, {start_time: '2026-11-28T15:26:00Z', end_time: '2026-11-28T16:26:00Z'});
});

// Exact times.

test('the zone that is shown changes no time, only how the default name says it', () => {
  const f = new Filled(drag);
  f.offered();
  const body = f.last().request.body;
  setZone('Europe/Paris');
  f.send({type: 'form.zoned'});
  f.send({type: 'form.submit'});
  assert.equal(f.changes()[0].body.start_time, body.start_time);
  assert.match(body.name, /14:26/);
  assert.match(f.changes()[0].body.name, /15:26/);
});

test('a drag over the hour that comes twice keeps its instants, to the second', () => {
  setZone('Europe/Paris');
  const twice = Date.UTC(2027, 9, 31, 1) / 1000,
    f = new Filled({...drag, start: twice + 7, duration: 2 * HOUR});
  f.offered();
  assert.deepEqual([f.last().request.body.start_time, f.last().request.body.duration], ['2027-10-31T01:00:07Z', 7200]);
  f.edit('start', edited(f.form.fields.start, '2027-10-31T02:30'));
  f.pass();
  assert.equal(f.last().request.body.start_time, '2027-10-31T01:30:00Z', 'the half of the hour in which it was');
  f.edit('start', chosen(f.form.fields.start, twice - HOUR / 2));
  f.pass();
  assert.equal(f.last().request.body.start_time, '2027-10-31T00:30:00Z', 'the other half, as it was chosen');
});

test('a drag from the past until a time of the clock ends at that time', () => {
  const end = NOW + 94 * MINUTE,
    f = new Filled({...drag, start: NOW + 0.4, duration: end - NOW - 0.4});
  f.offered();
  assert.deepEqual(f.last().request.body.end_time, '2026-11-28T16:00:00Z');
  assert.equal(f.last().request.body.duration, undefined);
});

test('an earlier start that is taken keeps the length, also of a drag from now', () => {
  const f = new Filled({...drag, start: NOW, duration: 94 * MINUTE});
  f.pass();
  f.answer(refused({earliest_start: '2026-11-28T20:00:00Z'}));
  f.choose(alternatives(f.form)[0].choice);
  f.pass();
  assert.deepEqual([f.last().request.body.start_time, f.last().request.body.duration], ['2026-11-28T20:00:00Z', 94 * MINUTE]);
});

test('a changed end with seconds keeps them until its field is edited', () => {
  const f = new Filled({...stretch, until: NOW + 3 * HOUR + 17});
  f.pass();
  assert.deepEqual(f.last().request.body, {end_time: '2026-11-28T17:26:17Z'});
});

// What the user has filled in stays.

test('another drag moves time, length and hosts, and keeps name, kind, sizes and filter', () => {
  const f = new Filled(drag);
  f.edit('name', 'precious');
  f.edit('kind', 'instance');
  f.edit('vcpus', '7');
  f.edit('quantity', '12');
  f.edit('filter', '["=","$gpu","a100"]');
  f.edit('lasts', '5h');
  f.open({kind: 'book', hosts: ['b', 'c'], all: ['b', 'c'], start: START + DAY, duration: 3 * HOUR, filter: ''});
  const {name, kind, vcpus, quantity, filter, lasts, start} = f.form.fields;
  assert.deepEqual([name, kind, vcpus, quantity, filter], ['precious', 'instance', '7', '12', '["=","$gpu","a100"]']);
  assert.deepEqual([lasts, start.at, f.form.hosts], ['3h', START + DAY, ['b', 'c']]);
});

test('the button Book leaves an open form as it is, with the hosts of its drag', () => {
  const f = new Filled({...drag, hosts: ['a', 'b'], all: ['a', 'b']});
  f.edit('name', 'precious');
  f.offered();
  const {host_properties: before} = f.last().request.body;
  f.open({kind: 'book', hosts: [], all: [], duration: 0});
  f.offered();
  assert.equal(f.form.fields.name, 'precious');
  assert.equal(f.form.fields.start.at, START);
  assert.deepEqual(f.last().request.body.host_properties, before);
});

test('a filled booking comes back after a change, a maintenance or another reservation that is booked again', () => {
  const reservation = {...made, kind: 'host', quantity: 2, host_properties: ['=', '$gpu', 'a100'], maintenance: false};
  for (const from of [stretch, {kind: 'maintain', all: ['z'], hosts: []}, {kind: 'again', reservation}]) {
    const f = new Filled(drag);
    f.edit('name', 'precious');
    f.open(from);
    assert.notEqual(f.form.fields.name, 'precious');
    f.send({type: 'form.close'});
    assert.equal(f.form.fields.name, 'precious');
    assert.ok(isAsking(f.form));
    f.offered();
    assert.ok(canSubmit(f.form));
  }
  const f = new Filled(drag);
  f.open(stretch);
  f.send({type: 'form.close'});
  assert.equal(f.form, null, 'a form without anything of the user does not come back');
});

test('a new drag over a change brings the filled booking back, with the time of the drag', () => {
  const f = new Filled(drag);
  f.edit('name', 'precious');
  f.open(stretch);
  f.open({...drag, start: START + DAY});
  assert.deepEqual([f.form.fields.name, f.form.fields.start.at, f.form.behind], ['precious', START + DAY, null]);
});

test('a form survives a reload, with half-typed times and the form behind it', () => {
  const f = new Filled(drag);
  f.edit('name', 'precious');
  f.edit('start', edited(f.form.fields.start, '2026-11-'));
  f.open({...stretch, movable: true});
  const [back, ...effects] = resumed(restored(draft(f.form)));
  assert.deepEqual([back.mode, back.id, back.before, back.movable], ['change', 'r1', f.form.before, true]);
  assert.deepEqual(back.fields, f.form.fields);
  assert.ok(effects.some(one => one?.event?.type === 'form.ask'));
  assert.deepEqual(back.behind.fields, f.form.behind.fields);
  assert.ok(Number.isNaN(back.behind.fields.start.at));
  assert.equal(back.behind.key, f.form.behind.key, 'the key of the booking stays');
});

test('a booking that was under way at a reload leaves a warning', () => {
  const f = new Filled(drag);
  f.offered();
  f.send({type: 'form.submit'});
  assert.ok(restored(draft(f.form)).doubt);
});

test('a text that is no draft, or one of another version of the page, restores nothing', () => {
  for (const text of [null, '', '{', '[]', 'null', '{"version":0,"mode":"book","fields":{}}', '{"version":1}']) assert.equal(restored(text), null, text);
});

test('a filled form that is closed can be brought back', () => {
  const f = new Filled(drag);
  f.edit('name', 'precious');
  f.send({type: 'form.close'});
  assert.equal(restored(f.toast().undo.draft).fields.name, 'precious');
  const g = new Filled(drag);
  g.send({type: 'form.close'});
  assert.equal(g.toast(), undefined);
});

const again = {
  ...made,
  kind: 'instance',
  quantity: 3,
  host_properties: ['=', '$gpu', 'a100'],
  resources: {vcpus: 2, memory_mb: 512, custom: {CUSTOM_GPU: 1}},
  affinity: 'same',
  image: 'ubuntu',
  policy: 'pe-best-fit',
  on_end: 'shelve',
  before_end: 1800,
};

test('booking again takes the terms of the reservation, also those without fields', () => {
  const f = new Filled({kind: 'again', reservation: again});
  f.pass();
  assert.deepEqual(f.last().request.body, {
    name: 'run',
    duration: 7200,
    kind: 'instance',
    quantity: 3,
    resources: {vcpus: 2, memory_mb: 512, disk_gb: 0, custom: {CUSTOM_GPU: 1}},
    affinity: 'same',
    host_properties: ['=', '$gpu', 'a100'],
    image: 'ubuntu',
    policy: 'pe-best-fit',
    on_end: 'shelve',
    before_end: 1800,
  });
});

test('booking again has the same place', () => {
  const places = [
    {by: 'rack', rule: 'same', required: false},
    {by: 'rack', rule: 'spread', values: 3, required: true, apart_from: ['r7', 'r8']},
    {by: 'rack', required: true, apart_from: ['r7']},
  ];
  for (const place of places) {
    const f = new Filled({kind: 'again', reservation: {...again, together: {...place, kept: false}}});
    f.pass();
    assert.deepEqual(f.last().request.body.together, place);
  }
  const f = new Filled({kind: 'again', reservation: {...again, together: {by: 'rack', rule: 'fewest', required: false, kept: true}}});
  f.pass();
  assert.deepEqual(f.last().request.body.together, {by: 'rack', rule: 'fewest'});
});

test('a place is asked for once a property is chosen, and needs a rule or a reservation to lie apart from', () => {
  const f = new Filled(drag);
  f.offered();
  assert.equal('together' in f.last().request.body, false);
  f.edit('placeBy', 'rack');
  assert.equal(f.form.offer, null, 'the offer of before is of anywhere');
  f.offered();
  assert.deepEqual(f.last().request.body.together, {by: 'rack', rule: 'same', required: true});
  f.edit('placeRule', 'spread');
  f.edit('placeValues', '1');
  assert.equal(complaintOf(f.form).field, 'placeValues');
  f.edit('placeValues', '3');
  f.edit('placeRequired', false);
  f.offered();
  assert.deepEqual(f.last().request.body.together, {by: 'rack', rule: 'spread', values: 3, required: false});
  f.edit('placeRule', 'none');
  assert.equal(complaintOf(f.form).field, 'placeRule');
  f.edit('apartFrom', 'r7');
  f.offered();
  assert.deepEqual(f.last().request.body.together, {by: 'rack', required: false, apart_from: ['r7']});
});

test('nobody is told when the same has room if that depends on where the hosts lie', () => {
  const f = new Filled(drag);
  f.edit('placeBy', 'rack');
  f.offered();
  assert.equal(f.last('form.windows'), undefined);
  f.edit('placeRequired', false);
  f.offered();
  assert.ok(f.last('form.windows'));
});

test('the terms without fields can be left out', () => {
  const f = new Filled({kind: 'again', reservation: again});
  f.edit('withTerms', false);
  f.pass();
  assert.deepEqual(f.last().request.body, {
    name: 'run',
    duration: 7200,
    kind: 'instance',
    quantity: 3,
    resources: {vcpus: 2, memory_mb: 512, disk_gb: 0},
    host_properties: ['=', '$gpu', 'a100'],
  });
});

// The name of a booking.

test('the default name is that of the start until the user writes one', () => {
  const f = new Filled(drag);
  assert.match(f.form.fields.name, /Nov 29, 14:26 UTC$/);
  f.edit('start', edited(f.form.fields.start, '2026-12-05T09:00'));
  assert.match(f.form.fields.name, /Dec 5, 09:00 UTC$/);
  f.edit('when', 'between');
  f.offered(offerFor(Date.UTC(2026, 11, 6, 7) / 1000));
  assert.match(f.form.fields.name, /Dec 6, 07:00 UTC$/, 'the service has chosen the start');
  assert.ok(canSubmit(f.form));
  f.edit('name', 'mine');
  f.edit('when', 'at');
  assert.equal(f.form.fields.name, 'mine');
});

// Find time.

const month = [Date.UTC(2026, 11, 1) / 1000, Date.UTC(2027, 0, 1) / 1000];

test('a length can be asked for between two times, and the windows are those of these times', () => {
  const f = new Filled({kind: 'book', filter: '["=","$gpu","a100"]'});
  f.choose({what: 'between', from: month[0], until: month[1]});
  f.edit('quantity', '3');
  f.edit('lasts', '2 days');
  f.offered(offerFor(month[0], 2 * DAY));
  const {body} = f.last().request,
    {query} = f.last('form.windows').request;
  assert.deepEqual([body.start_time, body.end_time, body.duration, body.quantity], ['2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z', 2 * DAY, 3]);
  assert.deepEqual(query, {
    duration: 2 * DAY,
    quantity: 3,
    host_properties: '["=","$gpu","a100"]',
    start: '2026-12-01T00:00:00Z',
    end: '2027-01-01T00:00:00Z',
  });
});

test('a window is drawn as a band, and one click takes its start', () => {
  const f = new Filled();
  f.choose({what: 'between', from: month[0], until: month[1]});
  f.offered(offerFor(month[0]));
  const window = {start: '2026-12-03T10:00:20Z', end: '2026-12-04T10:00:00Z', latest_start: '2026-12-04T08:00:00Z', free: 4};
  f.answer({windows: [window]}, f.last('form.windows'));
  assert.equal(overlay(f.form).windows[0].free, 4);
  f.choose({what: 'start', at: Date.UTC(2026, 11, 3, 10, 1) / 1000});
  f.pass();
  assert.deepEqual([f.last().request.body.start_time, f.last().request.body.end_time], ['2026-12-03T10:01:00Z', undefined]);
});

test('the windows beside a fixed start are those of the two weeks from it, and from now without one', () => {
  const f = new Filled(drag);
  f.offered();
  const {start, end} = f.last('form.windows').request.query;
  assert.deepEqual([start, end], ['2026-11-29T14:26:00Z', '2026-12-13T14:26:00Z']);
  const g = new Filled();
  g.pass();
  g.answer(refused({}));
  assert.match(g.last('form.windows').request.query.end, /^2026-12-12T14:26/);
});

test('windows that could not be read are asked for again', () => {
  const f = new Filled(drag);
  f.offered();
  f.answer(lost, f.last('form.windows'));
  const before = f.asked.length;
  f.pass(2000);
  assert.equal(f.asked.length, before + 1);
  f.answer({windows: []}, f.last('form.windows'));
  assert.deepEqual(f.form.questions.open, {});
});

test('the default deadline always has room for the length', () => {
  const f = new Filled();
  f.edit('when', 'between');
  for (const lasts of ['2 days', '7d', '30 days', '400 days']) {
    f.edit('lasts', lasts);
    assert.equal(complaintOf(f.form), null, lasts);
  }
  f.edit('earliest', edited(f.form.fields.earliest, '2027-06-01T00:00'));
  assert.equal(complaintOf(f.form), null);
});

test('a deadline that is too early for the length has a later one to take', () => {
  const f = new Filled();
  f.choose({what: 'between', from: month[0], until: month[0] + DAY});
  f.edit('lasts', '2 days');
  const {field, choice} = complaintOf(f.form);
  assert.deepEqual([field, choice.at], ['deadline', month[0] + 2 * DAY]);
  f.choose(choice);
  assert.equal(complaintOf(f.form), null);
});

test('a refusal between two times has the earliest start to take', () => {
  const f = new Filled();
  f.choose({what: 'between', from: month[0], until: month[1]});
  f.pass();
  f.answer(refused({earliest_start: '2027-01-27T15:25:10Z', largest_quantity: 0}));
  const [{id, choice}] = alternatives(f.form);
  assert.equal(id, 'take-earliest');
  f.choose(choice);
  f.pass();
  assert.equal(f.last().request.body.start_time, '2027-01-27T15:26:00Z');
  assert.deepEqual(f.done.at(-1), {do: 'focus', id: 'confirm'}, 'the keyboard goes on from there');
});

test('maintenance has a fixed start', () => {
  const f = new Filled({...drag, all: ['a', 'b']});
  f.choose({what: 'between', from: month[0], until: month[1]});
  f.edit('kind', 'maintenance');
  f.edit('name', 'memory');
  f.pass();
  const {body} = f.last().request;
  assert.deepEqual([body.start_time, body.end_time, body.hosts], ['2026-12-01T00:00:00Z', undefined, ['a', 'b']]);
});

// The end as an alternative to the length.

test('an end can be written instead of a length, and each follows the other', () => {
  const f = new Filled(drag);
  assert.equal(f.form.fields.end.at, START + 2 * HOUR);
  f.edit('end', edited(f.form.fields.end, '2026-11-30T12:00'));
  assert.equal(f.form.fields.lasts, '21h 34m');
  f.pass();
  assert.deepEqual([f.last().request.body.start_time, f.last().request.body.end_time], ['2026-11-29T14:26:00Z', '2026-11-30T12:00:00Z']);
  f.edit('lasts', '3h');
  assert.equal(f.form.fields.end.at, START + 3 * HOUR);
  f.edit('start', edited(f.form.fields.start, '2026-12-01T08:00'));
  assert.equal(f.form.fields.end.at, Date.UTC(2026, 11, 1, 11) / 1000);
});

test('an end before the start is said, and nothing is asked', () => {
  const f = new Filled(drag);
  f.offered();
  const before = f.asked.length;
  f.edit('end', edited(f.form.fields.end, '2026-11-29T12:00'));
  f.pass();
  assert.equal(complaintOf(f.form).field, 'end');
  assert.equal(f.asked.length, before);
  assert.ok(!canSubmit(f.form));
});

test('the end of a booking that begins now is that of the offer', () => {
  const f = new Filled();
  f.offered(offerFor(NOW + 5 * MINUTE, 2 * HOUR, {delayed_by_boot: true}));
  assert.equal(f.form.fields.end.at, NOW + 5 * MINUTE + 2 * HOUR);
  f.edit('end', edited(f.form.fields.end, '2026-11-28T20:00'));
  f.offered();
  assert.equal(f.last().request.body.end_time, '2026-11-28T20:00:00Z');
});

// An extension that is refused.

const neighbor = {host: 'a', start: '2026-11-28T15:26:00Z', end: '2026-11-29T15:26:00Z', reservations: [{id: 'r2', name: 'neighbor'}]};

test('a refused extension shows what is in the way, and the latest end is one click', () => {
  const f = new Filled({...stretch, end: NOW + HOUR, until: NOW + 9 * HOUR});
  f.pass();
  f.answer(refused({blocked_by: [neighbor], latest_end: '2026-11-28T18:26:00Z'}));
  assert.equal(overlay(f.form).blocked[0].reservations[0].name, 'neighbor');
  const until = alternatives(f.form).find(one => one.id === 'take-until');
  f.choose(until.choice);
  f.pass();
  assert.deepEqual(f.last().request.body, {end_time: '2026-11-28T18:26:00Z'});
});

test('an extension without any later end has a next step: the rest on other hosts', () => {
  const f = new Filled({...stretch, until: NOW + 9 * HOUR});
  f.pass();
  f.answer(refused({blocked_by: [neighbor], earliest_start: '2026-11-29T15:26:00Z', latest_end: '2026-11-28T15:26:00Z'}));
  assert.deepEqual(alternatives(f.form), [], 'nobody knows yet whether it is possible');
  const reservation = {...made, kind: 'host', quantity: 2};
  f.answer(reservation, f.last('form.longer'));
  assert.deepEqual(alternatives(f.form), []);
  const {path, body, query} = f.last('form.elsewhere').request;
  assert.deepEqual([path, body.start_time, body.duration, body.quantity, query], ['v1/reservations', '2026-11-28T15:26:00Z', 8 * HOUR, 2, {dry_run: true}]);
  f.answer(offerFor(stretch.end, 8 * HOUR), f.last('form.elsewhere'));
  const list = alternatives(f.form);
  assert.deepEqual(
    list.map(one => one.id),
    ['take-elsewhere'],
  );
  f.choose(list[0].choice);
  assert.deepEqual(f.done.at(-1), {do: 'bookAgain', id: 'r1', begins: stretch.end, lasts: 8 * HOUR});
  f.open({kind: 'again', reservation, begins: stretch.end, lasts: 8 * HOUR});
  f.pass();
  assert.deepEqual([f.last().request.body.start_time, f.last().request.body.duration], ['2026-11-28T15:26:00Z', 8 * HOUR]);
});

test('the rest on other hosts is not proposed if the service refuses it, or for another end than the one it was asked for', () => {
  const f = new Filled({...stretch, until: NOW + 9 * HOUR}),
    reservation = {...made, kind: 'host', quantity: 2};
  f.pass();
  f.answer(refused({blocked_by: [neighbor]}));
  f.answer(reservation, f.last('form.longer'));
  f.answer(refused({largest_quantity: 1}), f.last('form.elsewhere'));
  assert.deepEqual(alternatives(f.form), []);

  f.edit('end', edited(f.form.fields.end, '2026-11-28T20:00'));
  f.pass();
  f.answer(refused({blocked_by: [neighbor]}));
  f.answer(reservation, f.last('form.longer'));
  f.answer(offerFor(stretch.end), f.last('form.elsewhere'));
  assert.equal(alternatives(f.form)[0].id, 'take-elsewhere');
  f.edit('end', edited(f.form.fields.end, '2026-11-28T21:00'));
  f.pass();
  f.answer(refused({blocked_by: [neighbor]}));
  assert.deepEqual(alternatives(f.form), []);
});

test('a reservation that is booked again has its name, and a name with its start follows the start', () => {
  const again = (name, more = {}) => new Filled({kind: 'again', reservation: {...made, name, kind: 'host', quantity: 1}, begins: START, lasts: HOUR, ...more}).form.fields.name;
  assert.equal(again('training run 8'), 'training run 8');
  assert.equal(again('reservation for Ada'), 'reservation for Ada');
  for (const old of ['reservation Fri, Dec 4, 07:00 CET', 'reservation Fri 4 Dec, 07:00', 'reservation Sun 4 Apr 2027, 23:30 UTC−3']) assert.match(again(old), /Nov 29, 14:26 UTC$/, old);
});

test('a reservation that has not begun can move to where it has room, with its length', () => {
  const f = new Filled({...stretch, start: NOW + HOUR, end: NOW + 2 * HOUR, until: NOW + 9 * HOUR, movable: true});
  f.pass();
  f.answer(refused({blocked_by: [neighbor], earliest_start: '2026-11-29T15:26:00Z'}));
  f.choose(alternatives(f.form).find(one => one.id === 'take-move').choice);
  f.pass();
  assert.deepEqual(f.last().request.body, {start_time: '2026-11-29T15:26:00Z', end_time: '2026-11-29T23:26:00Z'});
});

// Events, waiting and failures.

test('an event that touches the offer renews it, and the offer stays in view until the answer', () => {
  const f = new Filled(drag);
  f.offered();
  const before = f.asked.length;
  f.send({type: 'form.changed', start: START + 3 * HOUR, end: START + 4 * HOUR, hosts: ['a']});
  f.pass(2000);
  assert.equal(f.asked.length, before, 'another time touches nothing');
  for (let i = 0; i < 10; i++) f.send({type: 'form.changed', start: START, end: START + HOUR, hosts: ['a']});
  assert.ok(canSubmit(f.form));
  f.pass(2000);
  assert.equal(f.asked.length, before + 1, 'ten events make one question');
  f.answer(refused({blocked_by: [neighbor]}));
  assert.ok(f.form.refusal);
  assert.equal(overlay(f.form).offer, null);
  assert.ok(!canSubmit(f.form));
});

test('an event makes a refused request ask again', () => {
  const f = new Filled(drag);
  f.pass();
  f.answer(refused({blocked_by: [neighbor]}));
  f.send({type: 'form.changed', start: START, end: START + HOUR, hosts: ['a']});
  f.pass(2000);
  f.answer(offerFor(START));
  assert.ok(canSubmit(f.form));
});

test('an event while an answer is awaited makes the form ask once more', () => {
  const f = new Filled(drag);
  f.pass();
  f.send({type: 'form.changed', start: START, end: START + HOUR, hosts: ['a']});
  const before = f.asked.filter(one => one.key === 'form.offer').length;
  f.answer(offerFor(START));
  f.pass(2000);
  assert.equal(f.asked.filter(one => one.key === 'form.offer').length, before + 1);
});

test('a question without an answer is asked again after growing times, and at once by hand', () => {
  const f = new Filled(drag);
  f.pass();
  let waited = 0;
  for (let i = 0; i < 5; i++) {
    f.answer(lost);
    assert.equal(trouble(f.form), lost);
    assert.ok(!canSubmit(f.form));
    const {ms} = f.timers.get('form.offer');
    assert.ok(ms > waited);
    waited = ms;
    const before = f.asked.length;
    f.pass(ms);
    assert.equal(f.asked.length, before + 1);
  }
  f.answer(lost);
  const before = f.asked.length;
  f.send({type: 'again', key: 'form.offer'});
  assert.equal(f.asked.length, before + 1);
  f.answer(offerFor(START));
  assert.ok(canSubmit(f.form));
});

test('a late answer is said while the form waits for it', () => {
  const f = new Filled(drag);
  f.pass();
  assert.ok(isAsking(f.form));
  f.pass(5000);
  assert.ok(f.form.slow);
  f.answer(offerFor(START));
  assert.ok(!f.form.slow);
  const g = new Filled(drag);
  g.pass();
  g.answer(offerFor(START));
  g.pass(9000);
  assert.ok(!g.form.slow);
});

// What is missing.

test('each thing that is missing or wrong is said, and nothing is asked then', () => {
  const wrong = {
    name: ['', ' '],
    quantity: ['', '0', '1.5', 'x'],
    lasts: ['', '2 moons', '0'],
  };
  for (const [field, values] of Object.entries(wrong))
    for (const value of values) {
      const f = new Filled(drag);
      f.edit(field, value);
      f.pass(5000);
      assert.equal(complaintOf(f.form)?.field, field, `${field} ${value}`);
      assert.ok(complaintOf(f.form).message);
      assert.deepEqual(f.asked, []);
    }
});

test('durations are read as people write them', () => {
  for (const [text, seconds] of Object.entries({'2 hours': 7200, 90: 5400, '48:00': 172800, '1d 12h': 129600})) {
    const f = new Filled(drag);
    f.edit('lasts', text);
    f.pass();
    assert.equal(f.last().request.body.duration, seconds, text);
  }
});

test('a condition that is typed but not added keeps the form from being sent', () => {
  const f = new Filled(drag);
  f.offered();
  f.edit('unadded', 'gpu=a100');
  f.send({type: 'form.submit'});
  assert.deepEqual(f.changes(), []);
  assert.equal(complaintOf(f.form).field, 'filter');
  f.edit('unadded', '');
  f.edit('filter', '["=","$gpu","a100"]');
  f.offered();
  f.send({type: 'form.submit'});
  assert.deepEqual(f.changes()[0].body.host_properties, ['and', ['=', '$gpu', 'a100'], ['=', '$name', 'a']]);
});

// A wish in words.

const gpus = {properties: [{name: 'gpu', type: 'string', values: ['a100'], built_in: false}]};

test('a wish in words becomes fields, which the user sees before the offer', () => {
  const f = new Filled({...drag, hosts: ['a', 'b'], all: ['a', 'b']});
  f.edit('words', '3 GPU hosts for two days next month');
  f.send({type: 'form.submit'});
  f.send({type: 'form.wish', enter: true});
  f.answer(gpus, f.last('form.properties'));
  const {quantity, lasts, when, filter, only, words} = f.form.fields;
  assert.deepEqual([quantity, lasts, when, filter, only, words], ['3', '2d', 'between', '["=","$gpu","a100"]', false, '']);
  assert.deepEqual(f.done.at(-1), {do: 'focus', id: 'confirm'});
  f.offered(offerFor(Date.UTC(2026, 11, 3, 5) / 1000, 2 * DAY));
  f.send({type: 'form.submit'});
  assert.equal(f.changes().length, 1);
  const {name, ...sent} = f.changes()[0].body;
  assert.deepEqual(sent, {
    duration: 2 * DAY,
    start_time: '2026-12-03T05:00:00Z', // the time that was seen, not any one between the two
    kind: 'host',
    quantity: 3,
    host_properties: ['=', '$gpu', 'a100'],
  });
});

test('each wish in words begins anew, and what the user has changed since the one before stays', () => {
  const f = new Filled({kind: 'book'}),
    wish = text => {
      f.edit('words', text);
      f.send({type: 'form.wish', enter: true});
    };
  wish('2 gpu for 3h tomorrow');
  f.answer(gpus, f.last('form.properties'));
  assert.deepEqual([f.form.fields.when, f.form.fields.filter], ['between', '["=","$gpu","a100"]']);
  f.offered();
  wish('two hosts for a week');
  const {quantity, lasts, when, filter} = f.form.fields;
  assert.deepEqual([quantity, lasts, when, filter], ['2', '7d', 'now', '']);
  f.offered();
  f.edit('quantity', '5');
  wish('4h from 1 Dec to 3 Dec');
  assert.deepEqual([f.form.fields.quantity, f.form.fields.lasts, f.form.fields.when], ['5', '4h', 'between']);
});

test('a wish for a start or for all of the time between two days sets the start and the end', () => {
  const f = new Filled({kind: 'book'});
  f.edit('words', 'a host for 3h tomorrow at 10:00');
  f.send({type: 'form.wish'});
  f.answer(gpus, f.last('form.properties'));
  f.pass();
  const asked = () => [f.last().request.body.start_time, f.last().request.body.duration, f.last().request.body.end_time];
  assert.deepEqual(asked(), ['2026-11-29T10:00:00Z', 3 * HOUR, undefined]);
  f.edit('words', '2 hosts from Monday to Wednesday');
  f.send({type: 'form.wish'});
  f.pass();
  assert.deepEqual([...asked(), f.form.fields.lasts], ['2026-11-30T00:00:00Z', undefined, '2026-12-03T00:00:00Z', '3d']);
});

test('words that are not taken over, or not understood, keep the form from being sent', () => {
  const f = new Filled(drag);
  f.offered();
  f.edit('words', '3 quantum hosts');
  assert.equal(complaintOf(f.form).field, 'words');
  f.send({type: 'form.wish'});
  f.answer(gpus, f.last('form.properties'));
  assert.match(complaintOf(f.form).message, /quantum/);
  f.send({type: 'form.submit'});
  assert.deepEqual(f.changes(), []);
  f.edit('words', '');
  assert.ok(canSubmit(f.form), 'the offer before is still in view');
});

test('words wait for the properties of the hosts if these cannot be read', () => {
  const f = new Filled(drag);
  f.edit('words', '3 GPU');
  f.send({type: 'form.wish'});
  f.answer(lost, f.last('form.properties'));
  f.edit('quantity', '2');
  f.pass(2000);
  f.answer(gpus, f.last('form.properties'));
  assert.deepEqual([f.form.fields.quantity, f.form.fields.words], ['3', '']);
});

// What others do meanwhile.

test('a change is meant for the edges that the user moves, as they were drawn', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.submit'});
  const {method, body, provided} = f.last('form.send').request;
  assert.deepEqual([method, body, provided], ['PATCH', {end_time: text(stretch.until)}, {end: asItWas.end}]);
  const m = new Filled({...stretch, kind: 'move', start: NOW + HOUR, end: NOW + 2 * HOUR, from: NOW + 3 * HOUR, until: NOW + 4 * HOUR});
  m.offered();
  m.send({type: 'form.submit'});
  assert.deepEqual(m.last('form.send').request.provided, {start: text(NOW + HOUR), end: text(NOW + 2 * HOUR)});
});

test('a change of what somebody has changed is not made, and the form tells what it is now', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer({...lost, status: 412, passes: false, now: {...asItWas, end: text(NOW + 8 * HOUR)}}, f.last('form.send'));
  assert.equal(f.changes().length, 1);
  assert.deepEqual([f.form.sending, f.form.before.end, f.form.offer, f.form.refusal], [false, NOW + 8 * HOUR, null, null]);
  assert.match(f.toast().text, /was changed meanwhile/);
});

test('a change that is sent again without an answer and was made is done', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer(lost, f.last('form.send'));
  f.send({type: 'form.submit'});
  f.answer({...lost, status: 412, passes: false, now: {...asItWas, end: text(stretch.until)}}, f.last('form.send'));
  assert.equal(f.form, null);
});

test('a reservation that cannot be read before its change is not changed, and the form can be sent again', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer({...lost, unsent: true}, f.last('form.send'));
  assert.deepEqual([f.form.sending, f.form.unsure], [false, false]);
  assert.ok(canSubmit(f.form));
});

test('a change that was not sent asks again: what happened while it was on its way may have made its offer old', () => {
  const f = new Filled(stretch);
  f.offered();
  const first = f.last();
  f.send({type: 'form.submit'});
  f.send({type: 'form.changed', start: -Infinity, end: Infinity});
  f.answer({...lost, unsent: true}, f.last('form.send'));
  f.pass(1000);
  assert.notEqual(f.last(), first);
  f.answer(refused({}));
  assert.deepEqual([f.form.offer, canSubmit(f.form)], [null, false]);
});

test('the form of a change closes when the reservation was canceled while a change was on its way that was not sent', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.submit'});
  f.send({type: 'form.changed', id: 'r1', status: 'canceled', start: 0, end: 1});
  assert.ok(f.form?.sending, 'the outcome is still open');
  f.answer({...lost, unsent: true}, f.last('form.send'));
  assert.equal(f.form, null);
  assert.match(f.toast().text, /cannot be reached/);
});

test('a change that is refused when it is sent again is refused, and not open any more', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer(lost, f.last('form.send'));
  f.send({type: 'form.submit'});
  f.answer(refused({}, 'the reservation is canceled'), f.last('form.send'));
  assert.deepEqual([f.form.unsure, f.form.doubt, f.form.offer, f.form.refusal.message], [false, true, null, 'the reservation is canceled']);
});

test('the form of a change closes when the reservation is canceled or over', () => {
  for (const status of ['canceled', 'ended', 'failed']) {
    const f = new Filled(stretch);
    f.offered();
    f.send({type: 'form.changed', id: 'r2', status, start: 0, end: 1});
    assert.ok(f.form);
    f.send({type: 'form.changed', id: 'r1', status, start: 0, end: 1});
    assert.equal(f.form, null, status);
  }
});

// What grows old.

test('an offer from now on is asked for again every half minute, and goes when a minute brings no answer', () => {
  const f = new Filled({kind: 'book'});
  f.offered();
  assert.ok(canSubmit(f.form));
  const first = f.last();
  f.pass(30000);
  assert.notEqual(f.last(), first);
  f.answer(offerFor(Math.floor(f.at)));
  assert.equal(f.form.offer.start, Math.floor(f.at));
  f.pass(30000);
  assert.ok(canSubmit(f.form), 'the offer stays in view while the next one is asked for');
  f.pass(30000);
  assert.equal(f.form.offer, null);
  assert.equal(canSubmit(f.form), false);
});

test('an offer at a time does not grow old', () => {
  const f = new Filled(drag);
  f.offered();
  const before = f.asked.length;
  f.pass(90000);
  assert.equal(f.asked.length, before);
});

test('events ask again when there is room, at most every five seconds, also where there was none', () => {
  const f = new Filled(drag),
    windows = [{start: '2026-11-29T14:26:00Z', end: '2026-12-09T14:26:00Z', latest_start: '2026-12-09T12:26:00Z', free: 3}];
  f.offered();
  f.answer({windows}, f.last('form.windows'));
  const count = () => f.asked.filter(one => one.key === 'form.windows').length;
  for (let i = 0; i < 3; i++) f.send({type: 'form.changed', start: START + 5 * DAY, end: START + 6 * DAY});
  assert.equal(count(), 1);
  f.pass(5000);
  assert.equal(count(), 2);
  f.answer({windows: []}, f.last('form.windows'));
  assert.deepEqual(f.form.windows, []);
  f.send({type: 'form.changed', start: START + 5 * DAY, end: START + 6 * DAY});
  f.pass(5000);
  assert.equal(count(), 3);
});

test('a change follows what somebody else has made of the reservation, and keeps the edge that the user has moved', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.overtaken', name: 'renamed', start: NOW - 2 * HOUR, end: NOW + 90 * MINUTE});
  const {before, fields, offer} = f.form;
  assert.deepEqual(before, {name: 'renamed', start: NOW - 2 * HOUR, end: NOW + 90 * MINUTE});
  assert.deepEqual([fields.start.at, fields.end.at, offer], [NOW - 2 * HOUR, NOW + 2 * HOUR, null]);
  assert.match(f.toast().text, /^renamed was changed meanwhile/);
});

test('a change without an answer is done when the calendar shows it', () => {
  const f = new Filled(stretch);
  f.offered();
  f.send({type: 'form.submit'});
  f.answer(lost, f.last('form.send'));
  f.send({type: 'form.overtaken', name: 'run', start: NOW - HOUR, end: NOW + 2 * HOUR});
  assert.equal(f.form, null);
});

test('the message of a booking names its hosts', () => {
  for (const [hosts, text] of [[['b'], 'b'], [['a', 'b', 'c', 'd', 'e'], 'a, b, c and 2 more']]) {
    const f = new Filled(drag);
    f.offered();
    f.send({type: 'form.submit'});
    f.answer({...made, hosts}, f.last('form.send'));
    assert.ok(f.toast().text.endsWith(`${text}.`), f.toast().text);
  }
});

test('what is in the way is its part of the time that was asked for: the service joins what follows one another', () => {
  const block = {host: 'a', start: '2026-11-20T00:00:00Z', end: '2026-12-09T00:00:00Z', reservations: []};
  const f = new Filled(drag);
  f.pass();
  f.answer(refused({blocked_by: [block]}));
  const [{start, end}] = f.form.refusal.blocked;
  assert.deepEqual([start, end], [START, START + 2 * HOUR]);
});
