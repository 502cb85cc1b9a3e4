// SPDX-License-Identifier: Apache-2.0
// What the editor of a filter has beside the filter itself: what is chosen and typed, and the filters that the browser
// keeps. Nothing here needs a browser.
import {condition, conditionsOf, filterOf, joined, operatorsOf, read} from './filter-language.js';
import {t} from './texts.js';

// initial returns an editor. `saved` are the filters that are kept, by their names, and `plain` is what was typed before.
export const initial = ({saved = {}, plain = ''} = {}) => ({
  properties: [], // those that hosts have, as the API lists them
  property: '',
  operator: '',
  value: '',
  plain,
  text: null, // the filter in its language while it is edited
  wrong: '',
  saved,
  name: '',
  said: '',
  before: null, // what was kept before the last change of it
});

// savedFrom returns the filters of a text that the browser has kept, by their names. What is no text is no filter.
export function savedFrom(text) {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(text) || {}).filter(([, filter]) => typeof filter === 'string'));
  } catch {
    return {};
  }
}

export const valuesOf = property =>
  !property ? [] : property.type === 'bool' ? ['true', 'false'] : (property.values || []).slice(0, 500).map(String);

// choosable returns the properties with values to choose from.
export const choosable = ({properties}) => properties.filter(one => valuesOf(one).length > 0);

// chosen returns the property, the operator and the value of the condition that the lists make; null without properties.
export function chosen(state) {
  const list = choosable(state),
    property = list.find(one => one.name === state.property) || list.find(one => !one.built_in) || list[0];
  if (!property) return null;
  const signs = operatorsOf(property).map(([sign]) => sign),
    values = valuesOf(property);
  return {
    property,
    operator: signs.includes(state.operator) ? state.operator : signs[0],
    value: values.includes(state.value) ? state.value : values[0],
  };
}

// waiting returns what is typed and not part of the filter yet.
export function waiting({plain, text}, filter) {
  if (plain.trim()) return plain.trim();
  return text !== null && text.trim() !== filter ? text.trim() || ' ' : '';
}

// savedOf returns the filter that is kept under the name in the field, if the filter is that one.
export const savedOf = ({saved}, filter) => Object.keys(saved).find(name => saved[name] === filter) || '';

// step returns the editor of a filter after an event, and what is to be done: `change` gives on another filter, `keep`
// keeps all filters in the browser, and `announce` tells it to screen readers.
export function step(state, event, filter) {
  return changes[event.type](state, event, filter);
}

// emptied returns the editor without what was typed.
export const emptied = state => ({...state, plain: '', text: null, wrong: ''});

// changed gives on a filter; what was typed is then the filter itself.
const changed = (state, filter) => [emptied(state), {do: 'change', filter}];

const kept = (state, saved, said, before = null) => [
  {...state, saved, said, before, name: ''},
  {do: 'keep', name: 'filters', value: JSON.stringify(saved)},
  {do: 'announce', text: said},
];

const changes = {
  loaded: (state, {properties}) => [{...state, properties}],
  chose: (state, {type, ...parts}) => [{...state, ...parts}],
  added: (state, event, filter) => {
    const one = chosen(state);
    return one ? changed(state, joined(filter, condition(one.property, one.operator, one.value))) : [state];
  },
  typed: (state, {plain}) => [{...state, plain, wrong: ''}],
  entered: (state, event, filter) => {
    if (!state.plain.trim()) return [state];
    const found = read(state.plain, state.properties);
    if (!found) return [{...state, wrong: t(state.properties.length ? 'conditionWrong' : 'conditionsUnknown')}];
    return changed(state, found.reduce(joined, filter));
  },
  wrote: (state, {text}) => [{...state, text, wrong: ''}],
  took: (state, event, filter) => {
    const text = (state.text ?? filter).trim();
    try {
      if (text) JSON.parse(text);
    } catch {
      return [{...state, wrong: t('filterNotJSON')}];
    }
    return changed(state, text);
  },
  removed: (state, {index}, filter) => changed(state, filterOf(conditionsOf(filter).filter((_, i) => i !== index))),
  cleared: state => changed(state, ''),
  named: (state, {name}) => [{...state, name, said: ''}],
  saved: (state, event, filter) => {
    const name = state.name.trim();
    if (!filter) return [{...state, said: t('filterEmpty')}];
    if (!name) return [{...state, said: t('filterNeedsName')}];
    const replaced = Object.hasOwn(state.saved, name) ? state.saved : null;
    return kept(state, {...state.saved, [name]: filter}, t('filterSaved', {name}), replaced);
  },
  picked: (state, {name}) => (Object.hasOwn(state.saved, name) ? changed({...state, said: '', before: null}, state.saved[name]) : [state]),
  forgot: (state, event, filter) => {
    const name = savedOf(state, filter),
      {[name]: gone, ...rest} = state.saved;
    return name ? kept(state, rest, t('filterForgotten', {name}), state.saved) : [state];
  },
  undone: state => (state.before ? kept(state, state.before, t('filterBack')) : [state]),
};
