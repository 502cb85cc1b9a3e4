// SPDX-License-Identifier: Apache-2.0
// The texts that the picture draws.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {pictureOf} from '../page/calendar.js';
import {hostOf, rowsOf} from '../page/model.js';
import {draw} from '../page/picture.js';
import {iso, now} from '../page/time.js';
import {World} from './world.js';

const HOUR = 3600;

// canvas returns one that notes the texts that are drawn on it.
function canvas() {
  const texts = [],
    context = new Proxy(
      {measureText: text => ({width: [...text].length * 6}), fillText: text => texts.push(text), createPattern: () => ({setTransform() {}})},
      {get: (known, name) => known[name] ?? (() => {})},
    );
  return {texts, getContext: () => context};
}
globalThis.document = {createElement: canvas};
globalThis.DOMMatrix = class {};

const colors = new Proxy({}, {get: () => '#000'});

// drawn returns the texts of a picture of hosts, which are answers of the API, in groups of a property.
function drawn(hosts, by) {
  const w = new World(),
    {rows, height} = rowsOf(hosts.map(hostOf), by),
    paper = canvas();
  w.settle();
  const start = now() - 24 * HOUR,
    state = {...w.state, rows, total: height, view: {...w.state.view, start}, data: {...w.state.data, known: {from: start, to: start + 999 * HOUR}}};
  draw(paper, pictureOf(state, colors));
  return paper.texts;
}

// turning is a name that turns what is around it if nothing keeps it in.
const turning = 'a\u202eevil\u202c \u202b';

test('a name that turns the direction of a text turns nothing around it in the picture', () => {
  const claim = more => ({start: iso(now() - HOUR), end: iso(now() + 90 * HOUR), kind: 'host', mine: true, reservation_id: 'r', ...more}),
    facts = {zone: turning, properties: {rack: turning}, state: 'out_of_order', reservable: true, instance_count: 0};
  const texts = drawn(
    [
      {host: `host ${turning}`, facts: {...facts, problem: `broken ${turning}`}, claims: []},
      {host: 'own', facts: {...facts, state: 'up'}, claims: [claim({name: `run ${turning}`})]},
      {host: 'closed', facts: {...facts, state: 'up'}, claims: [claim({name: `reason ${turning}`, maintenance: true})]},
    ],
    'rack',
  );
  const turned = texts.filter(text => text.includes('\u202e'));
  for (const one of ['host ', 'run ', 'reason ', 'broken ', 'rack ']) assert.ok(turned.some(text => text.includes(one)), `the picture has no ${one}`);
  for (const text of turned) assert.match(text, /^[^\u202e]*\u2068[^\u2069]*\u202e[^\u2069]*\u2069/, JSON.stringify(text));
});

test('a long name is cut where its room ends', () => {
  const texts = drawn([{host: 'n'.repeat(300), facts: null, claims: []}], '');
  assert.ok(texts.some(text => /^\u2068n{5,40}…\u2069$/.test(text)), JSON.stringify(texts.slice(-3)));
});
