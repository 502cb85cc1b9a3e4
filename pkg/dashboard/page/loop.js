// SPDX-License-Identifier: Apache-2.0
// Runs a part of the page: its state is one value, and every event makes the next one by a pure function. What is to
// be done in the world is data that this shell carries out.
import {render} from './preact.js';
import {Refused, request, unreadable} from './client.js';
import {understood} from './questions.js';
import {now} from './time.js';
import {announce, toast, untoast} from './dom.js';
import {keep} from './kept.js';

// run shows a part in an element. `step(state, event)` returns the next state and effects; each event has the service's
// time as `at`, the milliseconds of the page's own clock as `clock`, and a drawn number as `chance`. `view(state, send)`
// returns what to show. `others` carries out the effects that only this part has, by their names. It returns send, the
// state's reader, and what ends the part.
export function run({place, state, step, view, others = {}}) {
  const requests = new Map(),
    timers = new Map(),
    undoable = []; // close the messages with an undo, which nobody would carry out after the end
  let drawing = false,
    ended = false;

  function send(event) {
    if (ended) return;
    const moment = {at: now(), clock: performance.now(), chance: Math.random()};
    const [next, ...effects] = understood(step, state, {...moment, ...event}, () => unreadable(200), console.error);
    if (next !== state) {
      state = next;
      draw();
    }
    for (const effect of effects) if (effect) carryOut(effect);
  }

  // draw shows the state once for all events of a moment.
  function draw() {
    if (drawing) return;
    drawing = true;
    queueMicrotask(() => {
      drawing = false;
      if (!ended) keepingFocus(place, () => render(view(state, send), place));
    });
  }

  function forget(key) {
    requests.get(key)?.abort();
    requests.delete(key);
    clearTimeout(timers.get(key));
    timers.delete(key);
  }

  async function ask({key, number, request: wanted}) {
    forget(key);
    const ending = new AbortController();
    requests.set(key, ending);
    const outcome = await answerOf(wanted, ending.signal);
    if (requests.get(key) === ending) requests.delete(key);
    if (outcome) send({type: 'answered', key, number, request: wanted, ...outcome});
  }

  function wait({key, ms, event}) {
    clearTimeout(timers.get(key));
    timers.set(key, setTimeout(() => send(event), ms));
  }

  const carry = {
    ask,
    wait,
    forget: ({key}) => forget(key),
    toast: ({text, kind, undo, about}) => {
      const close = toast(text, kind, undo && (() => send(undo)), about);
      if (undo) undoable.push(close);
    },
    untoast: ({about}) => untoast(about),
    announce: ({text}) => announce(text),
    // The element may be there only after the state is shown.
    focus: ({id}) => queueMicrotask(() => document.getElementById(id)?.focus({preventScroll: true})),
    reveal: ({id}) => queueMicrotask(() => document.getElementById(id)?.closest('.field').scrollIntoView({block: 'nearest'})),
    go: ({path}) => (location.hash = `#${path}`),
    keep: ({name, value}) => keep(name, value),
    send: ({event}) => send(event),
    ...others,
  };
  function carryOut(effect) {
    carry[effect.do](effect, send);
  }

  draw();
  return {
    send,
    state: () => state,
    end: () => {
      ended = true;
      for (const close of undoable) close();
      for (const key of [...requests.keys(), ...timers.keys()]) forget(key);
      render(null, place);
    },
  };
}

// answerOf returns the answer or the error of a request; null if the page has ended it. An answer that is not what the API
// promises is one that may be right the next time.
async function answerOf(wanted, signal) {
  try {
    return {answer: await request(wanted, signal)};
  } catch (error) {
    if (error.name === 'AbortError') return null;
    return {error: error instanceof Refused ? error : unreadable(200)};
  }
}

const canFocus = 'a[href], button, input, select, [tabindex]';

// keepingFocus shows the next state. If the element with the focus goes, the one beside it gets it, and nobody is thrown
// to the top of the page.
function keepingFocus(place, show) {
  const before = document.activeElement,
    near = [];
  for (let one = before; one && one !== place && place.contains(one); one = one.parentElement)
    near.push(one.nextElementSibling, one.previousElementSibling, one.parentElement);
  show();
  if (near.length === 0 || before.isConnected || document.activeElement !== document.body) return;
  for (const one of near) {
    const next = one?.isConnected && (one.matches(canFocus) ? one : one.querySelector(canFocus));
    if (next) return next.focus({preventScroll: true});
  }
}
