// SPDX-License-Identifier: Apache-2.0
// What the form says of an answer.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Filled, NOW, offerFor} from './filled.js';
import {byID, words} from './elements.js';
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
    [{kind: 'move', from: start + HOUR, until: end + HOUR}, 'You would get'],
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
