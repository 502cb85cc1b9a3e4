// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {test} from 'node:test';
import {command, quoted, serverCommand} from '../page/command.js';

const now = Date.parse('2027-01-01T00:00:00Z') / 1000;
const one = {
  id: 'r-1',
  name: 'web',
  kind: 'instance',
  start: '2027-02-01T10:00:00Z',
  end: '2027-02-01T18:00:00Z',
  quantity: 4,
  policy: 'first-fit',
  host_properties: ['=', '$gpu', "a'100"],
  resources: {vcpus: 8, memory_mb: 32768, disk_gb: 40},
  affinity: 'different',
  image: 'img-1',
  on_end: 'shelve',
  before_end: 1800,
  hosts: [],
  maintenance: false,
};

test('the command has all terms of a reservation of instances', () => {
  assert.equal(
    command(one, now).text,
    'almanac reservation create web --quantity 4 --start 2027-02-01T10:00:00Z --duration 8h --properties \'["=","$gpu","a\'\\\'\'100"]\' --kind instance' +
      ' --vcpus 8 --memory-mb 32768 --disk-gb 40 --affinity different --policy first-fit --image img-1 --on-end shelve --before-end 30m',
  );
});

test('a length is written in days, hours and minutes', () => {
  assert.match(command({...one, end: '2027-02-02T22:30:00Z', before_end: 0}, now).text, / --duration 1d12h30m .* --before-end 0m$/);
});

test('a start that is over is left out', () => {
  const {text} = command({...one, start: '2026-12-31T10:00:00Z'}, now);
  assert.ok(!text.includes('--start') && text.includes('--duration'));
});

test('maintenance has its own command', () => {
  const {text} = command({...one, maintenance: true, kind: 'host', hosts: ['a', 'b c'], name: 'new memory'}, now);
  assert.equal(text, "almanac host maintenance a 'b c' --start 2027-02-01T10:00:00Z --duration 8h --reason 'new memory'");
});

test('a name that looks like an option is none', () => {
  assert.match(command({...one, name: '--dry-run'}, now).text, / -- '--dry-run'$/);
});

test('what the command cannot say is named', () => {
  assert.deepEqual(command({...one, resources: {vcpus: 1, custom: {CUSTOM_GPU: 2}}}, now).lacks, ['CUSTOM_GPU=2']);
  assert.equal(command({...one, kind: 'address'}, now), null);
  assert.equal(serverCommand({...one, kind: 'address'}), null);
});

test('a name of a user is one word of the shell, whatever it has', () => {
  for (const text of [
    'a b',
    "O'Hara",
    '$(id)',
    '`id`',
    '-x',
    '--help',
    'a\nb',
    "a\u202e'b\\",
    '~',
    '=ls',
    '!!',
    '',
    '\u{1f600} x',
    '*',
    'a\u2028b',
  ]) {
    const shown = execFileSync('bash', ['-c', `printf %s ${quoted(text)}`], {env: {...process.env, LC_ALL: 'C.UTF-8'}}).toString();
    assert.equal(shown, text);
    assert.ok(!/[\p{Cc}\p{Cf}]/u.test(quoted(text)), 'no character of it is hidden');
  }
});

test('the command says how the hosts lie to each other', () => {
  const together = {by: 'rack', rule: 'same', required: true, kept: true};
  assert.match(command({...one, together}, now).text, / --affinity different --together rack --together-rule same --policy /);
  assert.match(command({...one, together: {...together, required: false}}, now).text, / --together rack --together-rule same --together-preferred --policy /);
  const spread = {...together, rule: 'spread', values: 3};
  assert.match(command({...one, together: spread}, now).text, / --together rack --together-rule spread --together-values 3 --policy /);
  assert.match(command({...one, together: {...together, rule: 'fewest', required: false}}, now).text, / --together rack --together-rule fewest --together-preferred --policy /);
  const apart = {by: 'rack', apart_from: ['id-1', 'id-2'], required: true, kept: true};
  assert.match(command({...one, together: apart}, now).text, / --together rack --apart-from id-1,id-2 --policy /);
});
