// SPDX-License-Identifier: Apache-2.0
// Offers for ranges in the form of a booking: what is asked, how they are shown, and how one of them is booked.
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {Filled, NOW, lost, refused} from './filled.js';
import {byID, parts, words} from './elements.js';
import {answer as answerView} from '../page/form-answer-view.js';
import {draft, restored, wantsOffers} from '../page/form-state.js';
import {formView} from '../page/form-view.js';
import {complaintOf} from '../page/form-request.js';
import {loadOffers, part} from '../page/offers-part.js';
import {exact} from '../page/timevalue.js';
import {follow} from '../page/time.js';
import {DAY, HOUR} from '../page/lengths.js';
import {setZone} from '../page/zones.js';

const text = at => new Date(at * 1000).toISOString().replace('.000Z', 'Z');

afterEach(() => setZone('utc'));
setZone('utc');
follow(NOW, 1);

const context = {may: () => true, project: id => id, fold: null, properties: []};
const view = f => formView(f.form, context, event => f.send(event));

test('before its script is there the form waits for it, and one that could not be loaded has a link that loads the page', () => {
  const f = new Filled({kind: 'book'});
  f.edit('when', 'offers');
  assert.deepEqual([complaintOf(f.form).field, part.rangeFields], ['when', undefined]);
  part.missing = true;
  assert.ok(byID(view(f), 'try-again'));
  part.missing = false;
});

test('the script is loaded', () => new Promise(loadOffers));

// ranged returns a form with two to six hosts for two to eight hours, in a day.
function ranged(from = {kind: 'book'}) {
  const f = new Filled(from);
  f.edit('when', 'offers');
  f.edit('name', 'run');
  f.edit('quantity', '2');
  f.edit('quantityTo', '6');
  f.edit('lasts', '2h');
  f.edit('lastsTo', '8h');
  f.edit('earliest', exact(NOW + HOUR));
  f.edit('deadline', exact(NOW + DAY));
  return f;
}

const less = {quantity: 0, duration: 0, wait: 0, alternatives: 0, text: ''};

// offer returns an offer as the API has it.
const offer = (start, lasts, quantity, lacks = {}, more = {}) => ({
  start: text(start),
  end: text(start + lasts),
  quantity,
  alternative: 0,
  kind: 'host',
  hosts: ['a'],
  matched: 8,
  gives_up: {...less, ...lacks},
  request: {name: 'run', kind: 'host', start_time: text(start), end_time: text(start + lasts), quantity},
  ...more,
});

const three = {
  offers: [
    offer(NOW + 9 * HOUR, 8 * HOUR, 6, {wait: 8 * HOUR}),
    offer(NOW + HOUR, 8 * HOUR, 4, {quantity: 2}),
    offer(NOW + HOUR, 2 * HOUR, 5, {quantity: 1, duration: 6 * HOUR}),
  ],
  complete: true,
};

// compared returns the form with these offers.
function compared(from, answer = three) {
  const f = ranged(from);
  f.send({type: 'form.submit'});
  f.answer(answer);
  return f;
}

test('offers are asked for by the button alone, with the ranges and the time', () => {
  const f = ranged();
  f.pass(5000);
  assert.equal(f.asked.filter(one => one.request.path === 'v1/offers').length, 0);
  f.send({type: 'form.submit'});
  const {method, path, query, body} = f.last().request;
  assert.deepEqual([method, path, query], ['POST', 'v1/offers', undefined]);
  assert.deepEqual(body, {
    name: 'run',
    quantity: {min: 2, max: 6},
    duration: {min: 2 * HOUR, max: 8 * HOUR},
    windows: [{start: text(NOW + HOUR), end: text(NOW + DAY)}],
    alternatives: [{kind: 'host'}],
  });
  const asked = f.asked.length;
  f.send({type: 'form.submit'});
  assert.equal(f.asked.length, asked, 'not while they are asked for');
});

test('instances have their size, hosts their filter, and a window that has begun begins now', () => {
  const f = ranged({kind: 'book', hosts: ['a', 'b'], all: ['a', 'b'], start: NOW + DAY, duration: HOUR});
  f.edit('kind', 'instance');
  f.edit('earliest', exact(NOW - HOUR));
  f.send({type: 'form.submit'});
  const {windows, alternatives} = f.last().request.body;
  assert.deepEqual(windows, [{end: text(NOW + DAY)}]);
  assert.deepEqual(alternatives, [{kind: 'instance', host_properties: ['in', '$name', 'a', 'b'], resources: {vcpus: 4, memory_mb: 8192, disk_gb: 20}}]);
});

test('what is booked again keeps the rule about where its hosts lie', () => {
  const together = {by: 'rack', rule: 'same', required: true},
    again = {name: 'run', kind: 'host', quantity: 2, start: text(NOW + HOUR), end: text(NOW + 2 * HOUR), together};
  const f = ranged({kind: 'again', reservation: again});
  f.send({type: 'form.submit'});
  assert.deepEqual(f.last().request.body.alternatives, [{kind: 'host', together}]);
});

test('an empty end of a range is the other one, and one below it is named', () => {
  const f = ranged();
  f.edit('quantityTo', '');
  f.edit('lastsTo', ' ');
  f.send({type: 'form.submit'});
  assert.deepEqual([f.last().request.body.quantity, f.last().request.body.duration], [{min: 2, max: 2}, {min: 2 * HOUR, max: 2 * HOUR}]);
  for (const [field, value] of [
    ['quantityTo', '1'],
    ['quantityTo', 'many'],
    ['lastsTo', '1h'],
    ['lastsTo', 'long'],
    ['quantity', '0'],
    ['lasts', ''],
  ]) {
    const g = ranged();
    g.edit(field, value);
    assert.equal(complaintOf(g.form)?.field, field, `${field} ${value}`);
    g.send({type: 'form.submit'});
    assert.equal(g.last(), undefined);
  }
  const g = ranged();
  g.edit('deadline', exact(NOW + 2 * HOUR));
  assert.equal(complaintOf(g.form).field, 'deadline', 'the shortest duration does not fit');
});

test('each offer is shown with its time in the zone of the page, how much it is, and what it has less in words', () => {
  setZone('Europe/Paris');
  const f = compared(),
    rows = parts(view(f)).filter(one => one.type === 'li' && one.props.class === 'box good');
  assert.deepEqual(rows.map(words), [
    'Sun, Nov 29, 00:26 – 08:266 hosts · 8h8h laterBook it',
    'Sat, Nov 28, 16:26 – Sun, Nov 29, 00:264 hosts · 8h2 hosts fewerBook it',
    'Sat, Nov 28, 16:26 – 18:265 hosts · 2h1 host fewer, 6h shorterBook it',
  ]);
  assert.match(words(byID(view(f), 'offers-head')), /Europe\/Paris/);
  assert.match(words(byID(view(f), 'form-answer')), /3 offers/);
  assert.equal(f.done.at(-1).id, 'offers-head', 'the keyboard goes on there');
  const [button] = parts(rows[1]).filter(one => one.type === 'button');
  assert.equal(button.props['aria-label'], 'Book it: 4 hosts, Sat, Nov 28, 16:26 – Sun, Nov 29, 00:26, 2 hosts fewer');
});

test('instances are counted as such, an offer without less says so, and a search that was cut short too', () => {
  const f = compared({kind: 'book'}, {offers: [offer(NOW + HOUR, HOUR, 1, {}, {kind: 'instance'}), offer(NOW + HOUR, HOUR, 2, {quantity: 3}, {kind: 'instance'})], complete: false});
  const shown = words(view(f));
  assert.match(shown, /1 instance · 1hall that you asked for/);
  assert.match(shown, /3 instances fewer/);
  assert.match(shown, /may be better offers/);
});

test('one press books an offer, with the other terms of the form, and once', () => {
  const reservation = {
    name: 'training', kind: 'host', start: text(NOW - DAY), end: text(NOW), quantity: 2, policy: 'first-fit', on_end: 'shelve', before_end: 600, hosts: [], maintenance: false,
    host_properties: ['=', '$gpu', 'a100'],
  };
  const f = compared({kind: 'again', reservation});
  const [, second] = f.form.offers;
  f.send({type: 'form.pick', offer: second});
  f.send({type: 'form.pick', offer: second});
  const [sent, ...more] = f.changes().filter(one => one.path === 'v1/reservations');
  assert.deepEqual(more, []);
  assert.deepEqual(sent.body, {
    name: 'run',
    kind: 'host',
    quantity: 4,
    start_time: text(NOW + HOUR),
    end_time: text(NOW + 9 * HOUR),
    host_properties: ['=', '$gpu', 'a100'],
    policy: 'first-fit',
    on_end: 'shelve',
    before_end: 600,
  });
  assert.ok(sent.headers['Idempotency-Key']);
  f.answer({id: 'r1', name: 'run', start: text(NOW + HOUR), end: text(NOW + 9 * HOUR), hosts: ['a']}, f.last('form.send'));
  assert.equal(f.form, null);
  assert.match(f.toast().text, /run is booked/);
});

test('an offer can be held as long as the service allows, until a minute before its start', () => {
  const soon = {
    offers: [offer(NOW + HOUR, HOUR, 2), offer(NOW + 10 * 60 + 30, HOUR, 2), offer(NOW + 119, HOUR, 2)],
    complete: true,
    max_hold: 900,
  };
  const labels = f =>
    parts(view(f))
      .filter(one => one.type === 'button' && /^Hold for/.test(words(one)))
      .map(words);
  const f = compared({kind: 'book'}, soon);
  assert.deepEqual(labels(f), ['Hold for 15m', 'Hold for 9m']);
  assert.deepEqual(labels(compared({kind: 'book'}, {...soon, max_hold: 120})), ['Hold for 2m', 'Hold for 2m']);
  assert.deepEqual(labels(compared({kind: 'book'}, {...soon, max_hold: 0})), []);

  const [button] = parts(view(f)).filter(one => one.type === 'button' && words(one) === 'Hold for 15m');
  button.props.onclick();
  const {body, path} = f.last('form.send').request;
  assert.deepEqual([path, body.hold, body.start_time, body.quantity], ['v1/reservations', 900, text(NOW + HOUR), 2]);
  f.answer({id: 'r1', name: 'run', start: text(NOW + HOUR), end: text(NOW + 2 * HOUR), hosts: ['a'], held_until: text(NOW + 900)}, f.last('form.send'));
  assert.match(f.toast().text, /^run: held until /);
});

test('a name that nobody has written is that of the start of the offer', () => {
  const f = compared();
  f.form = {...f.form, edited: {...f.form.edited, name: false}};
  f.send({type: 'form.pick', offer: f.form.offers[0]});
  assert.match(f.last('form.send').request.body.name, /^reservation Sat, Nov 28, 23:26/);
});

test('an offer that somebody else has taken is refused, and offers can be asked for again', () => {
  const f = compared();
  f.send({type: 'form.pick', offer: f.form.offers[0]});
  f.answer(refused({earliest_start: text(NOW + DAY), largest_quantity: 1}), f.last('form.send'));
  assert.match(words(answerView(f.form, () => {}, () => {})), /Not possible not enough hosts available$/);
  assert.deepEqual([f.form.offers, wantsOffers(f.form), f.done.at(-1).id], [null, true, 'confirm']);
  const asked = f.asked.length;
  f.send({type: 'form.changed', start: NOW, end: NOW + DAY, chance: 0.5});
  f.pass(60000);
  assert.equal(f.asked.length, asked, 'not by itself');
  assert.equal(words(byID(view(f), 'confirm')), 'Show offers');
  f.send({type: 'form.submit'});
  f.answer(three);
  assert.deepEqual([f.form.offers.length, f.form.refusal], [3, null]);
});

test('an answer that is lost leaves the same request to send again', () => {
  const f = compared();
  f.send({type: 'form.pick', offer: f.form.offers[0]});
  const first = f.last('form.send').request;
  f.answer(lost, f.last('form.send'));
  assert.equal(parts(view(f)).some(one => one.props.class === 'offers'), false, 'no other one is booked meanwhile');
  assert.equal(words(byID(view(f), 'confirm')), 'Send it again');
  f.send({type: 'form.submit'});
  assert.deepEqual(f.last('form.send').request, first);
});

test('if nothing can be had, the refusal has the start for the least', () => {
  const f = ranged();
  f.send({type: 'form.submit'});
  f.answer(refused({earliest_start: text(NOW + 2 * DAY), largest_quantity: 1}));
  f.send({type: 'form.take', choice: {what: 'start', at: NOW + 2 * DAY}});
  f.pass();
  const {body} = f.last().request;
  assert.deepEqual([body.start_time, body.duration, body.quantity], [text(NOW + 2 * DAY), 2 * HOUR, 2]);
});

test('a field that changes takes the offers away, and a name keeps them', () => {
  const f = compared();
  f.edit('name', 'another');
  f.send({type: 'form.pick', offer: f.form.offers[0]});
  assert.equal(f.last('form.send').request.body.name, 'another');
  const g = compared(),
    [old] = g.form.offers;
  g.edit('quantityTo', '5');
  assert.equal(g.form.offers, null);
  g.send({type: 'form.pick', offer: old});
  assert.equal(g.last('form.send'), undefined);
});

test('offers that something has changed for, or that begin now and are a minute old, say so and stay', () => {
  const f = compared();
  f.send({type: 'form.changed', start: NOW + 3 * DAY, end: NOW + 4 * DAY, chance: 0.5});
  assert.equal(f.form.stale, false);
  f.send({type: 'form.changed', start: NOW + 2 * HOUR, end: NOW + 3 * HOUR, chance: 0.5});
  assert.equal(f.form.stale, true);
  assert.match(words(byID(view(f), 'form-answer')), /out of date/);
  f.send({type: 'form.submit'});
  f.answer(three);
  assert.equal(f.form.stale, false);

  f.pass(70000);
  assert.equal(f.form.stale, false, 'they begin later');
  const g = compared({kind: 'book'}, {offers: [offer(NOW, HOUR, 2)], complete: true});
  g.pass(50000);
  assert.equal(g.form.stale, false);
  g.pass(20000);
  assert.equal(g.form.stale, true);
  const asked = g.asked.length;
  g.pass(500000);
  assert.equal(g.asked.length, asked, 'they cost nothing until somebody asks again');
});

test('what changes while offers are searched makes them old', () => {
  const f = ranged();
  f.send({type: 'form.submit'});
  f.send({type: 'form.changed', start: NOW, end: NOW + HOUR, chance: 0.5});
  f.answer(three);
  assert.equal(f.form.stale, true);
});

test('ranges stay over a reload, and a wish in words changes them', () => {
  const f = ranged(),
    kept = restored(draft(f.form));
  assert.deepEqual([kept.fields.when, kept.fields.quantityTo, kept.fields.lastsTo], ['offers', '6', '8h']);
  f.edit('words', '3 hosts for 3h next week');
  f.send({type: 'form.wish'});
  f.answer({properties: []}, f.last('form.properties'));
  assert.deepEqual([f.form.fields.when, f.form.fields.quantity, f.form.fields.lasts], ['offers', '3', '3h']);
  f.choose({what: 'between', from: NOW + DAY, until: NOW + 9 * DAY});
  assert.deepEqual([f.form.fields.when, f.form.fields.earliest.at], ['offers', NOW + DAY]);
});

test('who may not ask for offers has no such choice', () => {
  const f = new Filled({kind: 'book'}),
    choices = may => parts(byID(formView(f.form, {...context, may}, () => {}), 'form-when')).flatMap(one => (one.type === 'option' ? [one.props.value] : []));
  assert.deepEqual(choices(() => true), ['now', 'at', 'between', 'offers']);
  assert.deepEqual(choices(rule => rule !== 'offers:create'), ['now', 'at', 'between']);
});

test('maintenance has no offers', () => {
  const f = ranged();
  f.edit('kind', 'maintenance');
  assert.equal(f.form.fields.when, 'at');
});
