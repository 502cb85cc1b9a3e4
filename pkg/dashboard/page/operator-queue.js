// SPDX-License-Identifier: Apache-2.0
// The queue of best-effort work.
import {t} from './texts.js';
import {ago, readable, seconds} from './time.js';
import {at, counted, hostName, list, part, project} from './operator-parts.js';
import {h, named, together} from './view.js';

// questions are the question of this page. Who sees only one project sees its queue.
export const questions = ({may}) => ({
  queue: {
    request: {path: 'v1/besteffort', query: may('besteffort:list_all') ? {all_projects: true} : {}, list: 'besteffort', most: 1000},
    follows: true,
  },
});

export const view = (state, send) =>
  part(state, 'queue', found =>
    list(state, send, {
      name: 'queue',
      caption: t('page_queue'),
      heads: [t('name'), t('project'), t('status'), t('position'), t('expected'), t('servers')],
      rows: found,
      row: one => ({
        key: one.id,
        cells: [
          named(one.name),
          project(state, one.project_id),
          t(`queue_${one.status}`),
          one.position ? String(one.position) : '–',
          one.expected_start ? `${at(one.expected_start)} (${ago(seconds(one.expected_start))})` : '–',
          h(
            'ul',
            {class: 'plain-list'},
            alike(one.vms).map(group => h('li', {key: group.key}, servers(state, group))),
          ),
        ],
      }),
      empty: t('emptyQueue'),
    }),
  );

// alike returns the servers of a request in groups: those with the same state and the same reason are one.
export function alike(vms) {
  const groups = new Map();
  for (const {status, reason = '', host} of vms) {
    const key = `${status} ${reason}`;
    if (!groups.has(key)) groups.set(key, {key, status, reason, count: 0, hosts: new Set()});
    const group = groups.get(key);
    group.count++;
    if (host) group.hosts.add(host);
  }
  return [...groups.values()].map(group => ({...group, hosts: [...group.hosts].sort()}));
}

const HOSTS = 8;

// servers tells of a group: 38 servers wait: no host has room.
function servers(state, {status, reason, count, hosts}) {
  const key = `servers_${status}`,
    known = t(key, {count: counted(count)});
  return together(
    known === status ? t('serversOther', {count: counted(count), status: t(`queue_${status}`)}) : known,
    hosts.length ? [' · ', hosts.slice(0, HOSTS).flatMap((name, i) => [i > 0 ? ', ' : null, hostName(state, name)])] : null,
    hosts.length > HOSTS ? ` ${t('andMore', {count: hosts.length - HOSTS})}` : null,
    reason ? [': ', named(readable(reason))] : null,
  );
}
