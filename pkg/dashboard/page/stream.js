// SPDX-License-Identifier: Apache-2.0
// The stream of events of the API. It is read with fetch: an EventSource shows neither the signs of life of a quiet
// stream nor why one was refused.
import {read, unread} from './event-text.js';
import {signOff} from './client.js';

const FIRST = 1000,
  LONGEST = 60000,
  SILENCE = 40000; // the service says something every 15 seconds

// stream follows the events while the page is visible: browsers allow few connections to one server, over all tabs. A
// stream that ended goes on where it was. `heard` is called for every sign of life, `state` when the stream opens and
// ends, and `lost` when changes may be missing: the page must read again what it shows. The first stream begins with
// `lost`, because what was read before it opened may be old. It returns what ends the stream.
export function stream({calendar, hosts = () => {}, lost, state = () => {}, heard = () => {}}) {
  const ending = new AbortController(),
    take = {calendar, hosts, reset: lost};
  let open = null, // ends the stream that is open
    text = unread,
    timer,
    failures = 0;

  async function follow() {
    clearTimeout(timer);
    if (open || document.hidden || ending.signal.aborted) return;
    const end = (open = new AbortController());
    let after = 0;
    try {
      const headers = {Accept: 'text/event-stream', ...(text.id ? {'Last-Event-ID': text.id} : {})},
        answer = await fetch('../v1/events', {headers, signal: end.signal, credentials: 'same-origin', cache: 'no-store'});
      if (answer.status === 401) signOff();
      after = Number(answer.headers.get('Retry-After')) || 0;
      if (answer.ok) await listen(answer.body.pipeThrough(new TextDecoderStream()).getReader(), end);
    } catch {
      // It is followed again below, whatever ended it.
    }
    if (open !== end) return;
    close();
    const wait = Math.min(LONGEST, FIRST * 2 ** failures++) * (0.75 + Math.random() / 2);
    timer = setTimeout(follow, Math.max(wait, after * 1000));
  }

  // listen takes what comes until the stream ends or is silent for too long.
  async function listen(reader, end) {
    state(true);
    failures = 0;
    if (!text.id) lost();
    text = {...text, rest: ''};
    for (;;) {
      heard();
      const silence = setTimeout(() => end.abort(), SILENCE);
      const {done, value} = await reader.read().finally(() => clearTimeout(silence));
      if (done || open !== end) return;
      const [next, events] = read(text, value);
      text = next;
      for (const {name, data} of events) tell(name, data);
    }
  }

  // tell hands an event on. A mistake there is no reason to end the stream.
  function tell(name, data) {
    try {
      take[name]?.(JSON.parse(data));
    } catch (error) {
      reportError(error);
    }
  }

  function close() {
    if (!open) return;
    open.abort();
    open = null;
    state(false);
  }

  function rest() {
    clearTimeout(timer);
    close();
  }
  document.addEventListener('visibilitychange', () => (document.hidden ? rest() : follow()), {signal: ending.signal});
  addEventListener('pagehide', rest, {signal: ending.signal});
  addEventListener('pageshow', follow, {signal: ending.signal});
  addEventListener('online', follow, {signal: ending.signal});
  follow();
  return () => {
    ending.abort();
    clearTimeout(timer);
    open?.abort();
    open = null;
  };
}
