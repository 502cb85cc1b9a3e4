// SPDX-License-Identifier: Apache-2.0
// Elements of the page. Text from elsewhere only becomes text nodes and values, never markup.
import {withMessage} from './standing.js';
import {t} from './texts.js';

// h returns an element. A function among the attributes is a listener of the event of its name; a boolean and a
// `value` are properties; everything else is an attribute, which null and undefined leave out.
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (typeof value === 'boolean' || key === 'value') element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat(3).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

// name returns an element with a text of a user, which may be written in any direction.
export const named = (text, attributes) => h('bdi', {dir: 'auto', class: 'name', ...attributes}, text);

// fill replaces the children of an element.
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

export const button = (text, click, attributes) => h('button', {type: 'button', click, ...attributes}, text);

let fields = 0;

// field returns a labeled input. `hint` explains it, for screen readers too.
export function field(label, input, hint) {
  input.id ||= `field-${++fields}`;
  const about = hint ? h('small', {id: `${input.id}-hint`}, hint) : null;
  if (about) input.setAttribute('aria-describedby', about.id);
  return h('div', {class: 'field'}, h('label', {for: input.id}, label), input, about);
}

export function select(options, chosen, change, attributes) {
  const list = h(
    'select',
    {change: () => change(list.value), ...attributes},
    options.map(([value, text]) => h('option', {value, selected: value === chosen}, text)),
  );
  return list;
}

// live is what screen readers read, and toasts are the messages; outside makes them once.
let live, toasts;

// announce lets screen readers read a text.
export function announce(text) {
  live.textContent = text;
}

let standing = []; // the messages that are shown: {text, about, undo, close}

// toast shows a message for some seconds, or until it is closed, and announces it. `undo` takes back what it tells, and
// `about` is the same for messages of which only the last one matters. It returns what closes it.
export function toast(text, kind, undo, about = '') {
  announce(text);
  const element = h('div', {class: `toast ${kind || ''}`}, h('span', {}, text)),
    one = {text, about, undo, close};
  const timer = setTimeout(close, undo ? 15000 : 8000);
  function close() {
    clearTimeout(timer);
    element.remove();
    standing = standing.filter(other => other !== one);
  }
  const press = () => {
    close();
    undo();
  };
  if (undo) element.append(button(t('undo'), press, {class: 'plain undo'}));
  element.append(button('×', close, {class: 'plain', 'aria-label': t('close')}));
  const next = withMessage(standing, one);
  for (const other of standing) if (!next.includes(other)) other.close();
  standing = next;
  toasts.append(element);
  return close;
}

// untoast closes the message about something.
export function untoast(about) {
  standing.find(one => one.about === about)?.close();
}

export function outside() {
  live = h('div', {class: 'hidden', role: 'status', 'aria-live': 'polite'});
  toasts = h('div', {class: 'toasts'});
  return [live, toasts];
}

// problem returns the box that shows an error of the API.
export const problem = error => h('p', {class: 'box bad', role: 'alert'}, error.message);
