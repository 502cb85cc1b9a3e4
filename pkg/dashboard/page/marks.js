// SPDX-License-Identifier: Apache-2.0
// Draws what lies over the rows.
import {box} from './ink.js';
import {usable} from './model.js';
import {HEAD, x} from './places.js';
import {now} from './time.js';

// marks draws what lies over the rows: the offer, what blocks a request, the selection, the cursor and the present.
export function marks(c, view) {
  const {colors} = view;
  c.save();
  c.beginPath();
  c.rect(view.label, HEAD, view.width - view.label, view.height);
  c.clip();
  const band = (from, to, y, height, color, dash) => {
    if (height <= 0) return; // a kept form has its offer before there are rows
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
