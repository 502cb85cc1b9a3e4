// SPDX-License-Identifier: Apache-2.0
// What several pages of operators show: answers with their errors, names with their links, numbers, and buttons.
import {t} from './texts.js';
import {ago, seconds, sentence, whenExactly} from './time.js';
import {isAnswer, isOld} from './operator-answers.js';
import {button, h, named, table, together} from './view.js';

// part shows what build makes of the answer to a question. Without an answer it tells why there is none; the head of
// the page tells of failures.
export function part(state, key, build) {
  const known = state.answers[key],
    refused = state.refused[key];
  if (known) return h('div', {key, class: isOld(state, key) ? 'outdated' : null}, build(known.value));
  if (refused) return isAnswer(refused) ? h('p', {key, class: 'box'}, sentence(refused.message)) : null;
  return state.questions.open[key]?.error ? null : h('p', {key, class: 'soft'}, t('loading'));
}

const oneDigit = new Intl.NumberFormat(undefined, {maximumFractionDigits: 1}),
  whole = new Intl.NumberFormat();

export const amount = value => (value === undefined || value === null ? '–' : oneDigit.format(value));

// counted writes a count as people do; 1 stays a number, because texts have another form for it.
export const counted = count => (count === 1 ? 1 : whole.format(count));

export const at = time => (time ? whenExactly(seconds(time)) : '–');

// sinceText returns how long ago something was, below what it tells of.
export const sinceText = time => (time ? h('div', {class: 'soft'}, ago(seconds(time))) : null);

// rowLink is the address of the row of a host in the calendar.
export const rowLink = name => `#/calendar?host=${encodeURIComponent(name)}`;

// hostPage is the address of the page of a host.
export const hostPage = name => `#/operator/hosts/${encodeURIComponent(name)}`;

// hostName returns the name of a host, which leads to its page, or to its row in the calendar for who may not see that.
export const hostName = (state, name) => h('a', {key: name, href: state.may('hosts:get_instances') ? hostPage(name) : rowLink(name)}, named(name));

// host returns the same with a link to the row in the calendar.
export const host = (state, name) =>
  name
    ? together(
        hostName(state, name),
        state.may('hosts:get_instances') ? [' ', h('a', {href: rowLink(name), class: 'aside', 'aria-label': t('rowOf', {name})}, t('calendar'))] : null,
      )
    : '–';

// project returns the name of a project, which is its id until the name is known.
export const project = (state, id) => named(state.names[id] || id);

// list returns a table that shows its first rows, with a button for the others. Rows are built when they are shown.
const SHOWN = 100;
export function list(state, send, {name, caption, heads, rows, row: cells, empty}) {
  const shown = state.all[name] ? rows : rows.slice(0, SHOWN);
  return together(
    table(caption, heads, shown.map(cells), empty),
    rows.length > shown.length
      ? h(
          'div',
          {class: 'rest'},
          h('p', {class: 'soft'}, t('shownOf', {shown: shown.length, count: counted(rows.length)})),
          button(t('showAll'), () => send({type: 'showAll', table: name}), {id: `all-${name}`}),
        )
      : null,
  );
}

// orderButton opens the confirmation of an order.
export const orderButton = (send, text, order, attributes) => button(text, () => send({type: 'ask', order}), attributes);

// modeNames are the modes of the energy controller, those that do less first.
export const modeNames = ['off', 'observe', 'recommend', 'auto'];
