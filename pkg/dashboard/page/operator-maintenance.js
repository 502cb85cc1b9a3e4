// SPDX-License-Identifier: Apache-2.0
// The maintenance of a host: the one that is under way, and the next one.
import {t} from './texts.js';
import {DAY, ago, iso, seconds, span} from './time.js';
import {part} from './operator-parts.js';
import {h, named} from './view.js';

const HORIZON = 36525 * DAY; // a century: maintenance may be planned at any time ahead

// maintenanceQuestion asks for all that is planned on a host from now on.
export const maintenanceQuestion = (name, now) => ({
  of: name,
  request: {path: 'v1/calendar', query: {host: name, start: iso(now), end: iso(now + HORIZON)}},
  every: 60000,
  follows: true,
});

// planned returns the maintenance of an answer in its order.
const planned = found => (found.hosts[0]?.claims || []).filter(one => one.maintenance).sort((a, b) => seconds(a.start) - seconds(b.start));

// current is the maintenance that is under way; null if there is none.
export function current({answers, at}) {
  const one = answers.maintenance && planned(answers.maintenance.value).find(({start, end}) => seconds(start) <= at && at < seconds(end));
  return one ? h('span', {id: 'maintenance-now'}, words(one)) : null;
}

// next is the first maintenance that is to come.
export const next = state =>
  part(state, 'maintenance', found => {
    const one = planned(found).find(({start}) => seconds(start) > state.at);
    return one ? h('span', {id: 'maintenance-next'}, words(one, ` (${ago(seconds(one.start))})`)) : t('none');
  });

// words are the time of maintenance, and its reason where the user may know it.
function words({start, end, name, reservation_id: id}, distance = '') {
  const time = span(seconds(start), seconds(end));
  return [id ? h('a', {href: `#/reservation/${encodeURIComponent(id)}`}, time) : time, distance, name ? [': ', named(name)] : null];
}
