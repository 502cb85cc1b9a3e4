// SPDX-License-Identifier: Apache-2.0
// What the pages of operators have in common: the tabs, the age of what is shown, and the confirmation of orders.
import {t} from './texts.js';
import {isOpen} from './questions.js';
import {readable} from './time.js';
import {allowed} from './operator-pages.js';
import {pageOf} from './operator-list.js';
import {freshness, questionsOf, troubleOf} from './operator-state.js';
import {button, field, h, latest, problem} from './view.js';

// viewOf returns the view. What a page shows is built anew when something has changed, and twice a minute for the times
// in words; the age changes each second.
export function viewOf() {
  const body = latest();
  return (state, send) => {
    const page = pageOf(state.page),
      {answers, refused, fields, sent, questions, all, names, results, item} = state,
      parts = [state.page, item, answers, refused, fields, sent, questions, all, names, results, Math.floor(state.at / 30)];
    return h(
      'div',
      {class: 'page operations'},
      h('header', {class: 'page-head'}, h('h1', {}, t('operations')), page && age(state, send)),
      h(
        'nav',
        {class: 'tabs', 'aria-label': t('operations')},
        allowed(state.may).map(one => h('a', {key: one, href: `#/operator/${one}`, 'aria-current': one === state.page ? 'page' : null}, t(`page_${one}`))),
      ),
      trouble(state, send),
      page && body(parts, () => h('div', {key: state.page}, page.view(state, send))),
      confirmation(state, send),
    );
  };
}

// age tells how old the page is, with a button that reads it again.
function age(state, send) {
  const old = freshness(state),
    failed = troubleOf(state) !== null;
  if (Object.keys(questionsOf(state)).length === 0) return null;
  return h(
    'div',
    {class: 'age'},
    h('span', {class: failed || old === null ? 'live' : 'live on', id: 'age'}, old === null ? t('notRead') : `${ageText(old)}${failed ? ` · ${t('outdated')}` : ''}`),
    button(t('readAgain'), () => send({type: 'reread'}), {id: 'read-again'}),
  );
}

function ageText(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds === 0) return t('asOfNow');
  return seconds < 60 ? t('asOfSeconds', {seconds}) : t('asOfMinutes', {minutes: Math.floor(seconds / 60)});
}

// trouble tells why the page may be old, and when it is read again. What was read before stays.
function trouble(state, send) {
  const found = troubleOf(state);
  if (!found) return null;
  const wait = Math.ceil(found.wait / 1000),
    message = readable(found.error.message);
  return problem({message: wait > 0 ? `${message} ${t('againIn', {seconds: wait})}` : message}, () => send({type: 'reread'}));
}

// confirmation asks before an order is sent. A refusal stands in it.
function confirmation(state, send) {
  const {order, questions, fields} = state;
  if (!order) return null;
  const busy = isOpen(questions, 'order'),
    shut = {'aria-disabled': busy ? 'true' : null};
  return h(
    'dialog',
    {
      'aria-labelledby': 'order-title',
      ref: element => {
        if (element && !element.open) element.showModal();
      },
      close: () => send({type: 'keep'}),
    },
    h('h2', {id: 'order-title'}, order.title),
    order.lines.map((line, i) => h('p', {key: i}, line)),
    foreseen(order, isOpen(questions, 'trial')),
    h(
      'form',
      {
        submit: event => {
          event.preventDefault();
          send({type: 'confirm'});
        },
      },
      (order.takes || []).map(name => typed(name, fields.order?.[name] || '', send)),
      order.error ? h('p', {class: 'box bad', role: 'alert'}, readable(order.error.message)) : null,
      h(
        'div',
        {class: 'actions'},
        button(t('notNow'), event => event.currentTarget.closest('dialog').close(), {id: 'keep', ...shut}),
        h('button', {class: order.danger ? 'danger' : 'main', id: 'confirm-order', ...shut}, busy ? t('sending') : order.yes),
      ),
    ),
  );
}

// foreseen tells what the service answers to an order that changes nothing.
function foreseen({trial, request}, asking) {
  if (asking) return h('p', {class: 'soft'}, t('asksWhat'));
  if (!trial) return null;
  if (trial.error) return h('p', {class: 'box bad', role: 'alert'}, readable(trial.error.message));
  return h('p', {class: 'box', id: 'outcome'}, t('outcomeWould', {name: decodeURIComponent(request.path.split('/').at(-1)), outcome: readable(trial.outcome)}));
}

const typed = (name, value, send) =>
  h(
    'div',
    {key: name},
    field(
      t(`order_${name}`),
      `order-${name}`,
      h('input', {type: 'text', value, autocomplete: 'off', maxlength: '1024', input: event => send({type: 'edit', form: 'order', field: name, value: event.currentTarget.value})}),
      {hint: t(`orderHint_${name}`)},
    ),
  );
