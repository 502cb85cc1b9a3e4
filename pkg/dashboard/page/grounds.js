// SPDX-License-Identifier: Apache-2.0
// Draws what lies under the reservations: the grounds of the rows, and the time that the page has not read.
import {pattern} from './ink.js';
import {usable} from './model.js';
import {x} from './places.js';
import {now} from './time.js';

// ground draws what lies under a row's reservations: shades of the weekends and the past, and a host out of use.
export function ground(c, view, row, shaded, y) {
  const {colors} = view;
  c.fillStyle = row.host ? colors.row : colors.group;
  c.fillRect(0, y, view.width, row.height);
  if (!row.host) return;
  c.fillStyle = colors.weekend;
  for (const {from, to} of shaded) {
    const left = Math.max(view.label, x(view, from));
    c.fillRect(left, y, Math.max(0, Math.min(view.width, x(view, to)) - left), row.height);
  }
  const present = Math.max(view.label, x(view, now()));
  if (present > view.label) {
    c.fillStyle = colors.past;
    c.fillRect(view.label, y, Math.min(present, view.width) - view.label, row.height);
  }
  if (!usable(row.host)) {
    c.fillStyle = colors.closed;
    c.fillRect(view.label, y, view.width - view.label, row.height - 1);
    c.fillStyle = pattern('cross', colors.line, view.ratio);
    c.fillRect(view.label, y, view.width - view.label, row.height - 1);
  }
}

// unknown hatches the time that the page has not read, between two heights of the picture.
export function unknown(c, view, top, bottom) {
  const {known} = view;
  const hatch = (from, to) => {
    const left = Math.max(view.label, from),
      right = Math.min(view.width, to);
    if (right <= left) return;
    c.fillStyle = view.colors.closed;
    c.fillRect(left, top, right - left, bottom - top);
    c.fillStyle = pattern('lines', view.colors.strong, view.ratio);
    c.fillRect(left, top, right - left, bottom - top);
  };
  if (!known) hatch(view.label, view.width);
  else {
    hatch(view.label, x(view, known.from));
    hatch(x(view, known.to), view.width);
  }
}
