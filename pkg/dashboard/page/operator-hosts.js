// SPDX-License-Identifier: Apache-2.0
// The hosts: what is wrong with them, and for one of them all that an operator can do.
import {t} from './texts.js';
import {readable} from './time.js';
import {current, maintenanceQuestion, next} from './operator-maintenance.js';
import {hostActions} from './operator-host-actions.js';
import {amount, at, host, list, part, project, rowLink, sinceText} from './operator-parts.js';
import {facts, field, h, named, table, together} from './view.js';

const hostPath = name => encodeURIComponent(name);

// questions are the list of hosts, or for one host what the inventory and the energy controller know.
export function questions({item, may, at: now, refused}) {
  if (!item) return {hosts: {request: {path: 'v1/hosts', list: 'hosts', most: 5000}, follows: true}};
  return {
    // The calendar refuses a host that is gone.
    ...(refused.host ? {} : {maintenance: maintenanceQuestion(item, now)}),
    host: {request: {path: `v1/hosts/${hostPath(item)}`}, follows: true},
    ...(may('energy:get_host') ? {power: {request: {path: `v1/energy/hosts/${hostPath(item)}`}, follows: true}} : {}),
  };
}

export const view = (state, send) => (state.item ? oneHost(state, send) : allHosts(state, send));

// found returns the hosts that have the words of a search.
export function found(hosts, search) {
  const wanted = search.trim().toLowerCase();
  return wanted === ''
    ? hosts
    : hosts.filter(one => [one.name, one.zone, ...(one.aggregates || []), one.problem, t(`power_${one.power}`)].join('\n').toLowerCase().includes(wanted));
}

function allHosts(state, send) {
  const search = state.fields.hosts?.search || '';
  return together(
    h(
      'div',
      {class: 'line'},
      field(
        t('searchHosts'),
        'hosts-search',
        h('input', {type: 'search', autocomplete: 'off', value: search, input: event => send({type: 'edit', form: 'hosts', field: 'search', value: event.currentTarget.value})}),
      ),
    ),
    part(state, 'hosts', hosts =>
      list(state, send, {
        name: 'hosts',
        caption: t('hosts'),
        heads: [t('host'), t('state'), t('instancesHead'), t('zone'), t('aggregates')],
        rows: found(hosts, search),
        row: one => ({
          key: one.name,
          cells: [
            host(state, one.name),
            stateOf(one),
            String(one.instance_count),
            named(one.zone || ''),
            named((one.aggregates || []).join(', ')),
          ],
        }),
        empty: t(search ? 'noHostsSearched' : 'noHosts'),
      }),
    ),
  );
}

// stateOf tells whether a host is on, what is wrong, and whether it can be reserved.
const stateOf = one =>
  together(
    h('span', {class: one.problem ? 'badge failed' : one.power === 'on' ? 'badge active' : 'badge'}, t(one.problem ? 'state_out_of_order' : `power_${one.power}`)),
    one.reservable ? null : [' ', h('span', {class: 'badge'}, t('outsidePool'))],
    one.problem ? h('div', {class: 'soft'}, named(readable(one.problem))) : null,
  );

function oneHost(state, send) {
  const {item} = state;
  return together(
    h('p', {class: 'soft screen-only'}, h('a', {href: '#/operator/hosts'}, t('allHosts')), ' · ', h('a', {href: rowLink(item), id: 'row'}, t('showInCalendar'))),
    h('h2', {class: 'above', id: 'host-name'}, named(item)),
    part(state, 'host', one => about(state, send, one)),
    state.answers.power?.value.history?.length ? part(state, 'power', history) : null,
  );
}

const about = (state, send, one) =>
  together(
    h(
      'div',
      {class: 'columns'},
      h(
        'div',
        {},
        h(
          'section',
          {class: 'card'},
          h('h3', {}, t('facts')),
          facts([
            [t('state'), stateOf(one)],
            [t('zone'), one.zone && named(one.zone)],
            [t('aggregates'), one.aggregates?.length ? named(one.aggregates.join(', ')) : null],
            [t('sizeOfHost'), t('sizeText', {vcpus: one.resources.vcpus || 0, memory: one.resources.memory_mb || 0, disk: one.resources.disk_gb || 0})],
            [t('instancesHead'), String(one.instance_count)],
            [t('maintenance'), current(state)],
            [t('nextMaintenance'), next(state)],
          ]),
        ),
        state.answers.power ? part(state, 'power', power) : null,
      ),
      hostActions(state, send, one, state.answers.power?.value),
    ),
    one.instances?.length ? instances(state, one.instances) : null,
  );

const instances = (state, all) =>
  table(
    t('instancesHead'),
    [t('server'), t('status'), t('project'), t('reservation'), t('since')],
    all.map(one => ({
      key: one.id,
      cells: [
        named(one.name),
        one.status,
        project(state, one.project_id),
        one.reservation_id ? h('a', {href: `#/reservation/${encodeURIComponent(one.reservation_id)}`}, t('show')) : '–',
        at(one.launched_at),
      ],
    })),
    '',
  );

// power tells what the energy controller knows of a host.
const power = one =>
  h(
    'section',
    {class: 'card'},
    h('h3', {}, t('powerTitle')),
    facts([
      [t('phase'), together(t(`phase_${one.phase}`), sinceText(one.since))],
      [t('mode'), t(`mode_${one.effective_mode}`)],
      [t('watts'), one.read_at ? amount(one.watts) : t('unknown')],
      [t('agent'), one.agent && named(`${one.agent} (${one.driver})`)],
      [t('hold'), one.hold && named(readable(t(one.hold.until ? 'holdUntil' : 'holdEver', {action: t(`action_${one.hold.action}`), by: one.hold.by, until: one.hold.until || ''})))],
      [t('quarantine'), one.quarantine && named(readable(one.quarantine))],
      [t('why'), one.explanation?.length ? h('ul', {class: 'plain-list'}, one.explanation.map((text, i) => h('li', {key: i}, named(readable(text))))) : null],
    ]),
  );

// history is what was done with the power of a host.
const history = one =>
  together(
    h('h3', {}, t('history')),
    table(
      t('history'),
      [t('time'), t('event'), t('by')],
      one.history.map(entry => ({key: entry.id, cells: [at(entry.at), named(readable(entry.text)), named(entry.by)]})),
      '',
    ),
  );
