// SPDX-License-Identifier: Apache-2.0
// What views are made of. A view is a function of the state that returns elements; preact compares them with those
// before and changes only what differs, so focus and what is typed stay. Text from elsewhere is only ever text.
import {Fragment, h as element} from './preact.js';
import {t} from './texts.js';

// h returns an element of a view. A function among the attributes is a listener of the event of its name; `ref` gets
// the element of the document, and `key` tells rows apart.
export function h(name, attributes, ...children) {
  const properties = {};
  for (const [key, value] of Object.entries(attributes || {})) {
    properties[typeof value === 'function' && key !== 'ref' ? `on${key}` : key] = value ?? undefined;
  }
  return element(name, properties, ...children);
}

// together returns elements without one around them.
export const together = (...children) => element(Fragment, null, ...children);

// unchanged returns an element that preact skips whenever a view returns this very one again.
export const unchanged = one => element(Unchanged, {key: one.key}, one);
const Unchanged = ({children}) => children;

// latest returns what keeps the last element that was made of something.
export function latest() {
  let of = [],
    element;
  return (now, make) => {
    if (now.length !== of.length || now.some((one, i) => one !== of[i])) {
      const made = make();
      [of, element] = [now, made && unchanged(made)];
    }
    return element;
  };
}

// remembering returns a function that makes an element anew when one of the values has changed that it depends on, and
// else returns the one before, which preact skips.
export function remembering() {
  let before = null,
    made = null;
  return (values, make) => {
    if (!before || values.some((value, i) => !Object.is(value, before[i]))) [before, made] = [values, unchanged(make())];
    return made;
  };
}

// named returns an element with a text of a user, which may be written in any direction.
export const named = (text, attributes) => h('bdi', {dir: 'auto', class: 'name', ...attributes}, text);

export const button = (text, click, attributes) => h('button', {type: 'button', click, ...attributes}, text);

// field returns a labeled input; its id connects them. `hint` explains it and `complaint` says what is wrong, for screen
// readers too.
export function field(label, id, input, {hint, complaint} = {}) {
  const about = [hint && `${id}-hint`, complaint && `${id}-complaint`].filter(Boolean).join(' ');
  Object.assign(input.props, {id}, about && {'aria-describedby': about}, complaint && {'aria-invalid': 'true'});
  return h(
    'div',
    {class: 'field'},
    h('label', {for: id}, label),
    input,
    hint && h('small', {id: `${id}-hint`}, hint),
    complaint && h('small', {id: `${id}-complaint`, class: 'complaint', role: 'alert'}, complaint),
  );
}

// select returns a list of choices, each with its value and its text; choose is called with a value.
export const select = (options, chosen, choose, attributes) =>
  h(
    'select',
    {value: chosen, change: event => choose(event.currentTarget.value), ...attributes},
    options.map(([value, text]) => h('option', {key: value, value, selected: value === chosen}, text)),
  );

// check returns a checkbox with its label.
export const check = (id, text, checked, choose) =>
  h(
    'p',
    {class: 'check'},
    h('input', {type: 'checkbox', id, checked, change: event => choose(event.currentTarget.checked)}),
    h('label', {for: id}, text),
  );

// table returns a table. A row has a key and a list of cells, or is one of tableRow. On narrow screens each row is a block,
// and each cell has the head of its column before it; the roles stand there because blocks lose them.
export function table(caption, heads, rows, empty) {
  return h(
    'div',
    {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    h(
      'table',
      {role: 'table'},
      h('caption', {class: 'hidden'}, caption),
      h(
        'thead',
        {role: 'rowgroup'},
        h(
          'tr',
          {role: 'row'},
          heads.map(head => h('th', {scope: 'col', role: 'columnheader', ...head.attributes}, head.content ?? head)),
        ),
      ),
      h(
        'tbody',
        {role: 'rowgroup'},
        rows.length === 0
          ? h('tr', {role: 'row', key: 'empty'}, h('td', {colspan: String(heads.length), class: 'empty', role: 'cell'}, empty))
          : rows.map(row => (row.cells ? tableRow(heads, row) : row)),
      ),
    ),
  );
}

// tableRow returns a row of a table with these heads. A view that keeps the rows that have not changed, as
// `unchanged` ones, saves the work of comparing them.
export function tableRow(heads, {key, cells}) {
  const cell = (content, i) =>
    i === 0 ? h('th', {scope: 'row', role: 'rowheader'}, content) : h('td', {role: 'cell', 'data-head': textOf(heads[i])}, content);
  return h('tr', {role: 'row', key}, cells.map(cell));
}

// textOf returns the text of a column's head: a text, or {content, text, attributes}.
const textOf = head => head.text ?? head;

// facts returns a list of names with their values; a pair without a value is left out.
export const facts = pairs =>
  h(
    'dl',
    {class: 'facts'},
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false)
      .map(([term, value]) => h('div', {key: term}, h('dt', {}, term), h('dd', {}, value))),
  );

// problem returns the box that shows an error of the API, with a button that asks again.
export const problem = (error, again) =>
  h('div', {class: 'box bad', role: 'alert'}, h('p', {}, error.message), again && button(t('tryAgain'), again, {class: 'choice', id: 'try-again'}));
