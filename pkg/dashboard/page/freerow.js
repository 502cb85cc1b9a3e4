// SPDX-License-Identifier: Apache-2.0
// Draws the row of the free hosts below the time axis: how many of the hosts in the rows are free, as a number and as
// the height of a bar.
import {grid} from './axispicture.js';
import {unknown} from './grounds.js';
import {fit} from './ink.js';
import {AXIS, FONT, FREE, HEAD, x} from './places.js';
import {t} from './texts.js';
import {now} from './time.js';

export function freeRow(c, view, lines) {
  const {colors} = view;
  c.save();
  c.beginPath();
  c.rect(0, AXIS, view.width, FREE);
  c.clip();
  c.fillStyle = colors.row;
  c.fillRect(0, AXIS, view.width, FREE);
  shadePast(c, view);
  grid(c, view, lines);
  c.font = `600 11px ${FONT}`;
  c.textBaseline = 'middle';
  for (const part of view.free) drawPart(c, view, part);
  unknown(c, view, AXIS, HEAD);
  present(c, view);
  title(c, view);
  c.restore();
}

function shadePast(c, view) {
  const present = Math.min(view.width, x(view, now()));
  c.fillStyle = view.colors.past;
  if (present > view.label) c.fillRect(view.label, AXIS, present - view.label, FREE);
}

const NUMBERS = 15, // the room for the numbers above the bars
  NARROWEST = 12; // no number has room in less

// drawPart draws one number: a bar as high as the share of the hosts, and the number where it has room.
function drawPart(c, view, {from, to, free, total}) {
  const {colors} = view,
    left = Math.max(view.label, x(view, from)),
    width = Math.min(view.width, x(view, to)) - left,
    height = Math.round(((FREE - NUMBERS - 1) * free) / total);
  if (width <= 0) return;
  c.globalAlpha = 0.2;
  c.fillStyle = colors.free;
  c.fillRect(left, HEAD - 1 - height, width, height);
  c.globalAlpha = 1;
  c.fillStyle = free ? colors.free : colors.bad;
  c.fillRect(left, HEAD - 1 - Math.max(2, height), width, 2);
  const text = String(free);
  if (width < NARROWEST || width < c.measureText(text).width + 6) return;
  c.fillStyle = free ? colors.ink : colors.bad;
  c.fillText(text, left + 4, AXIS + NUMBERS / 2 + 1);
}

function present(c, view) {
  const px = Math.round(x(view, now())) + 0.5;
  if (px <= view.label) return;
  c.strokeStyle = view.colors.now;
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(px, AXIS);
  c.lineTo(px, HEAD);
  c.stroke();
}

function title(c, view) {
  const {colors} = view,
    hosts = view.rows.filter(row => row.host).length;
  c.fillStyle = colors.row;
  c.fillRect(0, AXIS, view.label, FREE);
  c.fillStyle = colors.line;
  c.fillRect(view.label - 1, AXIS, 1, FREE);
  c.fillStyle = colors.strong;
  c.fillRect(0, HEAD - 1, view.width, 1);
  c.font = `13px ${FONT}`;
  c.fillStyle = colors.soft;
  c.fillText(fit(c, t('freeOf', {count: hosts}), view.label - 20), 12, AXIS + FREE / 2);
}
