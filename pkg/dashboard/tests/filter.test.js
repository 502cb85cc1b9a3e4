// SPDX-License-Identifier: Apache-2.0
// Filters as conditions, and what their editor does.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {conditionsOf, filterOf, joined, operatorsOf, read, textOf} from '../page/filter-language.js';
import {chosen, initial, savedOf, step, waiting} from '../page/filter-state.js';

const properties = [
  {name: 'aggregates', type: 'list', values: ['fast', 'general'], built_in: true},
  {name: 'gpu', type: 'string', values: ['a100', 'h100'], built_in: false},
  {name: 'local', type: 'bool', values: [], built_in: false},
  {name: 'memory_mb', type: 'number', values: [1024, 2048], built_in: true},
  {name: 'unused', type: 'string', values: [], built_in: false},
];

test('a filter that is a list of simple conditions is shown as them', () => {
  const shown = {
    '': [],
    '["=", "$gpu", "a100"]': ['gpu = a100'],
    '["==", "$gpu", "a100"]': ['gpu = a100'],
    '["and", ["=", "$gpu", "a100"], [">=", "$memory_mb", 2048]]': ['gpu = a100', 'memory_mb ≥ 2048'],
    '["in", "fast", "$aggregates"]': ['aggregates ∋ fast'],
    '["in", "$name", "a", "b"]': ['name = a | b'],
    '["!=", "$local", true]': ['local ≠ true'],
  };
  for (const [filter, texts] of Object.entries(shown)) assert.deepEqual(conditionsOf(filter).map(textOf), texts, filter);
});

test('any other filter is shown whole', () => {
  for (const filter of [
    '["or", ["=", "$gpu", "a100"], ["=", "$gpu", "h100"]]',
    '["not", ["=", "$gpu", "a100"]]',
    '["=", "$gpu", "$other"]',
    '["=", "gpu", "a100"]',
    '["toString", "$gpu", "a100"]',
    '["and"]',
    '["=", "$gpu"]',
    '[]',
    'null',
    '5',
    'gpu=a100',
    '{"a": 1}',
  ])
    assert.equal(conditionsOf(filter), null, filter);
});

test('conditions make the filter that they were read from', () => {
  for (const filter of ['', '["=","$gpu","a100"]', '["and",["=","$gpu","a100"],["in","fast","$aggregates"]]'])
    assert.equal(filterOf(conditionsOf(filter)), filter);
});

test('a text such as gpu=a100 is read as conditions', () => {
  const written = {
    'gpu=a100': [['=', '$gpu', 'a100']],
    'GPU = a100': [['=', '$gpu', 'a100']],
    '$gpu == "a100"': [['=', '$gpu', 'a100']],
    'gpu != a100, memory_mb >= 1024': [['!=', '$gpu', 'a100'], ['>=', '$memory_mb', 1024]],
    'memory_mb≤2048': [['<=', '$memory_mb', 2048]],
    'local = TRUE': [['=', '$local', true]],
    'aggregates = fast': [['in', 'fast', '$aggregates']],
    'unused = other': [['=', '$unused', 'other']],
    '["=", "$gpu", "a100"]': [['=', '$gpu', 'a100']],
    '["or", ["=", "$gpu", "a100"]]': [['or', ['=', '$gpu', 'a100']]],
  };
  for (const [text, conditions] of Object.entries(written)) assert.deepEqual(read(text, properties), conditions, text);
});

test('a text that is no condition, or would mean another one, is not read', () => {
  for (const text of ['', 'gpu', 'gpu=', 'rack=1', 'memory_mb=much', 'aggregates != fast', 'local < true', 'local = perhaps', 'gpu=a100,', '["='])
    assert.equal(read(text, properties), null, text);
});

test('a condition joins a filter of any kind once', () => {
  const one = ['=', '$gpu', 'a100'],
    text = JSON.stringify(one);
  assert.equal(joined('', one), text);
  assert.equal(joined(text, one), text);
  assert.equal(joined(JSON.stringify(['and', ['=', '$a', 1], one]), one), JSON.stringify(['and', ['=', '$a', 1], one]));
  assert.equal(joined('["or",["=","$a",1]]', one), JSON.stringify(['and', ['or', ['=', '$a', 1]], one]));
  assert.equal(joined('null', one), JSON.stringify(['and', null, one]), 'the service explains what is wrong with it');
  assert.equal(joined('no filter', one), 'no filter');
});

test('each type of property has the comparisons that the service knows for it', () => {
  assert.deepEqual(operatorsOf({type: 'list'}), [['in', '∋']]);
  assert.deepEqual(operatorsOf({type: 'string'}).map(([sign]) => sign), ['=', '!=']);
  assert.equal(operatorsOf({type: 'number'}).length, 6);
});

// Editor is an editor of a filter with what it has done.
class Editor {
  constructor(filter = '', saved = {}) {
    this.filter = filter;
    this.done = [];
    this.state = initial({saved});
    this.send({type: 'loaded', properties});
  }

  send(event) {
    const [next, ...effects] = step(this.state, event, this.filter);
    this.state = next;
    this.done.push(...effects);
    for (const effect of effects) if (effect.do === 'change') this.filter = effect.filter;
  }
}

test('a condition is added from lists of what exists, and taken away', () => {
  const e = new Editor();
  assert.deepEqual([chosen(e.state).property.name, chosen(e.state).value], ['gpu', 'a100'], 'a property of the operator comes first');
  e.send({type: 'chose', property: 'memory_mb'});
  e.send({type: 'chose', operator: '>='});
  e.send({type: 'chose', value: '2048'});
  e.send({type: 'added'});
  assert.equal(e.filter, '[">=","$memory_mb",2048]');
  e.send({type: 'typed', plain: 'gpu=h100'});
  e.send({type: 'entered'});
  assert.equal(e.filter, '["and",[">=","$memory_mb",2048],["=","$gpu","h100"]]');
  e.send({type: 'removed', index: 0});
  assert.equal(e.filter, '["=","$gpu","h100"]');
  e.send({type: 'cleared'});
  assert.equal(e.filter, '');
});

test('what is typed and not read stays, is explained, and counts as waiting', () => {
  const e = new Editor('["=","$gpu","a100"]');
  assert.equal(waiting(e.state, e.filter), '');
  e.send({type: 'typed', plain: 'rack=1'});
  e.send({type: 'entered'});
  assert.match(e.state.wrong, /gpu = a100/);
  assert.equal(waiting(e.state, e.filter), 'rack=1');
  e.send({type: 'typed', plain: ''});
  assert.deepEqual([e.state.wrong, waiting(e.state, e.filter)], ['', '']);
  e.send({type: 'wrote', text: '["=", "$gpu", '});
  e.send({type: 'took'});
  assert.match(e.state.wrong, /JSON/);
  assert.ok(waiting(e.state, e.filter));
  e.send({type: 'wrote', text: ''});
  assert.ok(waiting(e.state, e.filter), 'an emptied filter is another filter');
  e.send({type: 'took'});
  assert.deepEqual([e.filter, waiting(e.state, e.filter)], ['', '']);
});

test('a filter is saved under a name, with a word of confirmation', () => {
  const e = new Editor('["=","$gpu","a100"]');
  e.send({type: 'saved'});
  assert.match(e.state.said, /name/);
  assert.deepEqual(e.done, []);
  e.send({type: 'named', name: ' gpus '});
  e.send({type: 'saved'});
  assert.match(e.state.said, /gpus is saved/);
  assert.deepEqual(e.done[0], {do: 'keep', name: 'filters', value: JSON.stringify({gpus: '["=","$gpu","a100"]'})});
  assert.equal(e.done[1].do, 'announce');
  assert.equal(savedOf(e.state, e.filter), 'gpus');
});

test('an empty filter is not saved, and that is said', () => {
  const e = new Editor();
  e.send({type: 'named', name: 'all'});
  e.send({type: 'saved'});
  assert.match(e.state.said, /no condition/);
});

test('a deleted filter, and one that was replaced, can be brought back', () => {
  const e = new Editor('["=","$gpu","a100"]', {gpus: '["=","$gpu","a100"]', other: '["=","$gpu","h100"]'});
  e.send({type: 'forgot'});
  assert.deepEqual(Object.keys(e.state.saved), ['other']);
  assert.match(e.state.said, /deleted/);
  e.send({type: 'undone'});
  assert.deepEqual(Object.keys(e.state.saved), ['gpus', 'other']);
  assert.equal(e.state.before, null);
  e.filter = '["=","$gpu","b200"]';
  e.send({type: 'named', name: 'other'});
  e.send({type: 'saved'});
  e.send({type: 'undone'});
  assert.equal(e.state.saved.other, '["=","$gpu","h100"]');
});

test('a saved filter is picked by its name, whatever the name is', () => {
  const saved = JSON.parse('{"__proto__": "[\\"=\\",\\"$gpu\\",\\"a100\\"]", "toString": "[\\"=\\",\\"$gpu\\",\\"h100\\"]"}');
  const e = new Editor('', saved);
  e.send({type: 'picked', name: 'toString'});
  assert.equal(e.filter, '["=","$gpu","h100"]');
  e.send({type: 'picked', name: '__proto__'});
  assert.equal(e.filter, '["=","$gpu","a100"]');
  e.send({type: 'picked', name: 'constructor'});
  assert.equal(e.filter, '["=","$gpu","a100"]', 'no such filter');
});
