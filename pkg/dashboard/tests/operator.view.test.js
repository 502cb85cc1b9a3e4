// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {add} from '../page/texts.js';
import {texts} from '../page/texts-operator.js';
import {alike} from '../page/operator-queue.js';
import {columnsOf, pathOf} from '../page/operator-day.js';
import {found} from '../page/operator-hosts.js';
import {viewOf} from '../page/operator-view.js';
import {follow} from '../page/time.js';
import {setZone} from '../page/zones.js';
import {byID, parts, words} from './elements.js';
import {NOW, World, lost} from './operator.world.js';

add(texts);
setZone('UTC');
follow(NOW, 1);
afterEach(() => setZone('UTC'));

const iso = at => new Date(at * 1000).toISOString();

// shown returns the view of a page after answers, by their questions; an Error is a refusal.
function shown(page, answers, options) {
  const world = new World(page, options);
  for (const [key, answer] of Object.entries(answers)) world.answer(key, answer);
  return {world, view: viewOf()(world.state, event => world.send(event)), again: () => viewOf()(world.state, event => world.send(event))};
}

const press = one => one.props.onclick({currentTarget: {}});
const links = view => parts(view).filter(one => one.type === 'a').map(one => one.props.href);

const energy = {
  mode: null,
  effective_mode: 'recommend',
  configured_mode: 'recommend',
  aggregates: {},
  hosts: {},
  stopped: null,
  breaker: null,
  failed_boots: 0,
  halt: '',
  stale: '',
  measured_at: iso(NOW),
  controller: 'ctl-1',
  alarms: [{kind: 'stuck', host: 'node-04', text: 'it is waking for too long'}],
  agents: [{name: 'rack-1', hosts: 1, lost: false}],
  phases: {awake: 15, asleep: 1},
  savings: {kwh: 0.11, host_hours: 1},
};
const plan = {id: 'p', at: iso(NOW), required: 2, spare: 1, on: 15, short: '', switches: [
    {host: 'node-03', to: 'off', reason: 'idle'},
    {host: 'node-05', to: 'off', reason: 'idle'},
    {host: 'node-07', to: 'on', reason: 'a reservation'},
  ], kept: [], approved: null};
const known = {energy, plan, demand: {demand: [{at: iso(NOW - 3600), in_use: 4, reserved: 2}, {at: iso(NOW), in_use: 3, reserved: 1}]}, energyHosts: []};

test('equal lines of best-effort servers are one', () => {
  const vms = [
    ...Array.from({length: 38}, () => ({status: 'waiting', reason: 'The hosts are busy.'})),
    {status: 'running', host: 'node-02'},
    {status: 'running', host: 'node-01'},
    {status: 'waiting', reason: 'Another one.'},
  ];
  assert.deepEqual(
    alike(vms).map(({status, count, hosts}) => [status, count, hosts]),
    [
      ['waiting', 38, []],
      ['running', 2, ['node-01', 'node-02']],
      ['waiting', 1, []],
    ],
  );
  const {view} = shown('queue', {queue: [{id: 'q', name: 'frames', project_id: 'demo', status: 'running', vms}]});
  const text = words(view);
  assert.match(text, /38 servers wait: The hosts are busy\./);
  assert.match(text, /2 servers run · node-01, node-02/);
  assert.match(text, /1 server waits: Another one\./);
});

test('a page tells how old it is, and that it is out of date after a failure', () => {
  const {world, again} = shown('images', {images: {images: []}});
  world.pass(12000);
  assert.equal(words(byID(again(), 'age')), 'As of 12 s ago');
  world.pass(3000);
  world.answer('images', null, lost);
  assert.equal(words(byID(again(), 'age')), 'As of 15 s ago · out of date');
  assert.match(words(again()), /the service cannot be reached The next attempt is in 1 s\./);
  assert.match(words(again()), /No image is on a host/, 'the last good answer stays');
  assert.ok(parts(again()).some(one => one.props.class === 'outdated'));
  press(byID(again(), 'try-again'));
  assert.equal(world.asks().length, 3);
});

test('the modes are in words, with the one that applies and what the plan would do', () => {
  const {view, world, again} = shown('energy', known);
  const text = words(view);
  assert.match(text, /recommend now/);
  assert.match(text, /With the present plan it would put 2 to sleep and wake 1\./);
  assert.equal(byID(view, 'mode-recommend'), undefined);
  press(byID(view, 'mode-auto'));
  assert.match(words(again()), /Change the mode to automatic\?/);
  world.send({type: 'confirm'});
  assert.deepEqual(world.requests.get('order').request, {method: 'PATCH', path: 'v1/energy', body: {reason: 'from the page', mode: 'auto'}});
});

test('who may not change the energy sees no button for it', () => {
  const reads = ['energy:get', 'energy:get_plan', 'energy:get_audit', 'energy:list_hosts'];
  const {view} = shown('energy', known, {may: rule => reads.includes(rule)});
  for (const id of ['kill-switch', 'mode-auto', 'approve']) assert.equal(byID(view, id), undefined, id);
});

test('without an energy controller the page says so once', () => {
  const world = new World('energy');
  for (const key of ['energy', 'plan', 'demand', 'energyHosts']) world.answer(key, null, {status: 404, passes: false, message: 'there is no energy controller'});
  const text = words(viewOf()(world.state, () => {}));
  assert.equal(text.split('There is no energy controller').length, 2);
});

test('the line of the last day has a text', () => {
  const {view} = shown('energy', known);
  const picture = parts(view).find(one => one.type === 'svg' && one.props.role === 'img');
  assert.equal(picture.props['aria-label'], 'In use now: 3. Reserved now: 1. The most in use: 4, at 07:00.');
  const {view: unused} = shown('energy', {...known, demand: {demand: [{at: iso(NOW), in_use: 0, reserved: 1}]}});
  assert.match(words(unused), /No host was in use\. Reserved now: 1\./);
});

test('the line of the last day ends where nothing was measured', () => {
  const demand = [-7200, -6900, -600, -300].map(ago => ({at: iso(NOW + ago), in_use: 2, reserved: 0}));
  const columns = columnsOf([{at: iso(NOW - 90000), in_use: 9, reserved: 9}, ...demand], NOW);
  assert.equal(columns.filter(Boolean).length, 4);
  assert.equal(pathOf(columns, 'used', 2), 'M264 0H265H265V0H266M286 0H287H287V0H288');
});

test('on each page the name of a host leads to its page, and a small link to its row in the calendar', () => {
  const name = 'rack 1/a',
    decision = {request_id: 'req-1', at: iso(NOW), placements: [{instance: 'i', host: name}], refused: [{host: name, filter: 'F', reason: 'no'}], ranked: [{host: name, weight: 1}]};
  const pages = {
    energy: {...known, energy: {...energy, alarms: [{kind: 'stuck', host: name, text: 'late'}]}, energyHosts: [{name, phase: 'awake', effective_mode: 'auto', explanation: []}]},
    hosts: {hosts: [{...host, name}]},
    images: {images: {images: [{id: 'i', host: name, state: 'there'}]}},
    preemptible: {preemptible: {instances: [{id: 'i', name: 'vm', host: name, project_id: 'demo', cost: null, evictable: true}]}},
    queue: {queue: [{id: 'q', name: 'frames', project_id: 'demo', status: 'running', vms: [{status: 'running', host: name}]}]},
  };
  const views = Object.entries(pages).map(([page, answers]) => [page, shown(page, answers).view]);
  const asked = new World('decisions');
  asked.send({type: 'edit', form: 'decisions', field: 'server', value: 'i'});
  asked.send({type: 'submit', form: 'decisions'});
  asked.answer('decisions', {decisions: [decision]});
  for (const [page, view] of [...views, ['decisions', viewOf()(asked.state, () => {})]]) {
    const all = parts(view).filter(one => one.type === 'a' && words(one) === name);
    assert.ok(all.length > 0, page);
    for (const one of all) assert.equal(one.props.href, '#/operator/hosts/rack%201%2Fa', page);
    const rows = parts(view).filter(one => one.type === 'a' && one.props.href === '#/calendar?host=rack%201%2Fa');
    for (const one of rows) assert.deepEqual([words(one), one.props.class], ['Calendar', 'aside'], page);
    assert.equal(rows.length, page === 'queue' ? 0 : all.length, page);
  }
});

test('who may not see the page of a host is led to its row in the calendar', () => {
  const {view} = shown('images', {images: {images: [{id: 'i', host: 'node-01', state: 'there'}]}}, {may: rule => rule === 'images:list'});
  assert.ok(links(view).includes('#/calendar?host=node-01') && !links(view).includes('#/operator/hosts/node-01'));
});

const without = {...known, energy: {...energy, effective_mode: 'observe', agents: [], alarms: [], measured_at: null}};

test('without an agent nothing can be switched, so the page offers neither the automatic mode nor the kill switch', () => {
  const {view} = shown('energy', without);
  assert.match(words(view), /no host can be switched\. .*almanac-power.*docs\/energy\.md/);
  for (const id of ['kill-switch', 'mode-auto']) assert.equal(byID(view, id), undefined, id);
  assert.ok(byID(view, 'mode-off') && byID(view, 'mode-recommend'));
  assert.doesNotMatch(words(view), /Measured/);
  const stopped = shown('energy', {...without, energy: {...without.energy, stopped: {by: 'ops', reason: 'cooling'}}}).view;
  assert.equal(words(byID(stopped, 'kill-switch')), 'Let idle hosts sleep again');
  assert.ok(byID(shown('energy', known).view, 'kill-switch'));
});

test('a host that no agent can switch has no automatic mode', () => {
  const {view} = shown('hosts', {host, power: {...power, mode: 'observe', states: []}}, {item: 'node-01'});
  assert.equal(byID(view, 'mode-auto'), undefined);
  assert.ok(byID(view, 'mode-off'));
});

test('a column without any reason is left out', () => {
  const one = {name: 'node-01', phase: 'awake', effective_mode: 'auto', explanation: []},
    heads = hosts => parts(shown('energy', {...known, energyHosts: hosts}).view).filter(({type}) => type === 'th').map(words);
  assert.ok(!heads([one]).includes('Why'));
  assert.ok(heads([one, {...one, name: 'node-02', explanation: ['it was idle']}]).includes('Why'));
});

test('what the service says begins with a capital', () => {
  const world = new World('energy');
  world.answer('energy', energy);
  world.answer('plan', null, {status: 404, passes: false, message: 'no plan has been made yet; the mode is off'});
  assert.match(words(viewOf()(world.state, () => {})), /No plan has been made yet; the mode is off/);
});

test('what was read just now is as of now', () => {
  const {world, again} = shown('images', {images: {images: []}});
  world.pass(900);
  assert.equal(words(byID(again(), 'age')), 'As of now');
});

const claim = (from, hours, more) => ({start: iso(NOW + from * 3600), end: iso(NOW + (from + hours) * 3600), kind: 'host', share: 1, mine: false, ...more});
const maintained = (...claims) => ({maintenance: {hosts: [{host: 'node-01', claims}]}});

test('the page of a host names the maintenance that is under way and the next one, however far ahead', () => {
  const {view, world} = shown(
    'hosts',
    {
      host,
      power,
      ...maintained(
        claim(-1, 2, {maintenance: true, name: 'disks', reservation_id: 'm-1'}),
        claim(24, 2, {name: 'training', reservation_id: 'r-1'}),
        claim(2000, 4, {maintenance: true, name: 'new memory', reservation_id: 'm/2'}),
        claim(3000, 4, {maintenance: true, name: 'later', reservation_id: 'm-3'}),
      ),
    },
    {item: 'node-01'},
  );
  const {request} = world.asked.find(({key}) => key === 'maintenance');
  assert.deepEqual([request.path, request.query.host, request.query.start], ['v1/calendar', 'node-01', '2027-01-15T08:00:00Z']);
  assert.ok(Date.parse(request.query.end) / 1000 > NOW + 50 * 365 * 86400);
  assert.match(words(byID(view, 'maintenance-now')), /07:00 – 09:00: disks/);
  assert.match(words(byID(view, 'maintenance-next')), /Thu, Apr 8, 16:00 – 20:00 \(in 83d 8h\): new memory/);
  assert.ok(links(view).includes('#/reservation/m%2F2') && !links(view).includes('#/reservation/m-3'));
});

test('a host without maintenance to come says so, and one that is gone asks for none', () => {
  const {view} = shown('hosts', {host, power, ...maintained(claim(24, 2, {name: 'training'}))}, {item: 'node-01'});
  assert.match(words(view), /Next maintenancenone/);
  assert.equal(byID(view, 'maintenance-now'), undefined);
  const world = new World('hosts', {item: 'gone'});
  world.answer('host', null, {status: 404, passes: false, message: 'no host gone'});
  world.answer('maintenance', null, {status: 400, passes: false, message: 'there is no host gone'});
  assert.equal(words(viewOf()(world.state, () => {})).split(/no host gone/i).length, 2);
});

const host = {name: 'node-01', resources: {vcpus: 8, memory_mb: 1, disk_gb: 1}, instance_count: 0, zone: 'az1', aggregates: [], reservable: true, power: 'on', problem: ''};
const power = {name: 'node-01', phase: 'awake', states: ['on', 'off'], effective_mode: 'auto', explanation: [], hold: null, history: []};

test('a host has the actions that its user may carry out', () => {
  const all = shown('hosts', {host, power}, {item: 'node-01'}).view;
  assert.equal(byID(all, 'maintain').props.href, '#/calendar?maintain=node-01');
  for (const id of ['pool', 'out-of-order', 'power-stay', 'power-off', 'power-test']) assert.ok(byID(all, id), id);
  assert.equal(byID(all, 'power-standby'), undefined, 'its machine has no standby');
  assert.equal(byID(all, 'power-release'), undefined, 'there is no order to release');
  const reader = shown('hosts', {host}, {item: 'node-01', may: rule => rule === 'hosts:get_instances'}).view;
  assert.doesNotMatch(words(reader), /Actions/);
});

test('a drain takes a host out of the pool, after a question', () => {
  const {view, world, again} = shown('hosts', {host, power}, {item: 'node-01'});
  press(byID(view, 'pool'));
  assert.equal(world.requests.get('order'), undefined);
  assert.match(words(again()), /Drain node-01\?/);
  world.send({type: 'confirm'});
  assert.deepEqual(world.requests.get('order').request, {method: 'PATCH', path: 'v1/hosts/node-01', body: {reservable: false}});
});

test('a host gets a mode of its own, and loses it', () => {
  const {view, world} = shown('hosts', {host, power: {...power, mode: 'off'}}, {item: 'node-01'});
  assert.equal(byID(view, 'mode-off'), undefined, 'it has this one');
  press(byID(view, 'mode-none'));
  world.send({type: 'confirm'});
  assert.deepEqual(world.requests.get('order').request.body, {reason: 'from the page', hosts: {'node-01': null}});
  assert.equal(byID(shown('hosts', {host, power: {...power, mode: null}}, {item: 'node-01'}).view, 'mode-none'), undefined);
});

test('before an order for the power the service says what would happen', () => {
  const {view, world, again} = shown('hosts', {host, power}, {item: 'node-01'});
  press(byID(view, 'power-off'));
  world.answer('trial', {outcome: 'switched off once it is empty'});
  assert.equal(words(byID(again(), 'outcome')), 'node-01 would be: switched off once it is empty.');
});

test('hosts are found by name, zone, aggregate and problem', () => {
  const hosts = [host, {...host, name: 'node-02', zone: 'az2', problem: 'its nova-compute is down', power: 'failed'}];
  assert.deepEqual(found(hosts, ' AZ2 ').map(one => one.name), ['node-02']);
  assert.deepEqual(found(hosts, 'nova').map(one => one.name), ['node-02']);
  assert.deepEqual(found(hosts, '').length, 2);
});

test('a finding has its remedy, and what the fix did stays over the next reading', () => {
  const finding = {kind: 'missing', subject: 'r-1', message: 'an aggregate is missing', remedy: 'almanac doctor --fix restores it', fixable: true};
  const {view, world, again} = shown('doctor', {doctor: {cloud: true, findings: [finding]}});
  assert.match(words(view), /almanac doctor --fix restores it/);
  press(byID(view, 'fix'));
  world.send({type: 'confirm'});
  world.answer('order', {cloud: true, findings: [{...finding, outcome: 'fixed'}]});
  world.answer('doctor', {cloud: true, findings: []});
  const text = words(again());
  assert.match(text, /Everything is consistent/);
  assert.match(words(byID(again(), 'treatment')), /missing.*fixed/);
});

test('a report is downloaded for the period that is shown', () => {
  const {view} = shown('usage', {usage: {start: iso(NOW - 7), end: iso(NOW), rows: [], total: {reserved: 0, used: 0}}});
  const {href, download} = byID(view, 'csv').props;
  assert.equal(href, `../v1/usage?${new URLSearchParams({start: iso(NOW - 7), end: iso(NOW), by: 'project', format: 'csv'})}`);
  assert.equal(download, '', 'the service names the file');
});

test('of many rows the first are shown, and all after a press', () => {
  const {view, world, again} = shown('hosts', {hosts: Array.from({length: 250}, (_, i) => ({...host, name: `node-${i}`}))});
  const rows = one => parts(one).filter(({type, key}) => type === 'tr' && key).length;
  assert.equal(rows(view), 100);
  press(byID(view, 'all-hosts'));
  assert.equal(rows(again()), 250);
  assert.ok(world);
});

test('times in texts of the service are those of the zone that is shown', () => {
  setZone('Europe/Paris');
  const {view} = shown('energy', {...known, energy: {...energy, halt: 'stopped until 2027-06-01T20:00:00Z'}});
  assert.match(words(view), /stopped until .*22:00/);
});
