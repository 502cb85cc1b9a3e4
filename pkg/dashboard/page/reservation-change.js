// SPDX-License-Identifier: Apache-2.0
// The forms that change a reservation, what is in the way of a change, and the question before a cancellation.
import {t} from './texts.js';
import {isOpen} from './questions.js';
import {DAY, HOUR, length, seconds, sentence, span, when, zoneName} from './time.js';
import {againLink, namesOf, sizeText, spanLink} from './reservation-words.js';
import {timeField} from './timefield.js';
import {button, field, h, named, together} from './view.js';
import {canSubmit, draftOf, fieldIDs, overtaken, values} from './reservation-state.js';

// changes returns the forms for a reservation that can change.
export function changes(state, send, may) {
  const {one, change, questions} = state,
    busy = Boolean(change) || isOpen(questions, 'cancel');
  // A button that is disabled would lose the focus. The state ignores what cannot be done now.
  const form = (name, input, text, more = null) =>
    h(
      'form',
      {
        key: name,
        submit: event => {
          event.preventDefault();
          send({type: 'submit', field: name});
        },
      },
      h('div', {}, input, elsewhere(state, name, send), more),
      h('button', {id: `submit-${name}`, 'aria-disabled': canSubmit(state, name) ? null : 'true'}, text),
    );
  const typed = name => event => send({type: 'typed', field: name, value: event.currentTarget.value});
  return together(
    h(
      'div',
      {class: 'forms'},
      form(
        'name',
        field(
          t(one.maintenance ? 'reason' : 'name'),
          fieldIDs.name,
          h('input', {
            type: 'text',
            value: draftOf(state, 'name'),
            maxlength: '255',
            name: 'rename',
            autocomplete: 'off',
            input: typed('name'),
          }),
        ),
        t(one.maintenance ? 'changeReason' : 'rename'),
      ),
      form(
        'end',
        timeField({
          label: t('newEnd'),
          id: fieldIDs.end,
          value: draftOf(state, 'end'),
          change: value => send({type: 'typed', field: 'end', value}),
        }),
        t('changeEnd'),
        longer(busy, send),
      ),
      one.status === 'pending' && !one.maintenance
        ? form(
            'quantity',
            field(
              t('quantity'),
              fieldIDs.quantity,
              h('input', {type: 'number', min: '1', value: String(draftOf(state, 'quantity')), name: 'quantity', input: typed('quantity')}),
            ),
            t('changeQuantity'),
          )
        : null,
    ),
    refusal(state, send),
    may('reservations:delete', one)
      ? h(
          'div',
          {class: 'actions'},
          button(cancelText(one), () => send({type: 'cancel'}), {class: 'danger', id: 'cancel', 'aria-disabled': busy ? 'true' : null}),
        )
      : null,
  );
}

const cancelText = one => t(one.maintenance ? 'cancelMaintenance' : 'cancelReservation');

// longer are the buttons that move the end. They stand below it, away from the one that cancels.
const longer = (busy, send) =>
  h(
    'div',
    {class: 'choices'},
    [HOUR, 4 * HOUR, DAY].map(more =>
      button(t('longer', {length: length(more)}), () => send({type: 'longer', more}), {
        class: 'choice',
        'aria-disabled': busy ? 'true' : null,
        key: more,
        'data-more': String(more),
      }),
    ),
  );

// elsewhere says that a field was changed elsewhere while the user types, and offers to take that.
function elsewhere(state, name, send) {
  if (!overtaken(state, name)) return null;
  const value = values[name](state.one);
  return h(
    'p',
    {class: 'complaint small', id: `elsewhere-${name}`, role: 'status'},
    t('changedElsewhere'),
    ' ',
    named(name === 'end' ? when(value) : String(value)),
    ' ',
    button(t('takeIt'), () => send({type: 'drop', field: name}), {class: 'choice'}),
  );
}

const SHOWN = 10; // groups of blocks

// refusal tells why a change was refused, what is possible instead, and what is in the way.
// It is scrolled into view once: the button that was pressed may be at the lower edge.
function refusal({refusal: refused, one}, send) {
  if (!refused) return null;
  const {error} = refused,
    {blocked_by: blocks = [], latest_end: latest} = error.refusal || {},
    groups = grouped(blocks);
  return h(
    'div',
    {class: 'box bad', role: 'alert', id: 'change-refused', ref: intoView},
    h('p', {}, sentence(error.message)),
    error.refusal &&
      h(
        'div',
        {class: 'choices'},
        latest &&
          button(t('untilThen', {end: when(seconds(latest))}), () => send({type: 'until', end: seconds(latest)}), {
            class: 'choice',
            id: 'take-latest',
          }),
        one.kind !== 'address' && h('a', {class: 'button choice', href: againLink(one)}, t(one.maintenance ? 'planAgain' : 'bookMore')),
      ),
    groups.length > 0 &&
      together(
        h('h3', {}, t('inTheWay', {count: blocks.length})),
        h('ul', {class: 'plain-list'}, groups.slice(0, SHOWN).map(groupView)),
        groups.length > SHOWN && h('p', {}, t('andMore', {count: groups.length - SHOWN})),
      ),
  );
}

const intoView = element => element?.scrollIntoView({block: 'nearest'});

// grouped returns the blocks of a refusal by their time and their reservations, each with its hosts.
function grouped(blocks) {
  const groups = new Map();
  for (const {host, start, end, reservations = []} of blocks) {
    const key = [start, end, ...reservations.map(({id}) => id)].join(' ');
    if (!groups.has(key)) groups.set(key, {key, start, end, reservations, hosts: []});
    groups.get(key).hosts.push(host);
  }
  return [...groups.values()];
}

function groupView({key, start, end, reservations, hosts}) {
  const [from, to] = [seconds(start), seconds(end)];
  return h(
    'li',
    {key},
    reservations.length === 0
      ? t('others')
      : reservations.flatMap(({id, name}, i) => [
          i === 0 ? null : ', ',
          h('a', {key: id, href: `#/reservation/${encodeURIComponent(id)}`}, named(name)),
        ]),
    ' · ',
    h('a', {href: spanLink(from, to)}, span(from, to)),
    ' · ',
    namesOf(hosts),
  );
}

// what tells how much a reservation has, with the hosts that the user may see.
const what = one => [sizeText(one), one.hosts.length > 0 ? [': ', namesOf(one.hosts)] : null];

// question asks once more before a cancellation, with what will happen to the servers.
export function question({one, dialog, questions}, send) {
  if (!dialog || !one) return null;
  const {servers} = dialog,
    busy = isOpen(questions, 'cancel');
  return h(
    'dialog',
    {
      'aria-labelledby': 'cancel-title',
      ref: element => {
        if (element && !element.open) element.showModal();
      },
      close: () => send({type: 'keep'}),
    },
    h('h2', {id: 'cancel-title'}, t(one.maintenance ? 'cancelMaintenanceTitle' : 'cancelTitle')),
    h('p', {}, named(one.name)),
    h('p', {id: 'cancel-what'}, span(seconds(one.start), seconds(one.end)), ' ', h('span', {class: 'soft'}, zoneName()), h('br'), what(one)),
    servers.length > 0
      ? together(
          h('p', {}, t('cancelServers')),
          h(
            'ul',
            {class: 'plain-list'},
            servers.map(server => h('li', {key: server.id}, named(server.name), ': ', t(`becomes_${server.becomes}`))),
          ),
        )
      : h('p', {}, t(one.maintenance ? 'cancelMaintenanceText' : 'cancelNoServers')),
    h(
      'div',
      {class: 'actions'},
      // A dialog that is closed by its own method gives the focus back to the button that opened it.
      button(t('keep'), event => event.currentTarget.closest('dialog').close(), {id: 'keep', 'aria-disabled': busy ? 'true' : null}),
      button(cancelText(one), () => send({type: 'confirm'}), {
        class: 'danger',
        id: 'confirm-cancel',
        'aria-disabled': busy ? 'true' : null,
      }),
    ),
  );
}
