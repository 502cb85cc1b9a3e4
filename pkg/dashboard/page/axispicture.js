// SPDX-License-Identifier: Apache-2.0
// Draws the time axis and the lines of the times. A second zone has a line of its own below.
import {now} from './time.js';
import {bands, secondText, tickText, zonesOfAxis} from './axis.js';
import {AXIS, FONT, HEAD, end, x} from './places.js';

// grid draws the lines across the rows.
export function grid(c, view, lines) {
  for (const {at, strong} of lines) {
    const px = Math.round(x(view, at)) + 0.5;
    if (px < view.label) continue;
    c.strokeStyle = strong ? view.colors.strong : view.colors.line;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(px, AXIS);
    c.lineTo(px, Math.min(view.height, HEAD + view.total - view.scroll));
    c.stroke();
  }
}

// The heights of the texts: of the bands, of the lines, and of the lines in a second zone.
const alone = {band: 13, line: 35},
  both = {band: 9, line: 23, second: 37};

// axis draws the head of the picture.
export function axis(c, view, lines, step) {
  const {colors} = view,
    [zone, second] = zonesOfAxis(),
    heights = second ? both : alone;
  c.fillStyle = colors.ground;
  c.fillRect(0, 0, view.width, AXIS);
  c.textBaseline = 'middle';
  corner(c, view, heights, zone, second);
  c.save();
  c.beginPath();
  c.rect(view.label, 0, view.width - view.label, AXIS);
  c.clip();
  drawBands(c, view, heights, step);
  lines.forEach(({at}, i) => {
    const px = x(view, at),
      room = (lines[i + 1] ? x(view, lines[i + 1].at) : view.width + 60) - px - 8;
    c.fillStyle = colors.line;
    c.fillRect(Math.round(px), heights.line - 9, 1, AXIS - heights.line + 9);
    if (px + 6 < view.label || room < 20) return;
    c.fillStyle = colors.soft;
    c.font = `12px ${FONT}`;
    c.fillText(tickText(at, step), px + 6, heights.line, room);
    if (!second) return;
    c.font = `11px ${FONT}`;
    c.fillText(secondText(at, step, second), px + 6, heights.second, room);
  });
  present(c, view);
  c.restore();
  c.fillStyle = colors.strong;
  c.fillRect(0, AXIS - 1, view.width, 1);
}

// corner names the zones of the axis, each beside its times.
function corner(c, view, heights, zone, second) {
  c.fillStyle = view.colors.soft;
  c.font = `11px ${FONT}`;
  c.textAlign = 'right';
  c.fillText(zone, view.label - 8, heights.line, view.label - 16);
  if (second) c.fillText(second, view.label - 8, heights.second, view.label - 16);
  c.textAlign = 'left';
}

function drawBands(c, view, heights, step) {
  c.font = `600 12px ${FONT}`;
  for (const {from, to, text} of bands(view.start, end(view), step)) {
    const left = Math.max(view.label, x(view, from)),
      width = c.measureText(text).width;
    c.fillStyle = view.colors.ink;
    if (x(view, to) - left > width + 12) c.fillText(text, left + 8, heights.band);
    c.fillStyle = view.colors.strong;
    c.fillRect(Math.round(x(view, from)), 2, 1, heights.line - 11);
  }
}

// present draws the sign of the present.
function present(c, view) {
  const px = x(view, now());
  if (px <= view.label || px >= view.width) return;
  c.fillStyle = view.colors.now;
  c.beginPath();
  c.moveTo(px - 5, AXIS - 8);
  c.lineTo(px + 5, AXIS - 8);
  c.lineTo(px, AXIS);
  c.fill();
}
