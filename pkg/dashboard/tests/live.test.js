// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {read, unread} from '../page/event-text.js';
import {heard, liveText, lost, silent} from '../page/live.js';

// taken returns the state and the events after pieces of a stream.
const taken = (...pieces) =>
  pieces.reduce(
    ([state, events], piece) => {
      const [next, more] = read(state, piece);
      return [next, [...events, ...more]];
    },
    [unread, []],
  );

test('a stream has the same events wherever its pieces are cut', () => {
  const text =
    'retry: 2000\nid: a.1.0\n\nid: a.2.1\nevent: calendar\ndata: {"mine":\ndata: true}\n\nid: a.3.1\n\nevent: reset\r\ndata: {}\r\n\r\n';
  const [whole, events] = taken(text);
  assert.deepEqual(events, [
    {name: 'calendar', data: '{"mine":\ntrue}'},
    {name: 'reset', data: '{}'},
  ]);
  for (let cut = 0; cut <= text.length; cut++) assert.deepEqual(taken(text.slice(0, cut), text.slice(cut)), [whole, events]);
});

test('a line without data is no event, and moves on where the stream resumes', () => {
  const [state, events] = taken('id: a.1.0\n\n', 'id: a.9.0\n\n', '\n\n');
  assert.deepEqual([state.id, events], ['a.9.0', []]);
});

test('an event that is not whole is not told', () => {
  const [state, events] = taken('id: a.1.0\nevent: calendar\ndata: {"mi');
  assert.deepEqual([state.id, events], ['', []]);
});

test('live tells its age', () => {
  assert.equal(liveText(silent, 5000), 'Connecting …');
  let live = heard(silent, 5000);
  assert.equal(liveText(live, 5900), 'Live · 0 s old');
  assert.equal(liveText(live, 8100), 'Live · 3 s old');
  live = heard(live, 9000);
  assert.equal(liveText(live, 9000), 'Live · 0 s old');
});

test('a stream that ended is not live, and its last word keeps its age', () => {
  const live = lost(heard(silent, 5000));
  assert.equal(liveText(live, 17000), 'Not live · 12 s old');
  assert.equal(liveText(live, 5000 + 185000), 'Not live · 3 min old');
  assert.equal(lost(live), live);
  assert.equal(liveText(heard(live, 200000), 201000), 'Live · 1 s old');
});
