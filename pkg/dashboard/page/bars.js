// SPDX-License-Identifier: Apache-2.0
// Draws the reservations of a row, why its host is out of order, and its power.
import {box, filler, fit, isolated, pattern} from './ink.js';
import {claimAt, maintenanceAt} from './model.js';
import {FONT, end, x} from './places.js';
import {t} from './texts.js';
import {now, when} from './time.js';

// hue returns the color of one of my reservations, always the same.
function hue(id) {
  let sum = 0;
  for (let i = 0; i < id.length; i++) sum = (sum * 31 + id.charCodeAt(i)) >>> 0;
  return sum % 8;
}

// claimBox returns where a claim is drawn in its row.
function claimBox(view, claim, y, height) {
  const inner = height - 9,
    from = Math.max(view.label - 8, x(view, claim.start)),
    to = Math.min(view.width + 8, x(view, claim.end));
  return {
    px: from + 0.5,
    py: y + 3 + inner * claim.top,
    width: Math.max(2, to - from - 1),
    height: Math.max(3, inner * (claim.bottom - claim.top) - (claim.bottom - claim.top < 1 ? 1 : 0)),
  };
}

export function claims(c, view, row, y) {
  const last = end(view);
  c.save();
  c.beginPath();
  c.rect(view.label, y, view.width - view.label, row.height);
  c.clip();
  const present = now();
  for (const claim of row.host.claims) {
    if (claim.start > last) break;
    if (claim.end >= view.start) bar(c, view, row, claim, claimBox(view, claim, y, row.height), claim.end < present);
  }
  if (row.host.facts?.problem && !maintenanceAt(row.host, now())) reason(c, view, row, y);
  c.restore();
  strip(c, view, row, y);
}

// bar draws a claim at its place; one that is over is paler.
function bar(c, view, row, claim, place, over) {
  const {colors} = view,
    alpha = over ? 0.62 : 1,
    fill = filler(c, place);
  c.globalAlpha = alpha;
  fill(claim.maintenance ? colors.closed : claim.mine ? colors[`mine-${hue(claim.id)}`] : colors.other);
  if (claim.maintenance) {
    fill(pattern('cross', colors['other-ink'], view.ratio));
    frame(c, place, {color: colors.soft, width: 1.5, dash: [5, 3]});
  } else if (!claim.mine) {
    c.globalAlpha = over ? 0.3 : 0.5;
    fill(pattern('lines', colors['other-ink'], view.ratio));
    c.globalAlpha = alpha;
  }
  if (claim === view.hover?.claim || claim === underCursor(view, row) || (claim.id && claim.id === view.chosen)) frame(c, place, {color: colors.focus, width: 2});
  write(c, view, claim, place);
  c.globalAlpha = 1;
}

function frame(c, {px, py, width, height}, {color, width: lineWidth, dash = []}) {
  box(c, px, py, width, height);
  c.strokeStyle = color;
  c.lineWidth = lineWidth;
  c.setLineDash(dash);
  c.stroke();
  c.setLineDash([]);
}

// underCursor returns the claim of a row at the cursor of the keyboard.
const underCursor = (view, row) => (view.focused && view.rows[view.cursor.row] === row ? claimAt(row.host, view.cursor.at) : null);

function write(c, view, claim, place) {
  const from = Math.max(place.px, view.label),
    room = place.px + place.width - from - 12;
  if (room < 22 || place.height < 13) return;
  const title = claim.name,
    inColor = claim.mine && !claim.maintenance;
  const text = claim.maintenance
    ? title
      ? t('maintenanceFor', {reason: title})
      : t('maintenanceShort', {end: when(claim.end)})
    : title || (claim.mine ? t('yours') : '');
  if (!text) return;
  c.save();
  c.beginPath();
  c.rect(from, place.py, room + 8, place.height);
  c.clip();
  c.font = `${inColor ? 600 : 400} 12px ${FONT}`;
  c.textBaseline = 'middle';
  const middle = place.py + place.height / 2 + 0.5;
  if (!inColor) {
    c.fillStyle = claim.maintenance ? view.colors.closed : view.colors.other;
    c.fillRect(from + 4, middle - 8, Math.min(room, c.measureText(text).width + 6), 16);
  }
  c.fillStyle = inColor ? view.colors['mine-ink'] : view.colors.ink;
  c.fillText(isolated(fit(c, text, room)), from + 7, middle);
  c.restore();
}

// reason writes why a host is out of order, where the future begins.
function reason(c, view, row, y) {
  const from = Math.max(view.label, x(view, now())) + 8,
    room = view.width - from - 8;
  if (room < 60) return;
  c.font = `12px ${FONT}`;
  c.textBaseline = 'middle';
  const text = fit(c, row.host.facts.problem, room);
  c.fillStyle = view.colors.closed;
  c.fillRect(from - 4, y + 5, c.measureText(text).width + 8, row.height - 11);
  c.fillStyle = view.colors.soft;
  c.fillText(isolated(text), from, y + row.height / 2);
}

// strip draws the power of a host under its row: a full line, dashes while it sleeps, dots while it wakes.
function strip(c, view, row, y) {
  const facts = row.host.facts;
  if (!facts?.state) return;
  // Without energy control nobody knows since when.
  const since = facts.phase_since ? Date.parse(facts.phase_since) / 1000 : now() - 26 / view.scale;
  const from = Math.max(view.label, x(view, since)),
    to = Math.min(view.width, x(view, now()));
  if (to <= from) return;
  const kind = facts.state === 'sleeping' ? 'asleep' : facts.state === 'waking' ? 'waking' : facts.state === 'out_of_order' ? 'bad' : 'up';
  c.strokeStyle = view.colors[kind];
  c.lineWidth = 2.5;
  c.setLineDash({asleep: [9, 6], waking: [2, 3], bad: [1, 6], up: []}[kind]);
  c.beginPath();
  c.moveTo(from, y + row.height - 2.5);
  c.lineTo(to, y + row.height - 2.5);
  c.stroke();
  c.setLineDash([]);
}
