// SPDX-License-Identifier: Apache-2.0
// The filter in Almanac's language, with help to write it, and saved filters.
import {button, field, fill, h, select} from './dom.js';
import {t} from './texts.js';
import {get} from './client.js';

let known = null;

// properties returns the properties that a filter can use; they are read once.
export function properties() {
  known ||= get('v1/properties').then(answer => answer.properties.filter(one => !['id'].includes(one.name)));
  known.catch(() => {
    known = null;
  });
  return known;
}

const operators = {
  number: [
    ['=', '='],
    ['!=', '≠'],
    ['<', '<'],
    ['<=', '≤'],
    ['>', '>'],
    ['>=', '≥'],
  ],
  string: [
    ['=', '='],
    ['!=', '≠'],
  ],
  bool: [['=', '=']],
  list: [['in', t('contains')]],
};

// condition returns the condition of the language that a property, an operator and a value make.
export function condition(property, operator, value) {
  const typed = property.type === 'number' ? Number(value) : property.type === 'bool' ? value === 'true' : value;
  return property.type === 'list' ? ['in', typed, `$${property.name}`] : [operator, `$${property.name}`, typed];
}

// joined returns a filter for hosts that pass both.
export function joined(filter, more) {
  let before = null;
  try {
    before = filter.trim() ? JSON.parse(filter) : null;
  } catch {
    before = null;
  }
  if (!before) return JSON.stringify(more);
  return JSON.stringify(before[0] === 'and' ? [...before, more] : ['and', before, more]);
}

function saved() {
  try {
    return JSON.parse(localStorage.getItem('filters')) || {};
  } catch {
    return {};
  }
}

// filterEditor returns a field for a filter; change is called with each text that is complete.
export function filterEditor(initial, change, {keep = true} = {}) {
  const text = h('input', {
    type: 'text',
    value: initial,
    spellcheck: 'false',
    autocomplete: 'off',
    placeholder: '["=", "$gpu", "a100"]',
    class: 'code',
  });
  const complaint = h('p', {class: 'complaint', role: 'alert', hidden: true});
  const name = h('select', {'aria-label': t('property')}),
    operator = h('select', {'aria-label': t('operator')}),
    value = h('select', {'aria-label': t('value')});
  let list = [];
  const chosen = () => list.find(one => one.name === name.value) || list[0];

  function offerValues() {
    const property = chosen();
    if (!property) return;
    const values = property.type === 'bool' ? [true, false] : property.values || [];
    fill(
      operator,
      operators[property.type].map(([sign, shown]) => h('option', {value: sign}, shown)),
    );
    fill(
      value,
      values.slice(0, 500).map(one => h('option', {value: String(one)}, String(one))),
    );
  }
  name.addEventListener('change', offerValues);
  properties().then(
    found => {
      list = found;
      const first = found.find(one => !one.built_in)?.name || found[0]?.name;
      fill(
        name,
        found.map(one => h('option', {value: one.name, selected: one.name === first}, one.name)),
      );
      offerValues();
    },
    () => {},
  );

  function fail(message) {
    complaint.textContent = message;
    complaint.hidden = message === '';
    text.setAttribute('aria-invalid', String(message !== ''));
  }

  function apply() {
    if (text.value.trim()) {
      try {
        JSON.parse(text.value);
      } catch {
        fail(t('filterNotJSON'));
        return;
      }
    }
    fail('');
    change(text.value.trim());
  }
  text.addEventListener('change', apply);
  text.addEventListener('keydown', event => {
    if (event.key === 'Enter') {
      event.preventDefault();
      apply();
    }
  });
  const set = filter => {
    text.value = filter;
    apply();
  };

  const store = h('select', {
    'aria-label': t('savedFilters'),
    change: () => {
      if (store.value) set(saved()[store.value]);
    },
  });
  const offerSaved = () =>
    fill(
      store,
      h('option', {value: ''}, t('savedFilters')),
      Object.keys(saved())
        .sort()
        .map(one => h('option', {value: one}, one)),
    );
  offerSaved();
  const title = h('input', {type: 'text', maxlength: '60', 'aria-label': t('filterName'), placeholder: t('filterName')});
  const write = all => {
    localStorage.setItem('filters', JSON.stringify(all));
    offerSaved();
  };
  const keeping = !keep
    ? null
    : h(
        'div',
        {class: 'line'},
        store,
        title,
        button(t('saveFilter'), () => {
          if (title.value.trim() && text.value.trim()) {
            write({...saved(), [title.value.trim()]: text.value.trim()});
            title.value = '';
          }
        }),
        button(t('forgetFilter'), () => {
          const all = saved();
          delete all[store.value];
          write(all);
        }),
      );

  return {
    element: h(
      'div',
      {class: 'filter'},
      field(t('filterLabel'), text),
      complaint,
      h(
        'div',
        {class: 'line'},
        name,
        operator,
        value,
        button(t('addCondition'), () => {
          const one = chosen();
          if (one && value.value !== '') set(joined(text.value, condition(one, operator.value, value.value)));
        }),
        button(t('clearFilter'), () => set('')),
      ),
      keeping,
    ),
    fail,
    value: () => text.value.trim(),
    set,
  };
}
