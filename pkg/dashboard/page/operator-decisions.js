// SPDX-License-Identifier: Apache-2.0
// Why a server is where it is, or why there was no host for it.
import {t} from './texts.js';
import {readable} from './time.js';
import {amount, at, host, part} from './operator-parts.js';
import {facts, field, h, named, table, together} from './view.js';

// questions are the question that was sent, if there is one.
export function questions({sent}) {
  const id = sent.decisions?.server?.trim();
  return id ? {decisions: {request: {path: `v1/decisions/${encodeURIComponent(id)}`}, every: 60000}} : {};
}

export function view(state, send) {
  return together(
    h('p', {}, t('decisionsText')),
    h(
      'form',
      {
        class: 'line',
        submit: event => {
          event.preventDefault();
          send({type: 'submit', form: 'decisions'});
        },
      },
      field(
        t('serverOrRequest'),
        'decisions-server',
        h('input', {
          type: 'text',
          name: 'server',
          required: true,
          autocomplete: 'off',
          spellcheck: 'false',
          placeholder: '0d5cbe0f-98c7-4a91-9d63-2d56c1b6f00a',
          class: 'code',
          value: state.fields.decisions?.server || '',
          input: event => send({type: 'edit', form: 'decisions', field: 'server', value: event.currentTarget.value}),
        }),
      ),
      h('button', {class: 'main', id: 'explain'}, t('explain')),
    ),
    h(
      'div',
      {'aria-live': 'polite'},
      state.sent.decisions?.server ? part(state, 'decisions', found => found.decisions.map((one, i) => decision(state, one, i))) : null,
    ),
  );
}

const decision = (state, one, i) =>
  h(
    'section',
    {class: 'card', key: `${one.request_id} ${one.at} ${i}`},
    h('h2', {}, at(one.at)),
    one.reason ? h('p', {class: 'box bad'}, named(readable(one.reason))) : null,
    facts([
      [t('request'), h('code', {}, one.request_id || '–')],
      [t('placed'), one.placements?.length ? placements(state, one.placements) : null],
      [t('considered'), one.considered === undefined ? null : String(one.considered)],
      [t('left'), one.filters?.map(({filter, left}) => `${filter}: ${left}`).join(' → ')],
      [t('reservation'), one.reservation_id ? h('a', {href: `#/reservation/${encodeURIComponent(one.reservation_id)}`}, one.reservation_id) : null],
    ]),
    one.refused?.length ? refused(state, one.refused) : null,
    one.ranked?.length ? ranked(state, one.ranked) : null,
  );

const placements = (state, placed) =>
  h(
    'ul',
    {class: 'plain-list'},
    placed.map(one => h('li', {key: one.instance}, h('code', {}, one.instance), ' → ', host(state, one.host))),
  );

const refused = (state, hosts) =>
  h(
    'details',
    {},
    h('summary', {}, t('refusedHosts', {count: hosts.length})),
    table(
      t('refusedTable'),
      [t('host'), t('filter'), t('reason')],
      hosts.map(one => ({key: `${one.host} ${one.filter}`, cells: [host(state, one.host), one.filter, named(readable(one.reason))]})),
      '',
    ),
  );

const ranked = (state, hosts) =>
  h(
    'details',
    {},
    h('summary', {}, t('ranked')),
    table(
      t('ranked'),
      [t('host'), t('weight'), t('parts')],
      hosts.map(one => ({
        key: one.host,
        cells: [
          host(state, one.host),
          amount(one.weight),
          Object.entries(one.parts || {})
            .map(([name, value]) => `${name} ${amount(value)}`)
            .join(', '),
        ],
      })),
      '',
    ),
  );
