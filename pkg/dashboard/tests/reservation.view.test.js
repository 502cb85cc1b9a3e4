// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {viewOf as listOf} from '../page/list-view.js';
import * as list from '../page/list-state.js';
import {viewOf as pageOf} from '../page/reservation-view.js';
import * as fields from '../page/reservation-fields.js';
import * as page from '../page/reservation-state.js';
import {add} from '../page/texts.js';
import {texts as listTexts} from '../page/texts-list.js';
import {texts} from '../page/texts-reservation.js';
import {setZone} from '../page/zones.js';
import {byID, parts, words} from './elements.js';

add({...texts, ...listTexts});
afterEach(() => setZone('local'));

const app = (rules, more) => ({
  session: {project_id: 'demo', on_end: ['delete', 'shelve']},
  may: rule => rules.includes(rule),
  belongs: one => one.project_id === 'demo',
  now: () => Date.parse('2027-01-01T00:00:00Z') / 1000,
  ...more,
});
const everything = app(['reservations:create', 'reservations:update', 'reservations:delete', 'reservations:list_all', 'feed:get']);

const one = {
  id: 'r-1',
  name: 'training',
  project_id: 'demo',
  kind: 'host',
  status: 'pending',
  start: '2027-06-01T10:00:00Z',
  end: '2027-06-01T12:00:00Z',
  quantity: 2,
  hosts: [],
  policy: 'first-fit',
  on_end: 'delete',
  before_end: 0,
  maintenance: false,
  degraded: false,
  events: [
    {
      type: 'changed',
      time: '2027-05-01T00:00:00Z',
      state: 'done',
      done_at: '2027-05-01T00:00:00Z',
      detail: 'end from 2027-06-01T20:00:00Z',
    },
  ],
};

// shown returns the view of a reservation with other facts than those above, after events.
function shown(more, events = [], who = everything) {
  let state = page.nothing({id: 'r-1'});
  for (const event of [{type: 'begin'}, {type: 'answered', key: 'one', number: 1, answer: {...one, ...more}}, ...events])
    [state] = page.step(state, {clock: 0, ...event});
  return pageOf(who, rule => who.may(rule))(state, () => {});
}

test('a time in the detail of an event is in the zone of the others', () => {
  setZone('Europe/Paris');
  const text = words(shown());
  assert.ok(!/\dT\d\d:\d\d/.test(text.replace(/--start \S+/, '')), text);
  assert.match(text, /end from .*22:00/);
});

test('what cannot be changed has no forms, and what has begun keeps its quantity', () => {
  assert.ok(byID(shown(), 'quantity') && byID(shown(), 'cancel'));
  assert.equal(byID(shown({status: 'active'}), 'quantity'), undefined);
  for (const status of ['ended', 'canceled', 'failed', 'ending']) assert.equal(byID(shown({status}), 'rename'), undefined, status);
  assert.equal(byID(shown({project_id: 'other'}), 'rename'), undefined);
  assert.equal(byID(shown({}, [], app([])), 'rename'), undefined);
});

const instances = {kind: 'instance', resources: {vcpus: 4, memory_mb: 8192, disk_gb: 20}, affinity: 'none'};

test('each field that can be changed is on the page', () => {
  const view = shown(instances, [{type: 'filterWanted'}]);
  for (const field of Object.keys(fields.values)) assert.ok(byID(view, fields.fieldIDs[field]), field);
});

test('what the status or the kind does not allow to change has no form', () => {
  const formsOf = more => {
    const view = shown(more, [{type: 'filterWanted'}]);
    return Object.keys(fields.values).filter(field => byID(view, fields.fieldIDs[field])).join(' ');
  };
  for (const [more, forms] of [
    [{}, 'name end quantity on_end before_end host_properties'],
    [instances, 'name end quantity resources affinity on_end before_end host_properties'],
    [{...instances, status: 'active'}, 'name end on_end before_end host_properties'],
    [{status: 'starting'}, ''],
    [{maintenance: true}, 'name end'],
    [{kind: 'address'}, ''],
  ])
    assert.equal(formsOf(more), forms, JSON.stringify(more));
  assert.ok(byID(shown({status: 'starting'}), 'cancel'));
  assert.match(words(byID(shown({status: 'starting'}), 'starts-now')), /can be changed in a moment/);
});

const inGroup = {...instances, lease_id: 'g-1', before_end: 600},
  group = {
    id: 'g-1',
    name: 'my cluster',
    start: one.start,
    end: one.end,
    reservations: [
      {...one, ...inGroup, name: 'my cluster'},
      {...one, lease_id: 'g-1', id: 'r/2', name: 'disks', quantity: 1, host_properties: ['=', '$disk', 'nvme']},
    ],
  };
const known = answer => [{type: 'answered', key: 'group', number: 2, answer}];

test('a part of a group names the group and links to its other parts', () => {
  const list = parts(shown(inGroup, known(group))).find(part => part.props.class === 'facts');
  assert.equal(words(byID(list, 'group-name')), 'my cluster');
  assert.deepEqual(parts(list).filter(part => part.type === 'a').map(part => [part.props.href, words(part)]), [['#/reservation/r%2F2', '1 host']]);
});

test('a part of a group has forms for what it has alone, and the commands that change and cancel the group', () => {
  const view = shown(inGroup, [...known(group), {type: 'filterWanted'}]);
  assert.equal(Object.keys(fields.values).filter(field => byID(view, fields.fieldIDs[field])).join(' '), 'name quantity resources affinity host_properties');
  assert.equal(byID(view, 'cancel'), undefined);
  assert.match(words(byID(view, 'of-group')), /one of the 2 parts of the group “my cluster”/);
  assert.equal(words(byID(view, 'change-group')), 'almanac group change g-1 --end 2027-06-01T12:00:00Z');
  assert.equal(words(byID(view, 'delete-group')), 'almanac group delete g-1');
  assert.equal(
    words(byID(view, 'same-command')),
    `almanac group create 'my cluster' --start 2027-06-01T10:00:00Z --duration 2h` +
      ` --part '{"kind":"instance","quantity":2,"resources":{"vcpus":4,"memory_mb":8192,"disk_gb":20},"affinity":"none"}'` +
      ` --part '{"kind":"host","quantity":1,"host_properties":["=","$disk","nvme"]}' --on-end delete --before-end 10m`,
  );
});

test('until its group is known a reservation has no form that the service might refuse', () => {
  for (const events of [[], [{type: 'answered', key: 'group', number: 2, error: {passes: false, message: 'there is no group'}}]]) {
    const view = shown(inGroup, events);
    for (const id of ['until', 'cancel', 'same-command']) assert.equal(byID(view, id), undefined, id);
    assert.ok(byID(view, 'rename'));
    assert.match(words(view), /g-1/);
  }
});

test('the only reservation of a group is changed and canceled as any other', () => {
  const view = shown(inGroup, known({...group, reservations: [inGroup]}));
  assert.ok(byID(view, 'until') && byID(view, 'cancel'));
  assert.equal(byID(view, 'of-group'), undefined);
  assert.match(words(byID(view, 'same-command')), /^almanac reservation create/);
});

test('who may not change a part of a group is told no command that changes it', () => {
  const view = shown({...inGroup, project_id: 'other'}, known(group));
  assert.equal(byID(view, 'of-group'), undefined);
  assert.equal(words(byID(view, 'group-name')), 'my cluster');
});

test('what is held shows until when, and has a button for its confirmation in place of the forms', () => {
  setZone('utc');
  const view = shown({held_until: '2027-05-01T00:10:00Z'});
  assert.match(words(byID(view, 'hold')), /before you change it/);
  assert.ok(byID(view, 'confirm-hold') && byID(view, 'cancel'));
  assert.equal(byID(view, 'rename'), undefined);
  assert.match(words(view), /held until .*00:10/);
  assert.equal(byID(shown(), 'confirm-hold'), undefined);
  assert.equal(byID(shown({held_until: '2027-05-01T00:10:00Z'}, [], app([])), 'confirm-hold'), undefined, 'not for readers');
});

test('what happens at the end has the choices that the operator allows, and the present one', () => {
  const choicesOf = more => parts(byID(shown(more), 'on-end')).flatMap(one => (one.type === 'option' ? [one.props.value] : []));
  assert.deepEqual(choicesOf({}), ['delete', 'shelve']);
  assert.deepEqual(choicesOf({on_end: 'leave'}), ['leave', 'delete', 'shelve']);
});

test('the editor of the filter is made when somebody opens it', () => {
  assert.equal(byID(shown(), 'change-filter'), undefined);
  assert.equal(byID(shown(), 'submit-host_properties'), undefined);
  assert.ok(byID(shown({}, [{type: 'filterWanted'}]), 'submit-host_properties'));
});

test('a warning that is no length says what is wrong', () => {
  const view = shown({}, [{type: 'typed', field: 'before_end', value: 'a while'}]);
  assert.match(words(byID(view, 'before-end-complaint')), /A duration is such as/);
  assert.equal(byID(view, 'submit-before_end').props['aria-disabled'], 'true');
});

test('an end that nobody edited cannot be sent', () => {
  assert.equal(byID(shown(), 'submit-end').props['aria-disabled'], 'true');
});

test('a field that was changed elsewhere says so beside it', () => {
  const view = shown({}, [
    {type: 'typed', field: 'name', value: 'mine'},
    {type: 'lost'},
    {type: 'rested'},
    {type: 'answered', key: 'one', number: 2, answer: {...one, name: 'theirs'}},
  ]);
  assert.match(words(byID(view, 'elsewhere-name')), /theirs/);
  assert.equal(byID(view, 'rename').props.value, 'mine');
  assert.equal(byID(view, 'elsewhere-end'), undefined);
});

test('a refused extension names the hosts and reservations in the way, and one press takes the latest end', () => {
  const error = {
    passes: false,
    message: 'the reservation can keep 0 of 3 from 2027-06-01T12:00:00Z',
    refusal: {
      latest_end: '2027-06-01T15:00:00Z',
      blocked_by: [
        {host: 'gpu-1', start: '2027-06-01T15:00:00Z', end: '2027-06-02T15:00:00Z', reservations: [{id: 'r-2', name: 'other run'}]},
        {host: 'gpu-2', start: '2027-06-01T15:00:00Z', end: '2027-06-02T15:00:00Z'},
        {host: 'gpu-3', start: '2027-06-01T15:00:00Z', end: '2027-06-02T15:00:00Z'},
      ],
    },
  };
  const view = shown({}, [
      {type: 'longer', more: 86400},
      {type: 'answered', key: 'change', number: 2, error},
    ]),
    box = byID(view, 'change-refused');
  assert.equal(box.props.role, 'alert');
  assert.match(words(box), /other run.*gpu-1Reserved by another project.*gpu-2, gpu-3/);
  assert.ok(parts(box).some(part => part.props.href === '#/reservation/r-2'));
  assert.ok(byID(box, 'take-latest'));
});

const blockers = {
  message: 'the reservation can keep 0 of its 3 hosts',
  refusal: {latest_end: '2027-06-01T15:00:00Z', blocked_by: []},
};
const refused = [
  {type: 'longer', more: 3600},
  {type: 'answered', key: 'change', number: 2, error: {passes: false, ...blockers}},
];

test('a refusal comes into view once', () => {
  let scrolled = 0;
  assert.match(words(byID(shown({}, refused), 'change-refused')), /^The reservation can keep 0/);
  const element = {scrollIntoView: () => scrolled++},
    first = byID(shown({}, refused), 'change-refused'),
    second = byID(shown({}, refused), 'change-refused');
  first.ref(element);
  assert.equal(scrolled, 1);
  assert.equal(first.ref, second.ref, 'preact calls one that stays only for a new element');
});

test('the buttons that make a reservation longer stand at its end, and not beside the one that cancels it', () => {
  const forms = parts(shown()).filter(part => part.type === 'form'),
    end = forms.find(form => byID(form, 'until'));
  assert.equal(parts(end).filter(part => part.props['data-more']).length, 3);
  const beside = parts(shown()).find(part => part.props.class === 'actions' && byID(part, 'cancel'));
  assert.ok(beside && !parts(beside).some(part => part.props['data-more']));
});

test('the time of a reservation names its zone', () => {
  setZone('Europe/Paris');
  assert.equal(words(byID(shown(), 'reservation-zone')), 'Europe/Paris');
});

test('a filter is read as people write it, and is JSON in the command', () => {
  const filter = ['and', ['=', '$gpu', 'a100'], ['>=', '$memory_mb', 65536]],
    list = parts(shown({host_properties: filter})).find(part => part.props.class === 'facts');
  assert.match(words(list), /gpu = a100, memory_mb ≥ 65536/);
  assert.ok(!words(list).includes('$gpu'));
  assert.match(words(byID(shown({host_properties: filter}), 'same-command')), /\["=","\$gpu","a100"\]/);
  assert.match(words(shown({host_properties: ['or', ['=', '$a', 1], ['=', '$b', 2]]})), /\["or",\["=","\$a",1\]/);
});

test('the question before a cancellation names the time and the hosts', () => {
  setZone('utc');
  const asked = [{type: 'cancel'}, {type: 'answered', key: 'foresee', number: 2, answer: {cancellation: {servers: []}}}],
    view = shown({hosts: ['gpu-1', 'gpu-2']}, asked);
  assert.match(words(byID(view, 'cancel-what')), /10:00 – 12:00 UTC2 hosts: gpu-1, gpu-2/);
});

test('maintenance is called so, and nobody uses it or is warned before its end', () => {
  const maintenance = {
      maintenance: true,
      name: 'new memory',
      hosts: ['gpu-1'],
      events: [{type: 'before_end', time: '2027-06-01T11:00:00Z', state: 'pending'}],
    },
    operator = app(['reservations:create', 'reservations:update', 'reservations:delete', 'reservations:maintain', 'feed:get']),
    asked = [{type: 'cancel'}, {type: 'answered', key: 'foresee', number: 2, answer: {cancellation: {servers: []}}}],
    view = shown(maintenance, asked, operator),
    text = words(view);
  assert.equal(words(byID(view, 'submit-name')), 'Change the reason');
  for (const id of ['cancel', 'confirm-cancel']) assert.equal(words(byID(view, id)), 'Cancel the maintenance', id);
  assert.match(text, /Cancel this maintenance\?.*Its hosts can be reserved/);
  assert.equal(words(byID(view, 'again')), 'Plan it again');
  assert.match(text, /almanac host maintenance gpu-1/);
  assert.doesNotMatch(text, /Use it|warning|Rename|Cancel th(e|is) reservation|server/);
});

test('the messages about maintenance call it so', () => {
  const said = (...events) => {
    let state = page.nothing({id: 'r-1'}),
      effects = [];
    for (const event of [{type: 'begin'}, {type: 'answered', key: 'one', number: 1, answer: {...one, maintenance: true}}, ...events])
      [state, ...effects] = page.step(state, {clock: 0, ...event});
    return effects.find(effect => effect.do === 'toast').text;
  };
  const renamed = [{type: 'typed', field: 'name', value: 'disks'}, {type: 'submit', field: 'name'}];
  assert.equal(said(...renamed, {type: 'answered', key: 'change', number: 2, answer: {...one, maintenance: true, name: 'disks'}}), 'The reason has changed.');
  const canceled = [{type: 'cancel'}, {type: 'answered', key: 'foresee', number: 2, answer: {cancellation: {servers: []}}}, {type: 'confirm'}];
  assert.equal(said(...canceled, {type: 'answered', key: 'cancel', number: 3, answer: {}}), 'The maintenance is canceled: training.');
});

test('a reservation can be booked again, and the link names it', () => {
  assert.equal(byID(shown({id: 'a/b'}), 'again').props.href, '#/calendar?again=a%2Fb');
  assert.equal(byID(shown({}, [], app([])), 'again'), undefined);
});

test('floating IPs are no hosts, and have no command that books them', () => {
  const view = shown({kind: 'address', quantity: 3});
  assert.match(words(view), /3 floating IPs/);
  assert.equal(byID(view, 'same-command'), undefined);
});

// listed returns the view of a list after events.
function listed(events, who = everything) {
  let state = list.nothing({limited: false});
  for (const event of [{type: 'begin'}, ...events]) [state] = list.step(state, {clock: 0, at: 1.8e9, ...event});
  return listOf(who)(state, () => {});
}
const page1 = (count, next = null) => ({
  type: 'answered',
  key: 'rows',
  number: 1,
  answer: {reservations: Array.from({length: count}, (_, i) => ({...one, id: `r-${i}`, name: `run ${i}`})), next},
});

test('a list that is not known yet does not say that it is empty', () => {
  assert.match(words(listed([])), /Loading/);
  assert.ok(!words(listed([])).includes('There are no reservations'));
  assert.match(words(listed([page1(0)])), /There are no reservations/);
});

test('a failed reading shows why, when it is tried again, and a button', () => {
  const view = listed([{type: 'answered', key: 'rows', number: 1, error: {passes: true, message: 'The service cannot be reached.'}}]);
  assert.match(words(view), /cannot be reached.*next attempt is in 1 s/);
  assert.ok(byID(view, 'try-again'));
  assert.ok(!words(view).includes('There are no reservations'));
});

test('a list tells how many of its rows are shown', () => {
  assert.match(words(listed([page1(2820)])), /2,820 reservations.*100 of 2,820 are shown/);
  assert.match(words(listed([page1(2820), ...Array(9).fill({type: 'more'})])), /500 of 2,820 are shown\. Search/);
  assert.ok(!words(listed([page1(60)])).includes('are shown'));
});

test('a reservation that waits shows its place and its window, can be canceled, and changes in no form', () => {
  const waits = {
    status: 'waiting',
    window_start: '2027-06-01T10:00:00Z',
    window_end: '2027-06-01T14:00:00Z',
    waiting: {until: '2027-06-01T11:00:00Z', place: 2, of: 5, next_start: '2027-06-02T08:00:00Z'},
  };
  setZone('utc');
  const view = shown(waits),
    text = words(view);
  for (const part of ['waiting', 'place 2 of 5, until', 'canceled if there is none until', 'There is room from', 'none yet'])
    assert.ok(text.includes(part), `${part} is not in: ${text}`);
  assert.ok(!text.includes('Movable'), 'its window is not that of a movable one');
  assert.ok(byID(view, 'cancel'));
  for (const name of ['rename', 'submit-end', 'submit-quantity']) assert.equal(byID(view, name), undefined, name);
  const without = words(shown({...waits, waiting: {until: waits.waiting.until}}));
  assert.ok(!without.includes('place') && !without.includes('There is room from'), without);
});
