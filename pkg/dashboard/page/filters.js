// SPDX-License-Identifier: Apache-2.0
// The editor of a filter: its conditions, which can be taken away one by one, with the values that exist; its text in
// Almanac's language is behind "Advanced". Filters can be kept in the browser.
import {button, field, h, select} from './view.js';
import {Component, h as element} from './preact.js';
import {t} from './texts.js';
import {get} from './client.js';
import {announce} from './dom.js';
import {keep, kept} from './kept.js';
import {conditionsOf, operatorsOf, textOf} from './filter-language.js';
import {choosable, chosen, initial, savedOf, step, valuesOf, waiting} from './filter-state.js';

let known = null;

// properties returns the properties that a filter can use; they are read once.
export function properties() {
  known ||= get('v1/properties').then(answer => answer.properties.filter(one => one.name !== 'id'));
  known.catch(() => {
    known = null;
  });
  return known;
}

// saved returns the filters that the browser keeps, by their names. What is no text is no filter.
function saved() {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(kept('filters')) || {}).filter(([, filter]) => typeof filter === 'string'));
  } catch {
    return {};
  }
}

// filterView returns the editor of a filter. `change` is called with each filter that is complete, and `waits` with what
// is typed and not part of it yet, of which `unadded` is the first; `complaint` is what the service says of the filter;
// `keep` offers to keep it.
export const filterView = attributes => element(Filter, attributes);

class Filter extends Component {
  constructor(attributes) {
    super(attributes);
    this.state = initial({saved: saved(), plain: attributes.unadded});
    this.send = event => this.carryOut(step(this.state, event, this.props.filter));
  }

  carryOut([next, ...effects]) {
    const {change, filter} = this.props;
    this.setState(next);
    for (const effect of effects) {
      if (effect.do === 'change' && effect.filter !== filter) change(effect.filter);
      if (effect.do === 'keep') keep('filters', JSON.stringify(effect.saved));
      if (effect.do === 'announce') announce(effect.text);
    }
  }

  componentDidMount() {
    properties().then(
      list => this.send({type: 'loaded', properties: list}),
      () => {}, // without them the text can still be written
    );
  }

  componentDidUpdate() {
    const {filter, unadded = '', waits} = this.props,
      typed = waiting(this.state, filter);
    if (typed !== unadded) waits?.(typed);
  }

  componentWillUnmount() {
    if (this.props.unadded) this.props.waits?.('');
  }

  render({filter, complaint, id, keep: keeps}, state) {
    const conditions = conditionsOf(filter),
      wrong = complaint || state.wrong;
    return h(
      'div',
      {class: 'filter'},
      chips(conditions, this.send),
      plain(state, id, wrong, this.send),
      wrong ? h('p', {class: 'complaint', id: `${id}-wrong`, role: 'alert'}, wrong) : null,
      lists(state, this.send),
      keeps ? keeping(state, filter, this.send) : null,
      advanced(state, filter, conditions, id, this.send),
    );
  }
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
