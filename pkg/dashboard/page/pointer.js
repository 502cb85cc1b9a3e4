// SPDX-License-Identifier: Apache-2.0
// The pointer on the picture: facts under it, booking by a drag over free time, longer and shorter reservations by
// their end, and moving and zooming with wheel and fingers.
import {HEAD, timeAt, x} from './picture.js';
import {claimAt, rowAt, usable} from './model.js';
import {MINUTE, now} from './time.js';
import {snapStep, snapped} from './axis.js';

const EDGE = 7; // how near to its end a reservation is caught, in pixels

// snap returns the nearest round time, as far as the zoom shows.
export const snap = (view, at) => snapped(at, snapStep(view.scale));

// follow adds the listeners to the picture. `act` contains what the calendar does.
export function follow(element, view, act) {
  let pressed = null;
  const fingers = new Map();
  let pinch = null;

  const place = event => {
    const frame = element.getBoundingClientRect();
    return {px: event.clientX - frame.left, py: event.clientY - frame.top};
  };

  // find returns what is under a place.
  function find({px, py}) {
    if (py < HEAD || !view.rows.length) return null;
    const y = py - HEAD + view.scroll,
      index = rowAt(view.rows, y),
      row = view.rows[index];
    if (!row.host || y > row.y + row.height) return {index, row, at: 0, claim: null, name: false};
    const at = timeAt(view, px),
      part = Math.min(1, Math.max(0, (y - row.y - 3) / (row.height - 9)));
    const name = px < view.label;
    let claim = name ? null : claimAt(row.host, at, part);
    const near = name || claim ? null : claimAt(row.host, at, part, EDGE / view.scale);
    const edged = [claim, near].find(one => one && one.mine && act.mayChange(one) && Math.abs(x(view, one.end) - px) < EDGE) || null;
    return {index, row, at, claim: claim || edged, name, edge: edged};
  }

  element.addEventListener('pointermove', event => {
    const at = place(event);
    if (fingers.has(event.pointerId)) {
      touch(event, at);
      return;
    }
    if (pressed) {
      drag(at);
      return;
    }
    const found = find(at);
    element.style.cursor = !found
      ? ''
      : found.edge
        ? 'ew-resize'
        : found.claim?.mine
          ? 'pointer'
          : found.name || !found.row.host
            ? ''
            : found.claim || !usable(found.row.host) || timeAt(view, at.px) < now()
              ? ''
              : 'crosshair';
    act.hover(found, event);
  });
  element.addEventListener('pointerleave', event => act.hover(null, event));

  function drag(at) {
    const time = snap(view, timeAt(view, Math.max(at.px, view.label)));
    if (pressed.edge) {
      view.stretch = {claim: pressed.edge, until: Math.max(time, snap(view, Math.max(pressed.edge.start, now())) + 15 * MINUTE)};
    } else if (view.drag || Math.hypot(at.px - pressed.px, at.py - pressed.py) > 5) {
      const index = rowAt(view.rows, Math.max(0, at.py - HEAD + view.scroll)),
        from = snap(view, pressed.at);
      view.drag = {
        first: Math.min(index, pressed.index),
        last: Math.max(index, pressed.index),
        start: Math.max(Math.min(from, time), Math.min(now(), pressed.at)),
        end: Math.max(from, time, Math.min(from, time) + 15 * MINUTE),
      };
    }
    act.redraw();
  }

  element.addEventListener('pointerdown', event => {
    const at = place(event);
    if (event.pointerType === 'touch') {
      fingers.set(event.pointerId, at);
      pinch = null;
      return;
    }
    if (event.button !== 0) return;
    const found = find(at);
    if (!found || !found.row.host) return;
    pressed = {...found, ...at};
    if (found.edge || (!found.claim && !found.name && usable(found.row.host) && act.mayBook())) {
      element.setPointerCapture(event.pointerId);
    }
  });

  element.addEventListener('pointerup', event => {
    if (event.pointerType === 'touch') {
      const began = fingers.get(event.pointerId);
      fingers.delete(event.pointerId);
      pinch = null;
      if (began && !began.moved) tap(find(place(event)), event);
      return;
    }
    const from = pressed,
      {drag: chosen, stretch} = view;
    pressed = view.drag = view.stretch = null;
    if (!from) return;
    if (stretch) act.stretch(stretch.claim, stretch.until);
    else if (chosen && !from.claim && !from.name && act.mayBook()) act.book(chosen);
    else if (!chosen) tap(from, event);
    act.redraw();
  });
  element.addEventListener('pointercancel', event => {
    fingers.delete(event.pointerId);
    pressed = view.drag = view.stretch = null;
    act.redraw();
  });

  function tap(found, event) {
    if (found?.claim) act.open(found.claim);
    else act.hover(found, event, true);
  }

  // touch moves the calendar with one finger and zooms with two; the browser scrolls the rows.
  function touch(event, at) {
    const before = fingers.get(event.pointerId);
    const moved = before.moved || Math.hypot(at.px - before.px, at.py - before.py) > 6;
    if (fingers.size === 1) act.pan(before.px - at.px);
    fingers.set(event.pointerId, {...at, moved});
    if (fingers.size !== 2) return;
    const [a, b] = [...fingers.values()],
      apart = Math.max(20, Math.abs(a.px - b.px)),
      middle = (a.px + b.px) / 2;
    if (pinch) act.zoom(pinch.apart / apart, middle);
    pinch = {apart};
  }

  element.addEventListener(
    'wheel',
    event => {
      const at = place(event);
      if (event.ctrlKey || event.metaKey || at.py < HEAD) {
        event.preventDefault();
        act.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), at.px);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        act.pan(event.deltaX || event.deltaY);
      }
    },
    {passive: false},
  );
}
