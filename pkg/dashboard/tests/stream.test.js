// SPDX-License-Identifier: Apache-2.0
// The stream needs a browser for little, and these stand for it: a service that answers as each test says, and listeners.
import assert from 'node:assert/strict';
import {afterEach, beforeEach, mock, test} from 'node:test';

const listeners = {};
const listen = (name, then) => (listeners[name] = then);
Object.assign(globalThis, {document: {hidden: false, addEventListener: listen}, addEventListener: listen});
globalThis.localStorage ??= {getItem: () => null, setItem: () => {}};
let asked, answers;
globalThis.fetch = async (path, {headers, signal}) => {
  asked.push(headers['Last-Event-ID'] || '');
  const answer = answers.shift();
  if (!answer) throw new TypeError('no connection');
  signal.addEventListener('abort', () => answer.end(new Error('aborted')));
  return answer;
};
const {stream} = await import('../page/stream.js');
const {onSignedOut} = await import('../page/client.js');

// answering returns an answer of the service. Its stream has the given text, and more by say; end ends it.
function answering(text, status = 200, headers = {}) {
  let to;
  const body = new ReadableStream({start: controller => (to = controller)});
  const answer = new Response(body, {status, headers});
  answer.say = more => to.enqueue(new TextEncoder().encode(more));
  answer.end = error => {
    try {
      if (error) to.error(error);
      else to.close();
    } catch {
      // It has ended.
    }
  };
  if (text) answer.say(text);
  return answer;
}

// settled waits until everything that can happen at this moment has happened.
async function settled() {
  for (let i = 0; i < 50; i++) await new Promise(done => setImmediate(done));
}

let told, end;
async function start() {
  end = stream({calendar: event => told.push(event.status), lost: () => told.push('lost'), state: on => told.push(on ? 'on' : 'off')});
  await settled();
}
async function pass(ms) {
  mock.timers.tick(ms);
  await settled();
}

beforeEach(() => {
  mock.timers.enable({apis: ['setTimeout']});
  [asked, answers, told, document.hidden] = [[], [], [], false];
});
afterEach(async () => {
  end();
  await settled();
  mock.timers.reset();
});

const event = (id, status) => `id: ${id}\nevent: calendar\ndata: {"status":"${status}"}\n\n`;

test('what was read before the first stream opened is read again', async () => {
  answers = [answering('id: a\n\n' + event('b', 'pending'))];
  await start();
  assert.deepEqual(told, ['on', 'lost', 'pending']);
});

test('a stream that ended goes on where it was, and nothing is read again', async () => {
  const first = answering(event('b', 'pending'));
  answers = [first, answering(event('c', 'active'))];
  await start();
  first.end();
  await settled();
  await pass(1300);
  assert.deepEqual(
    [asked, told],
    [
      ['', 'b'],
      ['on', 'lost', 'pending', 'off', 'on', 'active'],
    ],
  );
});

test('what the service cannot tell any more is read again', async () => {
  answers = [answering('id: a\nevent: reset\ndata: {"reason":"too slow"}\n\n')];
  await start();
  assert.deepEqual(told, ['on', 'lost', 'lost']);
});

test('a stream that is silent for longer than the service ever is has ended', async () => {
  const first = answering('id: a\n\n');
  answers = [first, answering('id: b\n\n')];
  await start();
  await pass(39000);
  first.say('id: a2\n\n'); // a sign of life
  await settled();
  await pass(39000);
  assert.deepEqual(told, ['on', 'lost']);
  await pass(2000);
  assert.deepEqual(told, ['on', 'lost', 'off']);
  await pass(1300);
  assert.deepEqual([asked, told.at(-1)], [['', 'a2'], 'on']);
});

test('a service that is away is asked after growing times, and no sooner than it says', async () => {
  answers = [null, null, answering('', 503, {'Retry-After': '30'}), answering('id: a\n\n')];
  await start();
  await pass(1300);
  await pass(2600);
  assert.equal(asked.length, 3);
  await pass(29000);
  assert.equal(asked.length, 3);
  await pass(1500);
  assert.deepEqual([asked.length, told.at(-1)], [4, 'lost']);
});

test('a hidden page has no stream', async () => {
  answers = [answering(event('b', 'pending')), answering('')];
  await start();
  document.hidden = true;
  listeners.visibilitychange();
  await pass(60000);
  assert.deepEqual([asked.length, told.at(-1)], [1, 'off']);
  document.hidden = false;
  listeners.visibilitychange();
  await settled();
  assert.deepEqual(asked, ['', 'b']);
});

test('who is not signed in any more is asked to sign in', async () => {
  let out = false;
  onSignedOut(() => (out = true));
  answers = [answering('', 401)];
  await start();
  assert.equal(out, true);
});
