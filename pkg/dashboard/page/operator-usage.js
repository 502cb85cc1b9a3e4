// SPDX-License-Identifier: Apache-2.0
// How the hosts were used in a time, by project or by host.
import {t} from './texts.js';
import {DAY, iso, seconds, span} from './time.js';
import {amount, host, list, part, project} from './operator-parts.js';
import {field, h, select, together} from './view.js';

const chosen = ({fields}) => ({days: '7', by: 'project', ...fields.usage});

// questions are the question of this page. The report ends now.
export function questions(state) {
  const {days, by} = chosen(state);
  return {
    usage: {
      of: `${days} ${by}`,
      request: {path: 'v1/usage', query: {start: iso(state.at - days * DAY), end: iso(state.at), by}},
      every: 60000,
      follows: true,
    },
  };
}

export function view(state, send) {
  const {days, by} = chosen(state),
    choose = name => value => send({type: 'edit', form: 'usage', field: name, value});
  return together(
    h(
      'div',
      {class: 'line'},
      field(t('lastTime'), 'usage-days', select([['1', t('lastDay')], ['7', t('lastWeek')], ['30', t('lastMonth')]], days, choose('days'))),
      field(t('byWhat'), 'usage-by', select([['project', t('project')], ['host', t('host')]], by, choose('by'))),
    ),
    part(state, 'usage', found => report(state, send, found, by)),
  );
}

function report(state, send, found, by) {
  const ofHosts = by === 'host',
    csv = new URLSearchParams({start: found.start, end: found.end, by, format: 'csv'});
  return together(
    bar(found),
    list(state, send, {
      name: 'usage',
      caption: t('page_usage'),
      heads: [t(by), t('reservedHours'), t('usedHours'), ...(ofHosts ? [t('maintenanceHours'), t('idleHours'), t('asleepHours')] : [])],
      rows: found.rows,
      row: one => ({
        key: ofHosts ? one.host : one.project_id,
        cells: [
          ofHosts ? host(state, one.host) : project(state, one.project_id),
          amount(one.reserved),
          amount(one.used),
          ...(ofHosts ? [amount(one.maintenance), amount(one.idle), amount(one.asleep)] : []),
        ],
      }),
      empty: t('noUse'),
    }),
    h(
      'p',
      {},
      // The service names the file: it has the period, as each of its lines, and the columns have the unit.
      h('a', {href: `../v1/usage?${csv}`, download: '', class: 'button', id: 'csv'}, t('csv')),
    ),
  );
}

// bar shows how the time of the hosts was used.
function bar({total, start, end}) {
  const all = total.capacity || total.reserved + (total.maintenance || 0) + (total.idle || 0) + (total.asleep || 0) || 1;
  const parts = [
    ['used', total.used],
    ['unused', total.reserved - total.used],
    ['maintenance', total.maintenance || 0],
    ['asleep', total.asleep || 0],
    ['idle', total.idle || 0],
  ];
  const text = parts.map(([name, value]) => `${t(name)} ${Math.round((100 * value) / all)} %`).join(', ');
  let from = 0;
  const rect = ([name, value]) => {
    const width = Math.max(0, (100 * value) / all),
      x = from;
    from += width;
    return h('rect', {key: name, x, y: 0, width, height: 6, class: `part-${name}`});
  };
  return h(
    'section',
    {class: 'card'},
    h('h2', {}, t('hostHours')),
    h('p', {class: 'soft'}, span(seconds(start), seconds(end))),
    h('svg', {viewBox: '0 0 100 6', preserveAspectRatio: 'none', class: 'bar', role: 'img', 'aria-label': text}, parts.map(rect)),
    h(
      'ul',
      {class: 'bar-legend'},
      parts.map(([name, value]) => h('li', {key: name}, h('span', {class: `key part-${name}`, 'aria-hidden': 'true'}), `${t(name)}: ${amount(value)} h`)),
    ),
  );
}
