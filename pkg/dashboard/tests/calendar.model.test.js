// SPDX-License-Identifier: Apache-2.0
// Ten thousand drawn sequences of what users do and what the network does.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {drawing as drawn} from './drawn.js';
import {World, BEGIN} from './world.js';
import {claimText} from './service.js';
import {drawing} from '../page/calendar-state.js';
import {freeText} from '../page/calendar-facts.js';
import {freeParts} from '../page/free.js';
import {HEAD, end} from '../page/places.js';
import {setUTC} from '../page/time.js';
import {t} from '../page/texts.js';

const SEQUENCES = Number(process.env.ALMANAC_SEQUENCES || 10000),
  LENGTH = 25,
  HOUR = 3600;

// actions are what can happen; each gets the world and what draws.
const actions = {
  answer: (w, {oneOf}) => w.deliver(oneOf(w.flying)),
  reach: (w, {oneOf}) => w.reach(oneOf(w.flying)),
  fault: (w, {oneOf}) => w.deliver(oneOf(w.flying), oneOf(['lost', 502, 503])),
  event: w => w.tell(),
  pass: (w, {oneOf}) => w.pass(oneOf([0.1, 0.3, 1, 5, 70, 3600])),
  connect: w => w.connect(),
  disconnect: w => w.disconnect(),
  othersBook: (w, {below, oneOf}) => w.service.book({name: 'theirs', start: Math.floor(w.at) + below(200) * HOUR, duration: (1 + below(30)) * HOUR, hosts: [oneOf(w.hosts())]}, false),
  ownElsewhere: (w, {below}) => w.service.book({name: 'mine elsewhere', start: Math.floor(w.at) + below(100) * HOUR, duration: (1 + below(30)) * HOUR}, true),
  cancels: (w, {oneOf}) => w.service.cancel(oneOf([...w.service.reservations.keys(), 'none'])),
  later: (w, {oneOf}) => w.send({type: 'panned', pixels: oneOf([-700, 700, 90, 3000])}),
  zoom: (w, {oneOf}) => w.send({type: 'zoomed', factor: oneOf([0.3, 3]), px: 400}),
  range: (w, {oneOf}) => w.send({type: 'ranged', name: oneOf(['day', 'week', 'month', 'quarter'])}),
  now: w => w.send({type: 'now'}),
  filter: (w, {oneOf}) => w.send({type: 'filtered', filter: oneOf(['', '["=", "$name", "a"]'])}),
  retry: w => w.send({type: 'again'}),
  zone: (w, {often}) => {
    setUTC(often(0.5));
    w.send({type: 'zoned'});
  },
  press: (w, draws) => w.send({type: 'pressed', ...place(w, draws)}),
  move: (w, draws) => w.send({type: 'hovered', ...place(w, draws)}),
  release: (w, draws) => w.send({type: 'released', ...place(w, draws)}),
  stretch: (w, draws) => stretch(w, draws),
  escape: w => w.send({type: 'givenUp'}),
  book: w => w.send({type: 'booked'}),
  name: (w, {oneOf}) => w.state.form && w.send({type: 'form.edit', field: 'name', value: oneOf(['run', 'night', ''])}),
  quantity: (w, {oneOf}) => w.state.form && w.send({type: 'form.edit', field: 'quantity', value: oneOf(['1', '2', '9'])}),
  submit: w => w.state.form && w.send({type: 'form.submit'}),
  close: w => w.state.form && w.send({type: 'form.close'}),
};
const names = Object.keys(actions).filter(name => name !== 'stretch'),
  frequent = ['answer', 'answer', 'answer', 'pass', 'pass', 'event', 'event', 'submit', 'press', 'move', 'release'];

// place draws a place of the picture, on a row and on a time in view.
function place(w, {below, number}) {
  const {rows, view} = w.state,
    row = rows[below(Math.max(1, rows.length))];
  return {px: view.label + number() * (view.width - view.label), py: HEAD + (row ? row.y + row.height / 2 : 20), button: 0};
}

// ofChange are the actions around a change of a reservation that somebody else may cancel meanwhile.
const ofChange = ['answer', 'answer', 'fault', 'fault', 'event', 'pass', 'submit', 'cancels', 'disconnect'];

// stretch drags the end of a reservation of the user, if one ends in view.
function stretch(w, {oneOf, below}) {
  const {rows, view} = w.state,
    x = at => view.label + (at - view.start) * view.scale,
    ends = rows.flatMap(row => (row.host?.claims || []).filter(one => one.mine && x(one.end) > view.label + 30 && x(one.end) < view.width).map(one => ({row, px: x(one.end) - 2})));
  if (ends.length === 0) return;
  const {row, px} = oneOf(ends),
    py = HEAD + row.y + row.height / 2;
  w.send({type: 'pressed', px, py, button: 0});
  for (const type of ['hovered', 'released']) w.send({type, px: px + 10 + below(100), py});
}

// held looks at what must be true after every event.
function held(w) {
  const {state} = w,
    {known, hosts} = state.data;
  for (const [host, {claims}] of hosts)
    for (const claim of claims)
      assert.ok(
        [...w.service.ever.values()].flat().includes(claimText(claim)),
        `${host} shows a claim that the service never had: ${claimText(claim)}`,
      );
  for (const [name, host] of hosts)
    for (const at of [state.view.start, state.view.start + state.view.span / 2, state.view.start + state.view.span * 0.99]) {
      if (known && at >= known.from && at < known.to) continue;
      assert.ok([null, t('notLoaded')].includes(freeText(state, host, at)), `${name} is called free at a time that was not read`);
    }
  freeIsKnown(w);
  const {offer, blocked, windows} = drawing(state);
  if (!state.form) assert.deepEqual([offer, blocked, windows], [null, [], []], 'an offer is drawn without a form');
}

// freeIsKnown looks at the row of the free hosts: it has numbers of time that was read and is to come, each the number
// of hosts without a claim.
function freeIsKnown({state, at: now}) {
  const {known, hosts} = state.data;
  for (const {from, to, free, total} of freeParts(state, state.view.start, end(state.view), now)) {
    assert.ok(known && from >= known.from && to <= known.to, 'hosts are called free at a time that was not read');
    assert.ok(from >= now && total === hosts.size);
    const taken = [...hosts.values()].filter(({claims}) => claims.some(claim => claim.start < to && from < claim.end));
    assert.equal(free, hosts.size - taken.length, `${free} of ${hosts.size} hosts are called free`);
  }
}

// freeAsTheServiceHasIt looks at the row of the free hosts at rest.
function freeAsTheServiceHasIt(w) {
  for (const {from, to, free} of freeParts(w.state, -Infinity, Infinity, w.at))
    assert.equal(free, w.service.free(from, to).length, 'the number of free hosts is not that of the service');
}

// sentAsSeen looks at each change that was sent: it is the request whose offer the form showed.
function sentAsSeen(w) {
  for (const {request, form} of w.sent) {
    assert.ok(form, 'a change was sent without a form');
    assert.ok(form.offer, `a change was sent without an offer in view: ${JSON.stringify(request.body)}`);
    const terms = ({name, ...rest}) => rest;
    assert.deepEqual(terms(request.body), terms(form.offer.body), 'the change is not the one whose offer was in view');
    if (form.mode === 'book') assert.equal(request.body.name, form.fields.name, 'the name is not the one that was in view');
  }
}

// answered looks at an open form at rest: the service says the same to what is asked there. What begins now may have
// another answer by now.
function answered(w) {
  const {form} = w.state,
    shown = form?.offer || (form?.refusal?.real && form.refusal);
  if (!shown || form.unsure || (form.mode === 'book' && !shown.body.start_time)) return;
  const request = form.mode === 'change' ? {method: 'PATCH', path: `v1/reservations/${form.id}`} : {method: 'POST', path: 'v1/reservations'},
    {answer} = w.service.answer({...request, body: shown.body, query: {dry_run: true}});
  assert.equal(Boolean(form.offer), Boolean(answer), `the form's answer to ${JSON.stringify(shown.body)} is old`);
}

function run(seed, drawName, {begin = () => {}, length = LENGTH} = {}) {
  const draws = drawn(seed),
    w = new World(),
    log = [];
  try {
    begin(w, draws);
    for (let i = 0; i < length; i++) {
      const name = drawName(draws);
      log.push(name);
      actions[name](w, draws);
      held(w);
    }
    sentAsSeen(w);
    assert.ok(w.settle(), 'the page does not come to rest');
    held(w);
    freeAsTheServiceHasIt(w);
    const {known, hosts} = w.state.data;
    assert.ok(known && known.from <= w.state.view.start, `what is in view is not known at the end: ${JSON.stringify(known)}, ${w.state.view.start}`);
    for (const host of hosts.keys()) assert.deepEqual(w.shown(host), w.has(host), `host ${host} is not as the service has it`);
    answered(w);
  } catch (error) {
    error.message = `seed ${seed}: ${log.join(' ')}\n${error.message}`;
    throw error;
  }
}

test('in ten thousand sequences the page shows no claim that the service never had, calls no unread time free, and sends only what was seen', () => {
  for (let seed = 1; seed <= SEQUENCES; seed++) run(seed, draws => draws.oneOf(draws.often(0.6) ? frequent : names));
});

test('in drawn sequences around a change that is sent the form shows no offer of what others have canceled meanwhile', () => {
  const begin = (w, draws) => {
    w.service.book({name: 'mine', start: BEGIN + HOUR, duration: 5 * HOUR}, true);
    w.settle();
    stretch(w, draws);
    w.settle();
    assert.ok(w.state.form?.offer);
  };
  for (let seed = 1; seed <= SEQUENCES / 5; seed++) run(seed, ({oneOf}) => oneOf(ofChange), {begin, length: 12});
});
