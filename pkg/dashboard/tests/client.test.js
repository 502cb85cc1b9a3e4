// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {request} from '../page/client.js';

const {fetch} = globalThis;
afterEach(() => {
  globalThis.fetch = fetch;
});

// answering lets the service answer with a text, which may break off.
function answering(status, text, {cut} = {}) {
  const pieces = new ReadableStream({
    start(stream) {
      stream.enqueue(new TextEncoder().encode(text));
      if (cut) stream.error(cut);
      else stream.close();
    },
  });
  globalThis.fetch = async () => new Response(pieces, {status});
}
const reservations = {path: 'v1/reservations'},
  calendar = {calendar: true, query: {}};

test('an answer that is cut off, or is none of the service, is no answer, and the same may be asked again', async () => {
  for (const wanted of [reservations, calendar]) {
    answering(200, '{"hosts": [', {cut: new TypeError('network error')});
    await assert.rejects(request(wanted), {status: 0, passes: true});
    answering(200, '{"hosts": [');
    await assert.rejects(request(wanted), {status: 0, passes: true});
    answering(200, '<h1>Sign in to the network</h1>');
    await assert.rejects(request(wanted), {status: 0, passes: true});
  }
});

test('an error that is none of the service keeps its status', async () => {
  for (const [status, passes] of [
    [502, true],
    [403, false],
  ]) {
    answering(status, '<h1>no</h1>');
    await assert.rejects(request(reservations), {status, passes});
  }
});

test('a request that the page gives up while it is answered stays given up', async () => {
  answering(200, '{"hosts": [', {cut: new DOMException('given up', 'AbortError')});
  await assert.rejects(request(calendar), {name: 'AbortError'});
});

test('a change that is meant for certain values is not sent over those of somebody else', async () => {
  const sent = [],
    change = {method: 'PATCH', path: 'v1/reservations/r1', body: {end_time: '2026-12-01T11:00:00Z'}, provided: {end: '2026-12-01T10:00:00Z'}};
  const having = end => {
    globalThis.fetch = async (path, {method}) => {
      sent.push(method);
      return new Response(JSON.stringify({id: 'r1', end}));
    };
  };
  having('2026-12-01T10:00:00Z');
  await request(change);
  assert.deepEqual(sent.splice(0), ['GET', 'PATCH']);
  having('2026-12-01T16:00:00Z');
  await assert.rejects(request(change), {status: 412, passes: false});
  assert.deepEqual(sent, ['GET']);
});
