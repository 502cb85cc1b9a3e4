// SPDX-License-Identifier: Apache-2.0
// The local zone of the machine against what Date knows of it, in several zones: a process for each.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {ticks} from '../page/axis.js';
import {DAY, HOUR, MINUTE, seconds, startOfDay} from '../page/time.js';
import {choices, edited, exact, shownField} from '../page/timevalue.js';
import {monthStart, offset, setZone} from '../page/zones.js';

const zones = ['Europe/Paris', 'America/Santiago', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC', 'America/Havana'];

if (process.env.IN_ZONE) checkLocal();
else {
  for (const zone of zones) {
    test(`local times in ${zone}`, () => {
      const env = {...process.env, TZ: zone, IN_ZONE: '1'};
      delete env.NODE_TEST_CONTEXT;
      try {
        execFileSync(process.execPath, [fileURLToPath(import.meta.url)], {env, encoding: 'utf8'});
      } catch (error) {
        assert.fail(error.stdout);
      }
    });
  }
}

function checkLocal() {
  setZone('local');
  const from = seconds('2026-12-30T00:00:00Z'),
    to = seconds('2028-01-03T00:00:00Z');
  const days = [];
  for (let at = from; at < to; at += DAY) days.push(at);

  test('a field shows the local time of Date, and every instant around a change can be expressed', () => {
    const around = days.filter(at => offset(at - DAY) !== offset(at + DAY));
    for (const day of [from, ...around]) {
      for (let at = day; at < day + DAY; at += 5 * MINUTE + 1) {
        const d = new Date(at * 1000),
          text = shownField(exact(at)),
          shown = new Date(seconds(`${text}Z`) * 1000);
        assert.deepEqual(
          [shown.getUTCFullYear(), shown.getUTCMonth(), shown.getUTCDate(), shown.getUTCHours(), shown.getUTCMinutes(), shown.getUTCSeconds()],
          [d.getFullYear(), d.getMonth(), d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()],
        );
        const read = edited(exact(0), text);
        assert.ok([read.at, ...(choices(read) || []).map(one => one.at)].includes(at), text);
        assert.equal(read.moved, false);
      }
    }
  });

  test('days and months begin where Date lets them begin', () => {
    for (const day of days) {
      const at = day + 7 * HOUR,
        d = new Date(at * 1000);
      assert.equal(startOfDay(at), new Date(d.getFullYear(), d.getMonth(), d.getDate()) / 1000);
      assert.equal(startOfDay(at, 3), new Date(d.getFullYear(), d.getMonth(), d.getDate() + 3) / 1000);
      assert.equal(monthStart(at, 1), new Date(d.getFullYear(), d.getMonth() + 1, 1) / 1000);
    }
  });

  test('every line of three hours is at a full three hours of Date', () => {
    for (const {at, strong} of ticks(from, to, 3 * HOUR)) {
      const d = new Date(at * 1000);
      assert.ok(d.getMinutes() === 0 && (strong || d.getHours() % 3 === 0), String(d));
    }
  });
}
