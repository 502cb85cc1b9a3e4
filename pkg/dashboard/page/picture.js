// SPDX-License-Identifier: Apache-2.0
// Draws the calendar: the time axis, and the rows that are in view. It reads the view and changes nothing. Time that
// the page has not read is hatched: nobody knows whether it is free.
import {t} from './texts.js';
import {claimAt, maintenanceAt, rowAt, usable, use} from './model.js';
import {now, when} from './time.js';
import {stepFor, ticks, weekends} from './axis.js';
import {axis, grid} from './axispicture.js';
import {FONT, HEAD, end, x} from './places.js';

export {HEAD, end, timeAt, x} from './places.js';
export const END_OF_PICTURE = 8; // the room below the last row, in pixels

const names = [
  'ground',
  'row',
  'group',
  'line',
  'strong',
  'ink',
  'soft',
  'past',
  'weekend',
  'now',
  'other',
  'other-ink',
  'offer',
  'bad',
  'asleep',
  'waking',
  'up',
  'closed',
  'focus',
  'free',
  ...Array.from({length: 8}, (_, i) => `mine-${i}`),
  'mine-ink',
];

// colors reads the colors of the theme.
export function colors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const patterns = new Map();

// pattern returns lines across an area: `kind` tells areas apart that color alone would not.
function pattern(kind, color, ratio) {
  const key = `${kind} ${color} ${ratio}`;
  if (!patterns.has(key)) {
    const size = Math.round(8 * ratio),
      tile = document.createElement('canvas');
    tile.width = tile.height = size;
    const c = tile.getContext('2d');
    c.strokeStyle = c.fillStyle = color;
    c.lineWidth = 1.4 * ratio;
    const line = (x0, y0, x1, y1) => {
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      c.stroke();
    };
    if (kind !== 'dots') for (const shift of [-size, 0, size]) line(shift, size, shift + size, 0);
    if (kind === 'cross') for (const shift of [-size, 0, size]) line(shift, 0, shift + size, size);
    if (kind === 'dots') {
      c.beginPath();
      c.arc(size / 2, size / 2, 1.3 * ratio, 0, 7);
      c.fill();
    }
    const made = tile.getContext('2d').createPattern(tile, 'repeat');
    made.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    patterns.set(key, made);
  }
  return patterns.get(key);
}

// isolated returns a text of a user that does not turn its surroundings around, whatever directions it is written in.
const isolated = text => `\u2068${text}\u2069`;

// hue returns the color of one of my reservations, always the same.
export function hue(id) {
  let sum = 0;
  for (let i = 0; i < id.length; i++) sum = (sum * 31 + id.charCodeAt(i)) >>> 0;
  return sum % 8;
}

// draw draws the whole picture.
export function draw(canvas, view) {
  const c = canvas.getContext('2d'),
    ratio = view.ratio;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.fillStyle = view.colors.ground;
  c.fillRect(0, 0, view.width, view.height);
  const step = stepFor(view.scale, view.width < 600 ? 56 : 74),
    lines = ticks(view.start, end(view), step),
    shaded = weekends(view.start, end(view));
  c.save();
  c.beginPath();
  c.rect(0, HEAD, view.width, view.height - HEAD);
  c.clip();
  const last = Math.min(view.rows.length, rowAt(view.rows, view.scroll + view.height - HEAD) + 1);
  const first = view.rows.length ? rowAt(view.rows, view.scroll) : 0;
  for (let i = first; i < last; i++) ground(c, view, view.rows[i], shaded, HEAD + view.rows[i].y - view.scroll);
  grid(c, view, lines);
  unknown(c, view, first, last);
  for (let i = first; i < last; i++) if (view.rows[i].host) claims(c, view, view.rows[i], HEAD + view.rows[i].y - view.scroll);
  marks(c, view);
  for (let i = first; i < last; i++) label(c, view, view.rows[i], HEAD + view.rows[i].y - view.scroll);
  c.restore();
  axis(c, view, lines, step);
}

// ground draws what lies under a row's reservations: shades of the weekends and the past, and a host out of use.
function ground(c, view, row, shaded, y) {
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

// unknown hatches the time that the page has not read.
function unknown(c, view, first, last) {
  const {known, rows} = view,
    bottom = rows.length === 0 ? view.height : HEAD + rows[last - 1].y + rows[last - 1].height - view.scroll,
    top = rows.length === 0 ? HEAD : HEAD + rows[first].y - view.scroll;
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

function box(c, px, y, width, height) {
  c.beginPath();
  c.roundRect(px, y, width, height, Math.min(5, width / 2, height / 2));
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

function claims(c, view, row, y) {
  const {colors} = view,
    last = end(view);
  c.save();
  c.beginPath();
  c.rect(view.label, y, view.width - view.label, row.height);
  c.clip();
  for (const claim of row.host.claims) {
    if (claim.start > last) break;
    if (claim.end < view.start) continue;
    const place = claimBox(view, claim, y, row.height),
      over = claim.end < now();
    c.globalAlpha = over ? 0.62 : 1;
    box(c, place.px, place.py, place.width, place.height);
    const color = claim.maintenance
      ? colors.closed
      : claim.mine
        ? colors[`mine-${hue(claim.id)}`]
        : colors.other;
    c.fillStyle = color;
    c.fill();
    if (claim.maintenance) {
      c.fillStyle = pattern('cross', colors['other-ink'], view.ratio);
      c.fill();
      c.strokeStyle = colors.soft;
      c.lineWidth = 1.5;
      c.setLineDash([5, 3]);
      c.stroke();
      c.setLineDash([]);
    } else if (!claim.mine) {
      c.fillStyle = pattern('lines', colors['other-ink'], view.ratio);
      c.globalAlpha = over ? 0.3 : 0.5;
      c.fill();
      c.globalAlpha = over ? 0.62 : 1;
    }
    if (claim === view.hover?.claim || claim === underCursor(view, row) || (claim.id && claim.id === view.chosen)) {
      c.strokeStyle = colors.focus;
      c.lineWidth = 2;
      c.stroke();
    }
    write(c, view, claim, place);
    c.globalAlpha = 1;
  }
  if (row.host.facts?.problem && !maintenanceAt(row.host, now())) reason(c, view, row, y);
  c.restore();
  strip(c, view, row, y);
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

const fitted = new Map();

// fit returns a text that has at most `room` pixels.
export function fit(c, text, room) {
  if (text.length < 200 && c.measureText(text).width <= room) return text;
  const key = `${c.font} ${Math.floor(room / 4)} ${text}`;
  if (!fitted.has(key)) {
    if (fitted.size > 2000) fitted.clear();
    let low = 0,
      high = Math.min(text.length, 200);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(text.slice(0, middle) + '…').width <= room) low = middle;
      else high = middle - 1;
    }
    fitted.set(key, low ? text.slice(0, low) + '…' : '');
  }
  return fitted.get(key);
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

// marks draws what lies over the rows: the offer, what blocks a request, the selection, the cursor and the present.
function marks(c, view) {
  const {colors} = view;
  c.save();
  c.beginPath();
  c.rect(view.label, HEAD, view.width - view.label, view.height);
  c.clip();
  const band = (from, to, y, height, color, dash) => {
    const px = x(view, from),
      width = Math.max(3, x(view, to) - px);
    box(c, px + 1, y + 2, width - 2, height - 5);
    c.globalAlpha = 0.24;
    c.fillStyle = color;
    c.fill();
    c.globalAlpha = 1;
    c.setLineDash(dash);
    c.strokeStyle = color;
    c.lineWidth = 2;
    c.stroke();
    c.setLineDash([]);
  };
  const rowOf = name => view.rows.find(row => row.host?.name === name);
  const at = row => HEAD + row.y - view.scroll;
  for (const one of view.windows) band(one.start, one.end, HEAD - view.scroll, view.total, colors.offer, [2, 4]);
  if (view.offer) {
    const rows = view.offer.hosts.map(rowOf).filter(Boolean);
    if (rows.length) for (const row of rows) band(view.offer.start, view.offer.end, at(row), row.height, colors.offer, [6, 3]);
    else band(view.offer.start, view.offer.end, HEAD - view.scroll, view.total, colors.offer, [6, 3]);
  }
  for (const block of view.blocked) {
    const row = rowOf(block.host);
    if (row) band(block.start, block.end, at(row), row.height, colors.bad, [3, 3]);
  }
  if (view.drag) {
    for (const row of view.rows.slice(view.drag.first, view.drag.last + 1))
      if (row.host && usable(row.host)) band(view.drag.start, view.drag.end, at(row), row.height, colors.offer, []);
  }
  if (view.stretch) for (const row of view.rows) if (row.host?.claims.some(one => one.id === view.stretch.claim.id)) stretched(view, at(row), row.height, band);
  if (view.focused && view.rows[view.cursor.row]?.host) {
    const row = view.rows[view.cursor.row],
      px = x(view, view.cursor.at);
    c.strokeStyle = colors.focus;
    c.lineWidth = 2;
    c.strokeRect(view.label + 1, at(row) + 1, view.width - view.label - 2, row.height - 3);
    c.beginPath();
    c.moveTo(px, at(row));
    c.lineTo(px, at(row) + row.height - 2);
    c.stroke();
    if (view.cursor.mark !== null) {
      const [first, last] = view.marked,
        from = Math.min(view.cursor.mark, view.cursor.at),
        to = Math.max(view.cursor.mark, view.cursor.at);
      for (const one of view.rows.slice(first, last + 1)) if (one.host) band(from, to, at(one), one.height, colors.offer, []);
    }
  }
  const present = Math.round(x(view, now())) + 0.5;
  if (present > view.label) {
    c.strokeStyle = colors.now;
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(present, HEAD);
    c.lineTo(present, Math.min(view.height, HEAD + view.total - view.scroll));
    c.stroke();
  }
  c.restore();
}

// stretched draws what a drag adds to a reservation, what it takes from it, or where it moves it.
function stretched(view, y, height, band) {
  const {claim, kind, start, end: until} = view.stretch,
    {colors} = view;
  if (kind === 'move') band(start, until, y, height, colors.offer, []);
  else if (kind === 'end') band(Math.min(claim.end, until), Math.max(claim.end, until), y, height, until < claim.end ? colors.bad : colors.offer, []);
  else band(Math.min(claim.start, start), Math.max(claim.start, start), y, height, start > claim.start ? colors.bad : colors.offer, []);
}

// label draws the name of a row, with the sign of what the host does now.
function label(c, view, row, y) {
  const {colors} = view;
  c.fillStyle = row.host ? colors.row : colors.group;
  c.fillRect(0, y, view.label, row.height);
  c.textBaseline = 'middle';
  c.strokeStyle = colors.line;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(0, y + row.height - 0.5);
  c.lineTo(view.width, y + row.height - 0.5);
  c.moveTo(view.label - 0.5, y);
  c.lineTo(view.label - 0.5, y + row.height);
  c.stroke();
  const middle = y + row.height / 2;
  if (!row.host) {
    c.font = `600 12px ${FONT}`;
    c.fillStyle = colors.ink;
    c.fillText(fit(c, t('group', {by: row.by, name: row.group ? isolated(row.group) : t('none'), count: row.count}), view.width - 24), 12, middle);
    return;
  }
  sign(c, view, row.host, 16, middle);
  c.font = `13px ${FONT}`;
  c.fillStyle = usable(row.host) ? colors.ink : colors.soft;
  c.fillText(isolated(fit(c, row.host.name, view.label - 38)), 30, middle);
}

// sign draws a shape for the state of a host: a ring is free, a full disk used, dots in a ring are preemptible
// instances, a moon sleeps, a triangle wakes, a cross is out of order or in maintenance, a bar cannot be reserved.
export function sign(c, view, host, px, y) {
  const {colors} = view,
    facts = host.facts;
  c.save();
  c.translate(px, y);
  c.lineWidth = 1.8;
  c.strokeStyle = c.fillStyle = colors.up;
  const path = (...points) => {
    c.beginPath();
    points.forEach(([a, b], i) => (i ? c.lineTo(a, b) : c.moveTo(a, b)));
  };
  const ring = fill => {
    c.beginPath();
    c.arc(0, 0, 4.6, 0, 7);
    if (fill) c.fill();
    else c.stroke();
  };
  if (!facts) {
    c.strokeStyle = colors.soft;
    ring(false);
  } else if (facts.state === 'out_of_order' || maintenanceAt(host, now())) {
    c.strokeStyle = colors.bad;
    path([-4, -4], [4, 4]);
    c.stroke();
    path([4, -4], [-4, 4]);
    c.stroke();
  } else if (!facts.reservable) {
    c.strokeStyle = colors.soft;
    path([-5, 0], [5, 0]);
    c.stroke();
  } else if (facts.state === 'sleeping') {
    c.fillStyle = colors.asleep;
    c.beginPath();
    c.arc(0, 0, 5.2, 0.6, 4.1);
    c.quadraticCurveTo(-1, 1, 4.3, 3);
    c.fill();
  } else if (facts.state === 'waking') {
    c.fillStyle = colors.waking;
    path([0, -5], [5, 4], [-5, 4]);
    c.fill();
  } else if (use(host) === 'preemptible') {
    ring(false);
    c.beginPath();
    c.arc(0, 0, 1.9, 0, 7);
    c.fill();
  } else ring(use(host) === 'used');
  c.restore();
}
