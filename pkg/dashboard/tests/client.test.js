// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {request} from '../page/client.js';
import {t} from '../page/texts.js';

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

// shared is a reservation at a service that changes only the version which the request names. `between` is what somebody
// else does after each reading.
function shared(between = () => {}) {
  const one = {version: 1, value: {id: 'r1', end: '2026-12-01T10:00:00Z', status: 'pending'}, sent: []};
  one.change = values => {
    one.value = {...one.value, ...values};
    one.version++;
  };
  globalThis.fetch = async (path, {method, headers, body}) => {
    one.sent.push(method);
    if (method === 'GET') {
      const answer = new Response(JSON.stringify(one.value), {headers: {ETag: `W/"${one.version}-x"`}});
      between(one);
      return answer;
    }
    if (headers['If-Match'] !== `W/"${one.version}-x"`)
      return new Response(JSON.stringify({error: {kind: 'precondition', message: 'it has changed'}}), {status: 412});
    one.change({end: JSON.parse(body).end_time});
    return new Response(JSON.stringify(one.value));
  };
  return one;
}

const later = {method: 'PATCH', path: 'v1/reservations/r1', body: {end_time: '2026-12-01T11:00:00Z'}, provided: {end: '2026-12-01T10:00:00Z'}};

test('a change that is meant for certain values is made of the version that has them', async () => {
  const one = shared();
  assert.equal((await request(later)).end, '2026-12-01T11:00:00Z');
  assert.deepEqual(one.sent, ['GET', 'PATCH']);
});

test('a change that is meant for certain values is not sent over those of somebody else', async () => {
  const one = shared();
  one.change({end: '2026-12-01T16:00:00Z'});
  await assert.rejects(request(later), {status: 412, passes: false, message: t('changedBySomebody'), now: one.value});
  assert.deepEqual(one.sent, ['GET']);
});

test('values that are lists are compared by what they say', async () => {
  const one = shared(),
    provided = {host_properties: ['=', '$gpu', 'a100']};
  one.change(structuredClone(provided));
  assert.equal((await request({...later, provided})).end, '2026-12-01T11:00:00Z');
  await assert.rejects(request({...later, provided: {host_properties: undefined}}), {status: 412});
  await assert.rejects(request({...later, provided: {host_properties: ['=', '$gpu', 'h100']}}), {status: 412});
});

test('a change is not made over one of somebody else between its reading and its writing', async () => {
  const one = shared(one => one.sent.length === 1 && one.change({end: '2026-12-01T16:00:00Z'}));
  await assert.rejects(request(later), {status: 412, message: t('changedBySomebody'), now: one.value});
  assert.deepEqual([one.sent, one.value.end], [['GET', 'PATCH', 'GET'], '2026-12-01T16:00:00Z']);
});

test('what changes in other ways between reading and writing does not stop a change, unless it never rests', async () => {
  const one = shared(one => one.sent.length === 1 && one.change({status: 'active'}));
  assert.equal((await request(later)).end, '2026-12-01T11:00:00Z');
  assert.equal(one.value.status, 'active');
  const restless = shared(one => one.change({status: 'active'}));
  await assert.rejects(request(later), {status: 412, passes: false, now: null});
  assert.equal(restless.sent.length, 6);
  assert.equal(restless.value.end, '2026-12-01T10:00:00Z');
});

test('a change of what cannot be read is told to be unsent, and one without an answer is not', async () => {
  globalThis.fetch = async () => {
    throw new TypeError('no network');
  };
  await assert.rejects(request(later), {passes: true, unsent: true});
  globalThis.fetch = async (path, {method}) => {
    if (method === 'PATCH') throw new TypeError('no network');
    return new Response(JSON.stringify({id: 'r1', end: '2026-12-01T10:00:00Z'}), {headers: {ETag: '"1-x"'}});
  };
  await assert.rejects(request(later), {passes: true, unsent: false});
});
