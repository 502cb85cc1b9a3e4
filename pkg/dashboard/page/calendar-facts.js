// SPDX-License-Identifier: Apache-2.0
// What the calendar says of a claim or of free time, under the pointer, to a screen reader, and in the table.
import {h, facts, named, table, button} from './view.js';
import {t} from './texts.js';
import {freeAt, freeParts} from './free.js';
import {end} from './places.js';
import {claimAt, freeUntil, maintenanceAt, usable} from './model.js';
import {HOUR, ago, length, now, seconds, span, when} from './time.js';
import {selection} from './cursor.js';

// factsOf returns the facts of a claim, or of a host at a time; a time of 0 means the host alone.
export function factsOf(state, {host, at, claim}, app) {
  return claim ? claimFacts(host, claim, app) : hostFacts(state, host, at);
}

const titleOf = claim => {
  if (claim.maintenance) return t('maintenanceSpan', {start: when(claim.start), end: when(claim.end)});
  return claim.name ? named(claim.name) : t(claim.mine ? 'yours' : 'others');
};

const claimFacts = (host, claim, app) => [
  h('strong', {}, titleOf(claim)),
  facts([
    [t('reason'), claim.maintenance && claim.name ? named(claim.name) : null],
    [t('host'), named(host.name)],
    [t('time'), claim.maintenance ? null : span(claim.start, claim.end)],
    [t('duration'), length(claim.end - claim.start)],
    [t('kind'), claim.maintenance ? null : kindOf(claim)],
    [t('status'), claim.status ? t(`status_${claim.status}`) : null],
    [t('project'), claim.project && !claim.maintenance && app.may('reservations:list_all') ? app.project(claim.project) : null],
  ]),
];

const kindOf = ({kind, instances, share}) =>
  kind === 'instance' ? t('instancesShare', {count: instances || 1, share: Math.round(share * 100)}) : t('wholeHost');

function hostFacts(state, host, at) {
  const about = host.facts;
  return [
    h('strong', {}, named(host.name)),
    facts([
      [t('now'), stateText(host)],
      [t('reason'), about?.problem],
      [t('free'), freeText(state, host, at)],
      [t('nextMaintenance'), nextMaintenance(state, host, at)],
      [t('zone'), about?.zone],
      [t('aggregates'), about?.aggregates?.join(', ')],
      ...Object.entries(about?.properties || {})
        .slice(0, 8)
        .map(([name, value]) => [name, named(Array.isArray(value) ? value.join(', ') : String(value))]),
    ]),
  ];
}

// nextMaintenance tells of the first maintenance to come, as far as the page knows: what it has not read may have an
// earlier one. That there is none is told of the host alone.
function nextMaintenance({data: {known}}, host, at) {
  if (!known || known.to <= now()) return at ? null : t('notLoaded');
  const one = host.claims.find(claim => claim.maintenance && claim.start > now());
  if (!one) return at ? null : t('noneShown');
  const text = span(one.start, one.end),
    time = known.from > now() ? t('onlyShown', {text}) : text;
  return one.name ? [time, ': ', named(one.name)] : time;
}

// freeText tells until when a host is free from a time on, as far as the page knows: what it has not read it calls
// unknown.
export function freeText({data}, host, at) {
  if (!at || !usable(host) || at < now() - HOUR) return null;
  const {known} = data;
  if (!known || at < known.from || at >= known.to) return t('notLoaded');
  const until = freeUntil(host, at);
  return until < known.to ? t('freeBetween', {span: span(at, until)}) : t('freeAtLeast', {span: span(at, known.to)});
}

// freeCountText tells how many of the hosts in the rows are free at a time.
function freeCountText(state, at) {
  const part = freeAt(state, at, now());
  if (part) return t('freeCount', {free: part.free, count: part.total});
  return t(at < now() ? 'timeOver' : 'notLoaded');
}

// partSpan is the time of a number; where the time that was read ends, it may last longer.
const partSpan = ({data}, {from, to}) => (to < data.known.to ? span(from, to) : t('freeAtLeast', {span: span(from, to)}));

// freeFacts returns the facts of the row of the free hosts at a time.
export function freeFacts(state, at) {
  const part = freeAt(state, at, now());
  return [h('strong', {}, freeCountText(state, at)), h('p', {}, part ? partSpan(state, part) : when(at))];
}

// freeSpoken is what a screen reader reads of the free hosts at the cursor.
export const freeSpoken = (state, at = state.cursor.at) => `${when(at)}: ${freeCountText(state, at)}`;

export function stateText(host) {
  const about = host.facts,
    closed = maintenanceAt(host, now());
  if (closed) return t('maintenanceUntil', {end: when(closed.end)});
  if (!about) return null;
  const since = about.phase_since ? ` (${t(`phase_${about.phase}`)}, ${ago(seconds(about.phase_since))})` : '',
    running = about.instance_count ? t('instances', {count: about.instance_count}) : t('empty'),
    spot = about.preemptible_count ? `, ${t('preemptible', {count: about.preemptible_count})}` : '';
  return `${t(about.reservable ? `state_${about.state}` : 'notReservable')}${since}; ${running}${spot}`;
}

// drawnText tells what a drag has chosen: from when to when, how long, and how many hosts.
export function drawnText(state) {
  const drawn = state.gesture?.drawn;
  if (!drawn) return '';
  const hosts = drawn.first === undefined ? 0 : state.rows.slice(drawn.first, drawn.last + 1).filter(row => row.host && usable(row.host)).length;
  return [span(drawn.start, drawn.end), length(drawn.end - drawn.start), hosts ? t('countHosts', {count: hosts}) : ''].filter(Boolean).join(' · ');
}

// spoken is what a screen reader reads at the cursor: the selection if there is one, else the time, the host, and what
// is there.
export function spoken(state) {
  const {cursor, rows} = state,
    host = rows[cursor.row]?.host;
  if (!host) return t('noHosts');
  if (cursor.mark !== null) {
    const {first, last, start, end: until} = selection(state),
      count = rows.slice(first, last + 1).filter(row => row.host).length;
    return t('selected', {span: span(start, until), length: length(until - start), hosts: t('countHosts', {count})});
  }
  const claim = claimAt(host, cursor.at),
    there = claim
      ? `${claim.name || t(claim.maintenance ? 'maintenance' : claim.mine ? 'yours' : 'others')}, ${span(claim.start, claim.end)}`
      : freeText(state, host, cursor.at) || stateText(host) || '';
  return `${host.name}, ${when(cursor.at)}: ${there}`;
}

// hostActions returns what the user may do with a host; null for nothing.
export function hostActions(host, app, send) {
  const actions = [
    app.may('hosts:get_instances') ? h('a', {key: 'page', href: `#/operator/hosts/${encodeURIComponent(host.name)}`}, t('hostPage')) : null,
    app.may('reservations:maintain')
      ? button(t('planMaintenance'), () => send({type: 'maintained', host: host.name}), {key: 'maintain', class: 'plan-maintenance'})
      : null,
  ].filter(Boolean);
  return actions.length > 0 ? h('div', {class: 'host-actions'}, actions) : null;
}

// tableView has what the picture shows, for those who do not see it; `app` is null where nothing can be done, on paper.
export function tableView(state, send, app, shown = state.shownRows) {
  const {view, rows} = state,
    until = view.width ? end(view) : view.start + view.span,
    list = rows.flatMap(row => (row.host ? [row.host] : []));
  return [
    h('p', {}, t('tableCaption', {span: span(view.start, until), count: list.length})),
    freeList(state, view.start, until, !app),
    table(
      t('calendar'),
      [t('host'), t('zone'), t('today'), app ? t('reservations') : `${t('reservations')}: ${span(view.start, until)}`],
      list.slice(0, shown).map(host => ({
        key: host.name,
        cells: [
          named(host.name),
          host.facts?.zone || '',
          [stateText(host), host.facts?.problem ? h('div', {class: 'soft'}, host.facts.problem) : null, app ? hostActions(host, app, send) : null],
          claimList(state.data.known, host, view.start, until),
        ],
      })),
      t(state.data.known ? 'noHosts' : 'loading'),
    ),
    list.length > shown ? button(t('more'), () => send({type: 'more'}), {key: 'more'}) : null,
  ];
}

// freeList has the row of the free hosts.
function freeList(state, start, until, open) {
  const {known} = state.data,
    parts = freeParts(state, start, until, now()),
    unknown = !known || Math.max(now(), start) < known.from || known.to < until;
  return h(
    'details',
    {class: 'free-hosts', open: open || undefined},
    h('summary', {}, t('freeOverTime')),
    h(
      'ul',
      {class: 'plain-list'},
      parts.map(part => h('li', {key: part.from}, span(part.from, part.to), ': ', t('freeCount', {free: part.free, count: part.total}))),
      unknown ? h('li', {key: 'unknown'}, t('notLoaded')) : null,
    ),
  );
}

const MOST = 50;

function claimList(known, host, start, until) {
  const list = host.claims.filter(claim => claim.end > start && claim.start < until),
    unknown = !known || known.from > start || known.to < until;
  if (list.length === 0) return unknown ? t('notLoaded') : t('freeThroughout');
  return h(
    'ul',
    {class: 'plain-list'},
    list.slice(0, MOST).map(claim => h('li', {}, span(claim.start, claim.end), ': ', claimText(claim))),
    list.length > MOST ? h('li', {}, t('andMore', {count: list.length - MOST})) : null,
    unknown ? h('li', {}, t('notLoaded')) : null,
  );
}

function claimText(claim) {
  const text = claim.maintenance
    ? [t('maintenance'), claim.name ? [': ', named(claim.name)] : '']
    : claim.name
      ? named(claim.name)
      : t(claim.mine ? 'yours' : 'others');
  return claim.id ? h('a', {href: `#/reservation/${claim.id}`}, text) : text;
}
