// SPDX-License-Identifier: Apache-2.0
// Draws the calendar: the time axis, the row of the free hosts, and the rows that are in view. It reads the view and
// changes nothing.
import {stepFor, ticks, weekends} from './axis.js';
import {axis, grid} from './axispicture.js';
import {claims} from './bars.js';
import {freeRow} from './freerow.js';
import {ground, unknown} from './grounds.js';
import {marks} from './marks.js';
import {rowAt} from './model.js';
import {HEAD, end} from './places.js';
import {label} from './rowlabels.js';

export const END_OF_PICTURE = 8; // the room below the last row, in pixels

// draw draws the whole picture.
export function draw(canvas, view) {
  const c = canvas.getContext('2d'),
    ratio = view.ratio;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.fillStyle = view.colors.ground;
  c.fillRect(0, 0, view.width, view.height);
  const step = stepFor(view.scale, view.width < 600 ? 56 : 74),
    lines = ticks(view.start, end(view), step);
  drawRows(c, view, lines);
  freeRow(c, view, lines);
  axis(c, view, lines, step);
}

// drawRows draws the rows in view below the head.
function drawRows(c, view, lines) {
  const {rows, scroll} = view,
    shaded = weekends(view.start, end(view)),
    first = rows.length ? rowAt(rows, scroll) : 0,
    last = Math.min(rows.length, rowAt(rows, scroll + view.height - HEAD) + 1);
  const inView = rows.slice(first, last).map(row => ({row, y: HEAD + row.y - scroll})),
    lowest = inView.at(-1);
  c.save();
  c.beginPath();
  c.rect(0, HEAD, view.width, view.height - HEAD);
  c.clip();
  for (const {row, y} of inView) ground(c, view, row, shaded, y);
  grid(c, view, lines);
  unknown(c, view, HEAD, lowest ? lowest.y + lowest.row.height : view.height);
  for (const {row, y} of inView) if (row.host) claims(c, view, row, y);
  marks(c, view);
  for (const {row, y} of inView) label(c, view, row, y);
  c.restore();
}
