// SPDX-License-Identifier: Apache-2.0
// The forms that change a reservation, and what is in the way of a change.
import {t} from './texts.js';
import {filterView} from './filters.js';
import {readDuration} from './lengths.js';
import {DAY, HOUR, length, seconds, sentence, span, when} from './time.js';
import {againLink, namesOf, spanLink} from './reservation-words.js';
import {timeField} from './timefield.js';
import {button, field, h, named, select, together} from './view.js';
import {canChange, draftOf, endText, fieldIDs, isPart, meant, overtaken, valueText, values} from './reservation-fields.js';
import {canSubmit, isChanging} from './reservation-state.js';
import {cancelText} from './reservation-cancel.js';

// changes returns the forms for what of a reservation can change now. `ends` are the actions at the end that the operator
// allows, and `may` reports whether a rule allows a change of it.
export function changes(state, send, may, ends) {
  const {one} = state,
    busy = isChanging(state),
    typed = name => value => send({type: 'typed', field: name, value});
  // A button that is disabled would lose the focus. The state ignores what cannot be done now.
  const form = (name, input, text, more = null) =>
    canChange(state, name) &&
    h(
      'form',
      {
        key: name,
        class: name === 'host_properties' ? 'whole' : null,
        submit: event => {
          event.preventDefault();
          send({type: 'submit', field: name});
        },
      },
      h('div', {}, input(state, typed(name), send), elsewhere(state, name, send), more),
      text && h('button', {id: `submit-${name}`, 'aria-disabled': canSubmit(state, name) ? null : 'true'}, t(text)),
    );
  return together(
    h(
      'div',
      {class: 'forms'},
      form('name', nameField, one.maintenance ? 'changeReason' : 'rename'),
      form('end', endField, 'changeEnd', longer(busy, send)),
      form('quantity', quantityField, 'changeQuantity'),
      form('resources', sizeFields, 'changeSize'),
      form('affinity', affinityField, 'changeAffinity'),
      form('on_end', endings(ends), 'changeAtEnd'),
      form('before_end', warningField, 'changeWarning'),
      form('host_properties', filterFields, state.editing ? 'changeFilter' : ''),
    ),
    one.held_until && h('p', {id: 'hold'}, t('holdText'), ' ', button(t('confirm'), () => send({type: 'confirmHold'}), {id: 'confirm-hold'})),
    one.status === 'starting' && h('p', {class: 'soft', id: 'starts-now'}, t('startsNow')),
    refusal(state, send),
    may('reservations:delete', one) && !isPart(state)
      ? h(
          'div',
          {class: 'actions'},
          button(cancelText(one), () => send({type: 'cancel'}), {class: 'danger', id: 'cancel', 'aria-disabled': busy ? 'true' : null}),
        )
      : null,
  );
}

const input = (change, attributes) =>
  h('input', {type: 'text', autocomplete: 'off', input: event => change(event.currentTarget.value), ...attributes});

const nameField = (state, change) =>
  field(t(state.one.maintenance ? 'reason' : 'name'), fieldIDs.name, input(change, {value: draftOf(state, 'name'), maxlength: '255', name: 'rename'}));

const endField = (state, change) => timeField({label: t('newEnd'), id: fieldIDs.end, value: draftOf(state, 'end'), change});

const number = (label, id, value, change, min) => field(label, id, input(change, {type: 'number', min, value: String(value), name: id}));

const quantityField = (state, change) => number(t('quantity'), fieldIDs.quantity, draftOf(state, 'quantity'), change, '1');

// sizeFields are those of the size of one instance. What else it has of the hosts stays.
function sizeFields(state, change) {
  const size = draftOf(state, 'resources'),
    amount = (name, label, id, min) => number(t(label), id, size[name], value => change({...size, [name]: value}), min);
  return h(
    'fieldset',
    {class: 'thirds'},
    h('legend', {}, t('sizeOfOne')),
    amount('vcpus', 'vcpus', fieldIDs.resources, '1'),
    amount('memory_mb', 'memoryMB', 'size-memory', '1'),
    amount('disk_gb', 'diskGB', 'size-disk', '0'),
  );
}

const affinityField = (state, change) =>
  field(t('affinity'), fieldIDs.affinity, select(['none', 'same', 'different'].map(one => [one, t(`affinity_${one}`)]), draftOf(state, 'affinity'), change));

// endings offers what can happen to the servers at the end: what the operator allows, and what is chosen now.
const endings = ends => (state, change) => {
  const now = values.on_end(state.one),
    all = ends.includes(now) ? ends : [now, ...ends];
  return field(t('atEnd'), fieldIDs.on_end, select(all.map(one => [one, endText(one)]), draftOf(state, 'on_end'), change));
};

function warningField(state, change) {
  const value = draftOf(state, 'before_end'),
    complaint = meant('before_end', value) === null ? readDuration(value).problem : '';
  return field(t('warning'), fieldIDs.before_end, input(change, {value, name: 'warning'}), {hint: t('warningHint'), complaint});
}

// filterFields are the editor of the filter, which is made when it is opened: it asks for the values of all properties.
const filterFields = (state, change, send) =>
  h(
    'details',
    {open: state.editing || undefined, toggle: event => event.currentTarget.open && send({type: 'filterWanted'})},
    h('summary', {}, t('whichHosts')),
    state.editing
      ? filterView({state: state.editor, filter: draftOf(state, 'host_properties'), complaint: '', id: 'change-filter', send: event => send({type: 'filter', event})})
      : null,
  );

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
  return h(
    'p',
    {class: 'complaint small', id: `elsewhere-${name}`, role: 'status'},
    t('changedElsewhere'),
    ' ',
    named(valueText(name, state.one)),
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
