// SPDX-License-Identifier: Apache-2.0
// The keyboard on the picture: a cursor with a row and a time.
import {end, rowsMarked} from './picture.js';
import {claimAt} from './model.js';
import {HOUR, now} from './time.js';
import {snapStep} from './axis.js';
import {snap} from './pointer.js';

// stepOf returns how far an arrow moves the cursor.
const stepOf = view => snapStep(view.scale);

// listen adds the listeners to the picture.
export function listen(element, view, act) {
  const host = () => view.rows[view.cursor.row]?.host;

  function row(by) {
    let index = view.cursor.row;
    for (let left = Math.abs(by); left > 0;) {
      const next = index + Math.sign(by);
      if (!view.rows[next]) break;
      index = next;
      if (view.rows[index].host) left--;
    }
    while (index < view.rows.length - 1 && !view.rows[index].host) index++;
    view.cursor.row = index;
  }

  // jump moves to where the next claim begins or the last one ends.
  function jump(forward) {
    const {at} = view.cursor,
      edges = (host()?.claims || []).flatMap(claim => [claim.start, claim.end]);
    const there = edges.filter(edge => (forward ? edge > at : edge < at));
    if (there.length) view.cursor.at = forward ? Math.min(...there) : Math.max(...there);
  }

  function enter() {
    const {at, mark} = view.cursor,
      claim = host() && claimAt(host(), at);
    if (claim && mark === null) {
      act.open(claim);
    } else if (host() && act.mayBook()) {
      const from = mark === null ? at : Math.min(mark, at),
        to = mark === null || mark === at ? at + Math.max(HOUR, stepOf(view)) : Math.max(mark, at);
      const [first, last] = rowsMarked(view);
      view.cursor.mark = null;
      act.book({first, last, start: from, end: to});
    }
  }

  const keys = {
    ArrowUp: () => row(-1),
    ArrowDown: () => row(1),
    PageUp: () => row(-10),
    PageDown: () => row(10),
    ArrowLeft: event =>
      event.shiftKey ? act.pan(-80) : event.ctrlKey ? jump(false) : (view.cursor.at = snap(view, view.cursor.at - stepOf(view))),
    ArrowRight: event =>
      event.shiftKey ? act.pan(80) : event.ctrlKey ? jump(true) : (view.cursor.at = snap(view, view.cursor.at + stepOf(view))),
    Home: () => {
      view.cursor.at = snap(view, now());
      act.showNow();
    },
    '+': () => act.zoom(1 / 1.4, null),
    '=': () => act.zoom(1 / 1.4, null),
    '-': () => act.zoom(1.4, null),
    ' ': () => {
      view.cursor.mark = view.cursor.mark === null ? view.cursor.at : null;
      view.cursor.markRow = view.cursor.row;
    },
    Enter: enter,
    Escape: () => {
      view.cursor.mark = null;
      act.clear();
    },
  };

  element.addEventListener('keydown', event => {
    const key = keys[event.key];
    if (!key || event.altKey || event.metaKey || (event.ctrlKey && !event.key.startsWith('Arrow'))) return;
    event.preventDefault();
    key(event);
    inView();
    act.focus(host(), view.cursor.at);
  });
  element.addEventListener('focus', () => {
    if (element.matches(':focus-visible')) {
      view.focused = true;
      if (!host()) row(1);
      if (view.cursor.at < view.start || view.cursor.at > end(view))
        view.cursor.at = snap(view, Math.max(view.start, Math.min(end(view), now())));
      act.focus(host(), view.cursor.at);
    }
  });
  element.addEventListener('blur', () => {
    view.focused = false;
    act.focus(null, 0);
  });

  // inView shifts the calendar until it shows the cursor.
  function inView() {
    view.focused = true;
    const width = end(view) - view.start;
    if (view.cursor.at < view.start) act.moveTo(view.cursor.at - width * 0.2);
    else if (view.cursor.at > end(view)) act.moveTo(view.cursor.at - width * 0.8);
    const current = view.rows[view.cursor.row];
    if (current) act.reveal(current);
  }
}
