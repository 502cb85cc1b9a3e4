// SPDX-License-Identifier: Apache-2.0
// The instances that can be evicted, and what room for another one would cost.
import {t} from './texts.js';
import {readable} from './time.js';
import {amount, at, host, list, part, project} from './operator-parts.js';
import {field, h, named, table, together} from './view.js';

// questions are the list, and the cost of the size that was sent.
export function questions({sent, may}) {
  const size = sent.cost && {vcpus: '2', memory_mb: '4096', ...sent.cost};
  return {
    preemptible: {request: {path: 'v1/preemptible', query: {limit: 500}}, follows: true},
    ...(size && may('preemptible:get_cost') ? {cost: {request: {path: 'v1/preemptible/cost', query: size}, follows: true}} : {}),
  };
}

export function view(state, send) {
  return together(
    part(state, 'preemptible', ({instances}) =>
      list(state, send, {
        name: 'preemptible',
        caption: t('page_preemptible'),
        heads: [t('server'), t('host'), t('project'), t('cost'), t('since'), t('reason')],
        rows: instances,
        row: one => ({
          key: one.id,
          cells: [
            named(one.name),
            host(state, one.host),
            project(state, one.project_id),
            one.cost === null ? '–' : `${amount(one.cost)} ${one.unit}`,
            at(one.launched_at),
            one.evictable ? t('evictable') : named(readable(one.reason || '')),
          ],
        }),
        empty: t('noPreemptible'),
      }),
    ),
    state.may('preemptible:get_cost') && cost(state, send),
  );
}

function cost(state, send) {
  const fields = {vcpus: '2', memory_mb: '4096', ...state.fields.cost};
  const number = (name, label) =>
    field(
      t(label),
      `cost-${name}`,
      h('input', {type: 'number', min: '1', required: true, value: fields[name], input: event => send({type: 'edit', form: 'cost', field: name, value: event.currentTarget.value})}),
    );
  return h(
    'section',
    {class: 'card'},
    h('h2', {}, t('costTitle')),
    h(
      'form',
      {
        class: 'line',
        submit: event => {
          event.preventDefault();
          send({type: 'submit', form: 'cost'});
        },
      },
      number('vcpus', 'vcpus'),
      number('memory_mb', 'memoryMB'),
      h('button', {class: 'main', id: 'ask-cost'}, t('ask')),
    ),
    h('div', {'aria-live': 'polite'}, state.sent.cost ? part(state, 'cost', found => costs(state, found)) : null),
  );
}

const costs = (state, found) =>
  together(
    found.reason ? h('p', {class: 'box'}, named(readable(found.reason))) : null,
    table(
      t('costTitle'),
      [t('host'), t('cost'), t('victims'), t('reason')],
      found.hosts.map(one => ({
        key: one.host,
        cells: [
          host(state, one.host),
          one.room ? t('hasRoom') : one.reason ? '–' : `${amount(one.cost)} ${one.unit}`,
          one.victims.flatMap((victim, i) => [i > 0 ? ', ' : null, named(victim.name)]),
          one.reason ? named(readable(one.reason)) : '',
        ],
      })),
      t('noHosts'),
    ),
  );
