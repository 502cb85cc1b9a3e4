// SPDX-License-Identifier: Apache-2.0
// How a reservation is shown in words, in the list and on its own page.
import {t} from './texts.js';
import {DAY} from './lengths.js';
import {seconds, when} from './time.js';
import {conditionsOf, textOf} from './filter-language.js';
import {h, named, together} from './view.js';

const over = ['ended', 'canceled', 'failed'];

export const isOver = one => over.includes(one.status);

export const badge = status => h('span', {class: `badge ${status}`}, t(`status_${status}`));

// badges returns the status of a reservation, and what is special about it.
export const badges = one =>
  together(
    badge(one.status),
    one.maintenance ? [' ', h('span', {class: 'badge'}, t('maintenance'))] : null,
    one.held_until ? [' ', h('span', {class: 'badge'}, t('held', {when: when(seconds(one.held_until))}))] : null,
    one.waiting?.place ? [' ', h('span', {class: 'badge'}, lineText(one.waiting))] : null,
    one.degraded ? [' ', h('span', {class: 'badge failed', title: one.degraded_reason}, t('degraded'))] : null,
  );

const lineText = ({place, of, until}) => t('inLine', {place, of, when: when(seconds(until))});

const counts = {host: 'countHosts', instance: 'countInstances', address: 'countAddresses'};

// sizeText returns how many of what a reservation has: 2 hosts.
export const sizeText = one => t(counts[one.kind] || 'countHosts', {count: one.quantity});

// filterWords returns the filter of a reservation as people write it: gpu = a100. One that is more than a list of
// conditions stays as it is.
export function filterWords(one) {
  const text = JSON.stringify(one.host_properties);
  return conditionsOf(text)?.map(textOf).join(', ') || text;
}

// filterText returns an element with the filter of a reservation; null if it has none.
export function filterText(one) {
  if (!one.host_properties) return null;
  const words = filterWords(one);
  return words.startsWith('[') ? h('code', {}, words) : named(words);
}

const NAMES = 8;

// namesOf returns the names of hosts; of many only the first, with the number of the others.
export function namesOf(hosts) {
  const rest = hosts.length - NAMES;
  return together(named(hosts.slice(0, NAMES).join(', ')), rest > 0 ? ` ${t('andMore', {count: rest})}` : null);
}

// hostNames returns the names of a reservation's hosts, or why there are none.
export function hostNames(one) {
  if (one.hosts.length > 0) return namesOf(one.hosts);
  return isOver(one) || one.kind === 'address' ? t('none') : h('span', {class: 'soft'}, t(one.waiting ? 'noHostsYet' : 'hostsLater'));
}

// spanLink leads to a time in the calendar, with some time around it.
export const spanLink = (from, to) =>
  `#/calendar?start=${Math.round(from - (to - from) * 0.3)}&width=${Math.round(Math.max(DAY, (to - from) * 1.8))}`;

// againLink leads to the form with the terms of a reservation.
export const againLink = one => `#/calendar?again=${encodeURIComponent(one.id)}`;
