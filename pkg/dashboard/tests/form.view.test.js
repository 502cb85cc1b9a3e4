// SPDX-License-Identifier: Apache-2.0
// What the form says of an answer.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Filled, NOW, offerFor, refused} from './filled.js';
import {byID, parts, words} from './elements.js';
import {answer} from '../page/form-answer-view.js';
import {formView} from '../page/form-view.js';
import {HOUR, MINUTE} from '../page/lengths.js';
import {setZone} from '../page/zones.js';

setZone('utc');

const said = ({form}) => words(answer(form, () => {}, () => {}));

test('a change says how much longer or shorter it makes the reservation, at whichever edge', () => {
  const start = NOW + HOUR,
    end = NOW + 25 * HOUR,
    about = {id: 'r1', name: 'run', start, end, movable: true};
  const changes = [
    [{kind: 'change', from: start, until: end - 16.75 * HOUR}, '16h 45m shorter'],
    [{kind: 'change', from: start, until: end + 30 * MINUTE}, '30m longer'],
    [{kind: 'move', from: start + 16.75 * HOUR, until: end}, '16h 45m shorter'],
    [{kind: 'move', from: start - HOUR / 2, until: end}, '30m longer'],
    [{kind: 'move', from: start + HOUR, until: end + HOUR}, 'Offer'],
  ];
  for (const [change, text] of changes) {
    const f = new Filled({...about, ...change});
    f.pass();
    f.answer(offerFor(change.from, change.until - change.from));
    assert.ok(said(f).startsWith(text), `${said(f)} does not begin with ${text}`);
  }
});

test('the field for words is wrong once they are read and not understood, and examples stand at it', () => {
  const f = new Filled({kind: 'book'}),
    view = () => formView(f.form, {may: () => true, project: id => id, fold: null, properties: []}, () => {});
  const wrong = () => byID(view(), 'form-words').props['aria-invalid'];
  f.edit('words', '3 quantum');
  assert.equal(wrong(), undefined, 'while it is typed');
  f.send({type: 'form.wish'});
  f.answer({properties: []}, f.last('form.properties'));
  assert.equal(wrong(), 'true');
  assert.match(words(byID(view(), 'form-words-complaint')), /quantum.*for example: .*;.*;/);
  f.edit('words', '3 quantum h');
  assert.equal(wrong(), undefined);
});

test('the place names the properties that have one value on each host, and the reservations to lie apart from', () => {
  const f = new Filled({kind: 'book'}),
    property = (name, type, builtIn) => ({name, type, built_in: builtIn, values: []}),
    properties = [property('name', 'string', true), property('zone', 'string', true), property('vcpus', 'number', true), property('rack', 'number', false), property('traits', 'list', true)],
    context = {may: () => true, project: id => id, fold: null, properties, own: () => [['r7', 'first']]},
    at = id => byID(formView(f.form, context, event => f.send(event)), id),
    choices = id => parts(at(id)).filter(one => one.type === 'option').map(one => one.props.value);
  assert.equal(at('form-place').props.open, undefined);
  assert.deepEqual(choices('form-placeBy'), ['', 'zone', 'rack']);
  assert.equal(at('form-placeRule'), undefined);
  f.edit('placeBy', 'rack');
  assert.equal(at('form-place').props.open, true);
  assert.deepEqual(choices('form-placeRule'), ['same', 'spread', 'fewest', 'none']);
  assert.deepEqual(choices('form-apartFrom'), ['', 'r7']);
  assert.equal(at('form-placeValues'), undefined);
  f.edit('placeRule', 'spread');
  assert.ok(at('form-placeValues'));
  f.edit('placeRule', 'fewest');
  assert.equal(at('form-placeRequired'), undefined);
  f.edit('apartFrom', 'r1 r2');
  assert.deepEqual(choices('form-apartFrom'), ['', 'r1 r2', 'r7'], 'what a reservation that is booked again had stays');
});

// lineOf is what of an answer stands in view before it is unfolded.
const lineOf = view => words(parts(view).find(one => one.type === 'summary'));

test('an offer is one line with its time, and its hosts are behind it until the user unfolds it', () => {
  const f = new Filled({kind: 'book', hosts: ['a'], all: ['a'], start: NOW + HOUR, duration: HOUR}),
    view = () => answer(f.form, () => {}, event => f.send(event)),
    box = () => byID(view(), 'offer').props;
  f.offered();
  assert.equal(lineOf(view()), 'Offer Sat, Nov 28, 15:26 – 16:26');
  assert.match(words(view()), /1 of 4 matching hosts: a$/);
  assert.equal(box().open, undefined);
  f.send({type: 'form.unfolded', open: true});
  f.edit('lasts', '2h');
  f.offered();
  assert.equal(box().open, true, 'it stays unfolded for the next offer');
});

test('a long refusal is cut to its beginning, and its choices stay in view', () => {
  const f = new Filled({kind: 'book'}),
    message = 'not enough hosts available: the pool has 10 hosts, of which 4 are free at that time, and 20 hosts are asked for';
  f.edit('quantity', '20');
  f.pass();
  f.answer(refused({largest_quantity: 4}, message));
  const view = answer(f.form, () => {}, () => {}),
    folded = parts(view).find(one => one.type === 'details');
  assert.ok(folded && !parts(folded).includes(byID(view, 'take-fewer')));
});
