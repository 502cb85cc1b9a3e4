// SPDX-License-Identifier: Apache-2.0
// The editor of a filter: its conditions, which can be taken away one by one, with the values that exist; its text in
// Almanac's language is behind "Advanced". Filters can be kept in the browser.
import {button, field, h, select} from './view.js';
import {t} from './texts.js';
import {conditionsOf, operatorsOf, textOf} from './filter-language.js';
import {choosable, chosen, savedOf, valuesOf} from './filter-state.js';

// filterView returns the editor of a filter. `state` is that of filter-state.js, which gets what `send` sends; `complaint`
// is what the service says of the filter; `keep` offers to keep it.
export function filterView({state, filter, complaint, id, keep, send}) {
  const conditions = conditionsOf(filter),
    wrong = complaint || state.wrong;
  return h(
    'div',
    {class: 'filter', id},
    chips(conditions, send),
    plain(state, id, wrong, send),
    wrong ? h('p', {class: 'complaint', id: `${id}-wrong`, role: 'alert'}, wrong) : null,
    lists(state, send),
    keep ? keeping(state, filter, send) : null,
    advanced(state, filter, conditions, id, send),
  );
}

function chips(conditions, send) {
  if (!conditions) return h('p', {class: 'soft'}, t('filterAdvanced'));
  if (conditions.length === 0) return h('p', {class: 'soft'}, t('filterNone'));
  return h(
    'ul',
    {class: 'chips', 'aria-label': t('filter')},
    conditions.map((one, index) =>
      h(
        'li',
        {key: index},
        h('bdi', {}, textOf(one)),
        button('✕', () => send({type: 'removed', index}), {'aria-label': t('removeCondition', {condition: textOf(one)})}),
      ),
    ),
    h('li', {key: 'clear', class: 'clear'}, button(t('clearFilter'), () => send({type: 'cleared'}), {class: 'plain'})),
  );
}

// entering returns the listener of a field that takes its text with Enter, without sending the form around it.
const entering = send => event => {
  if (event.key !== 'Enter') return;
  event.preventDefault();
  send();
};

const plain = ({plain: text}, id, wrong, send) =>
  h(
    'div',
    {class: 'line'},
    h('input', {
      type: 'text',
      id: `${id}-plain`,
      class: 'plain-condition',
      value: text,
      placeholder: t('conditionExample'),
      'aria-label': t('conditionLabel'),
      'aria-describedby': wrong ? `${id}-wrong` : undefined,
      'aria-invalid': wrong ? 'true' : undefined,
      spellcheck: 'false',
      autocomplete: 'off',
      input: event => send({type: 'typed', plain: event.currentTarget.value}),
      keydown: entering(() => send({type: 'entered'})),
      change: () => send({type: 'entered'}),
    }),
    text.trim() ? button(t('addCondition'), () => send({type: 'entered'}), {class: 'add'}) : null,
  );

// lists makes a condition of a property, an operator and a value.
function lists(state, send) {
  const one = chosen(state);
  if (!one) return null;
  const choose = name => value => send({type: 'chose', [name]: value}),
    texts = list => list.map(text => [text, text]);
  return h(
    'div',
    {class: 'line'},
    select(texts(choosable(state).map(({name}) => name)), one.property.name, choose('property'), {'aria-label': t('property')}),
    select(operatorsOf(one.property), one.operator, choose('operator'), {'aria-label': t('operator')}),
    select(texts(valuesOf(one.property)), one.value, choose('value'), {'aria-label': t('value')}),
    button(t('addCondition'), () => send({type: 'added'}), {class: 'add'}),
  );
}

const advanced = ({text}, filter, conditions, id, send) =>
  h(
    'details',
    {open: conditions === null || undefined, class: 'advanced'},
    h('summary', {}, t('advanced')),
    field(
      t('filterLabel'),
      `${id}-text`,
      h('input', {
        type: 'text',
        value: text ?? filter,
        spellcheck: 'false',
        autocomplete: 'off',
        placeholder: '["=", "$gpu", "a100"]',
        class: 'code',
        input: event => send({type: 'wrote', text: event.currentTarget.value}),
        change: () => send({type: 'took'}),
        keydown: entering(() => send({type: 'took'})),
      }),
    ),
  );

function keeping(state, filter, send) {
  const names = Object.keys(state.saved).sort(),
    current = savedOf(state, filter);
  return h(
    'div',
    {class: 'line'},
    names.length
      ? select([['', t('savedFilters')], ...names.map(one => [one, one])], current, name => send({type: 'picked', name}), {
          'aria-label': t('savedFilters'),
          id: 'saved-filters',
        })
      : null,
    current ? button(t('forgetFilter'), () => send({type: 'forgot'}), {id: 'forget-filter'}) : null,
    filter && !current
      ? [
          h('input', {
            type: 'text',
            id: 'filter-name',
            maxlength: '60',
            value: state.name,
            'aria-label': t('filterName'),
            placeholder: t('filterName'),
            input: event => send({type: 'named', name: event.currentTarget.value}),
            keydown: entering(() => send({type: 'saved'})),
          }),
          button(t('saveFilter'), () => send({type: 'saved'}), {id: 'save-filter'}),
        ]
      : null,
    state.said ? h('span', {class: 'soft', id: 'filter-said'}, state.said) : null,
    state.before ? button(t('undo'), () => send({type: 'undone'}), {class: 'plain', id: 'undo-filter'}) : null,
  );
}
