// SPDX-License-Identifier: Apache-2.0
// Draws the names of the rows, with signs for what the hosts do now.
import {fit, isolated} from './ink.js';
import {maintenanceAt, usable, use} from './model.js';
import {FONT} from './places.js';
import {t} from './texts.js';
import {now} from './time.js';

// label draws the name of a row, with the sign of what the host does now.
export function label(c, view, row, y) {
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
function sign(c, view, host, px, y) {
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
