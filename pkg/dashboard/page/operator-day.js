// SPDX-License-Identifier: Apache-2.0
// The line of the last day: how many hosts were in use and reserved.
import {t} from './texts.js';
import {DAY, seconds, timeOnly} from './time.js';
import {h} from './view.js';

const COLUMNS = 288, // of five minutes
  GAP = 3; // columns without a measurement end the line

// columnsOf returns the largest values of each column of the day before a time: {at, used, reserved} or null.
export function columnsOf(demand, now) {
  const columns = Array(COLUMNS).fill(null);
  for (const one of demand) {
    const at = seconds(one.at),
      i = Math.min(COLUMNS - 1, Math.floor(((at - now + DAY) / DAY) * COLUMNS));
    if (i < 0) continue;
    const before = columns[i];
    columns[i] = {at, used: Math.max(before?.used ?? 0, one.in_use), reserved: Math.max(before?.reserved ?? 0, one.reserved)};
  }
  return columns;
}

// pathOf returns the steps of a value as the path of a picture that is COLUMNS wide and `most` high.
export function pathOf(columns, name, most) {
  let path = '',
    last = -GAP - 1;
  columns.forEach((one, i) => {
    if (!one) return;
    const y = most - one[name];
    path += i - last > GAP ? `M${i} ${y}` : `H${i}V${y}`;
    path += `H${i + 1}`;
    last = i;
  });
  return path;
}

// dayLine shows the last day, with the same in words.
export function dayLine(demand, now) {
  const columns = columnsOf(demand, now),
    known = columns.filter(Boolean),
    last = known.at(-1);
  const title = h('h2', {}, t('lastDayTitle'));
  if (!last) return h('section', {class: 'card'}, title, h('p', {class: 'soft'}, t('noDemand')));
  const top = known.reduce((best, one) => (one.used > best.used ? one : best)),
    most = Math.max(1, ...known.map(one => Math.max(one.used, one.reserved)));
  const text = t(top.used > 0 ? 'dayText' : 'dayUnused', {used: last.used, reserved: last.reserved, most: top.used, at: timeOnly(top.at)});
  const line = name => h('path', {key: name, d: pathOf(columns, name, most), class: `day-${name}`, 'vector-effect': 'non-scaling-stroke'});
  return h(
    'section',
    {class: 'card'},
    title,
    h(
      'div',
      {class: 'day'},
      h('span', {class: 'soft most', 'aria-hidden': 'true'}, String(most)),
      h(
        'svg',
        {viewBox: `0 ${-most * 0.06} ${COLUMNS} ${most * 1.12}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': text},
        line('reserved'),
        line('used'),
      ),
    ),
    h('p', {class: 'soft day-ends', 'aria-hidden': 'true'}, h('span', {}, t('dayAgo')), h('span', {}, t('now'))),
    h(
      'ul',
      {class: 'bar-legend'},
      h('li', {}, h('span', {class: 'key line-used', 'aria-hidden': 'true'}), t('inUse')),
      h('li', {}, h('span', {class: 'key line-reserved', 'aria-hidden': 'true'}), t('reservedOnes')),
    ),
    h('p', {}, text),
  );
}
