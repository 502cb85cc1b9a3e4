// SPDX-License-Identifier: Apache-2.0
// The elements of the form: its fields, and the button that sends it.
import {button, check, field, h, named, select} from './view.js';
import {t} from './texts.js';
import {canSubmit, isAsking, wantsOffers} from './form-state.js';
import {part} from './offers-part.js';
import {answer, more} from './form-answer-view.js';
import {searches} from './form-fields.js';
import {placeView} from './form-place.js';
import {complaintOf, wordsUnread} from './form-request.js';
import {periods} from './periods.js';
import {filterView} from './filters.js';
import {timeField} from './timefield.js';
import {DAY, HOUR, length, readDuration} from './lengths.js';
import {now, span} from './time.js';

const durations = [HOUR, 4 * HOUR, DAY, 7 * DAY];

// formView returns the form. `context` has what the user may do, the names of projects, and the button that
// folds the rows of the calendar.
export function formView(form, context, send) {
  const edit = (name, value) => send({type: 'form.edit', field: name, value}),
    take = choice => send({type: 'form.take', choice});
  return [
    h(
      'header',
      {},
      h('h2', {tabindex: '-1'}, t(form.mode === 'change' ? 'changeTime' : 'newReservation')),
      button('×', () => send({type: 'form.close'}), {'aria-label': t('close'), class: 'plain', id: 'close-form'}),
    ),
    form.behind ? h('p', {class: 'soft', id: 'behind'}, t('behind')) : null,
    h(
      'form',
      {
        class: 'booking',
        novalidate: true, // the form says itself what is wrong
        submit: event => {
          event.preventDefault();
          send({type: 'form.submit'});
        },
      },
      h(
        'fieldset',
        {class: 'fields', disabled: form.sending},
        form.mode === 'change' ? changeFields(form, edit) : bookingFields(form, context, edit, take, send),
      ),
      form.offers && !form.unsure ? part.offersView(form, send) : null,
      more(form, context, take),
      h(
        'div',
        {class: 'foot'},
        h(
          'div',
          {class: 'answer', id: 'form-answer', role: 'status', 'aria-live': 'polite'},
          form.doubt ? h('p', {class: 'box bad', id: 'doubt'}, t('doubt')) : null,
          answer(form, take, send),
        ),
        h('div', {class: 'actions'}, context.fold, submit(form)),
      ),
    ),
  ];
}

// submit returns the button that sends. It keeps the focus while there is nothing to send, and the answer says why.
function submit(form) {
  const {fields, mode, before} = form,
    offers = wantsOffers(form),
    change = fields.start.at !== before?.start ? 'changeTime' : fields.end.at < before.end ? 'shorten' : 'extend',
    key = mode === 'change' ? change : fields.kind === 'maintenance' ? 'planIt' : offers ? 'showOffers' : 'bookIt';
  return h(
    'button',
    {class: 'main', id: 'confirm', 'aria-disabled': String(offers ? Boolean(complaintOf(form)) || isAsking(form) : !canSubmit(form)), 'aria-describedby': 'form-answer'},
    t(form.unsure ? 'sendAgain' : key),
  );
}

const timeOf = (form, name, label, edit) =>
  timeField({label: t(label), id: `form-${name}`, value: form.fields[name], change: value => edit(name, value)});

const changeFields = (form, edit) => [
  h('p', {key: 'name'}, named(form.before.name)),
  h('p', {key: 'before', class: 'soft'}, t('timeNow', {span: span(form.before.start, form.before.end)})),
  form.fields.start.at !== form.before.start || form.movable ? timeOf(form, 'start', 'starts', edit) : null,
  timeOf(form, 'end', 'newEnd', edit),
];

// input returns a text field of the form. What is wrong with it stands in the answer.
function input(form, name, label, edit, attributes, {hint, complaint} = {}) {
  const wrong = form.edited[name] && complaintOf(form)?.field === name && name !== 'words'; // words are read with Enter
  return field(
    label,
    `form-${name}`,
    h('input', {
      type: 'text',
      name,
      autocomplete: 'off',
      value: form.fields[name],
      input: event => edit(name, event.currentTarget.value),
      'aria-invalid': wrong ? 'true' : undefined,
      ...attributes,
    }),
    {hint, complaint},
  );
}

const number = (form, name, label, edit, attributes) =>
  input(form, name, label, edit, {type: 'number', min: '1', inputmode: 'numeric', ...attributes});

const kinds = may => [
  ['host', t('wholeHosts')],
  ['instance', t('instanceSized')],
  ...(may('reservations:maintain') ? [['maintenance', t('maintenance')]] : []),
];

const modes = (maintenance, may) => [
  ['now', t('startNow')],
  ['at', t('startAt')],
  ...(maintenance ? [] : [['between', t('startWithin')], ...(may('offers:create') ? [['offers', t('startOffered')]] : [])]),
];

function bookingFields(form, context, edit, take, send) {
  const {may} = context,
    {fields, hosts} = form,
    {kind} = fields,
    maintenance = kind === 'maintenance',
    offers = fields.when === 'offers';
  return [
    maintenance ? null : words(form, edit, send),
    input(form, 'name', t(maintenance ? 'reason' : 'name'), edit, {maxlength: '255'}),
    h(
      'div',
      {class: 'halves'},
      field(t('kind'), 'form-kind', select(kinds(may), kind, value => edit('kind', value), {name: 'kind'})),
      maintenance || offers ? null : number(form, 'quantity', t('quantity'), edit, {max: '100000'}),
    ),
    maintenance ? input(form, 'maintained', t('hosts'), edit, {}, {hint: t('maintainedHint')}) : null,
    kind === 'instance' ? sizes(form, edit) : null,
    h(
      'div',
      {class: 'halves'},
      field(t('begins'), 'form-when', select(modes(maintenance, may), fields.when, value => edit('when', value), {name: 'mode'})),
      offers ? null : input(form, 'lasts', t('duration'), edit, {name: 'duration'}),
    ),
    offers ? ranges(form, edit) : lengths(form, take),
    searches(fields) ? between(form, edit, take) : [fields.when === 'at' ? timeOf(form, 'start', 'starts', edit) : null, timeOf(form, 'end', 'ends', edit)],
    fields.terms && !maintenance ? check('with-terms', t('withTerms', {terms: termsText(fields.terms)}), fields.withTerms, value => edit('withTerms', value)) : null,
    maintenance || hosts.length === 0 ? null : onlyThese(form, edit),
    maintenance ? null : h('div', {class: 'folds'}, which(form, context, send), placeView(form, context, edit, number)),
  ];
}

// lengths says how a length is read, and offers some.
const lengths = ({fields}, take) => [
  h('small', {id: 'length-said', class: 'soft'}, readDuration(fields.lasts).said || t('durationHint')),
  h(
    'div',
    {class: 'choices small'},
    durations.map(one => button(length(one), () => take({what: 'lasts', seconds: one}), {class: 'choice', key: one})),
  ),
];

// ranges are the fields of offers, once their script is there. If it could not be loaded, a link loads the page again; the
// tab keeps the form.
function ranges(form, edit) {
  if (part.rangeFields) return part.rangeFields(form, edit, {number, input});
  return part.missing ? h('a', {href: './', class: 'button', id: 'try-again'}, t('tryAgain')) : null;
}

// termsText names the terms of a reservation for which the form has no fields.
const termsText = ({image, affinity, policy, on_end: end, before_end: warning, resources}) =>
  [
    image && t('termImage', {image}),
    affinity && t(`term_${affinity}`),
    policy && t('termPolicy', {policy}),
    end && t(`term_${end}`),
    warning !== undefined && (warning ? t('termWarning', {length: length(warning)}) : t('termNoWarning')),
    ...Object.entries(resources || {}).map(([name, amount]) => t('termResource', {name, amount})),
  ]
    .filter(Boolean)
    .join(', ');

// words takes a wish in words, with Enter or when the user goes on.
function words(form, edit, send) {
  const {unread} = form.fields,
    complaint = unread ? `${wordsUnread(form.fields)} ${t('wordsExamples')}` : '';
  const attributes = {
    placeholder: t('wordsExample'),
    spellcheck: 'false',
    change: () => send({type: 'form.wish'}),
    keydown: event => {
      if (event.key !== 'Enter' || !form.fields.words.trim()) return;
      event.preventDefault();
      send({type: 'form.wish', enter: true});
    },
  };
  return input(form, 'words', t('inWords'), edit, attributes, {complaint});
}

// between asks for the two times between which the service chooses.
const between = (form, edit, take) => [
  timeOf(form, 'earliest', 'earliest', edit),
  timeOf(form, 'deadline', 'deadline', edit),
  h(
    'div',
    {class: 'choices small', role: 'group', 'aria-label': t('periods')},
    periods(now()).map(({name, from, until}) => button(t(name), () => take({what: 'between', from, until}), {class: 'choice', key: name})),
  ),
  form.fields.when === 'offers' ? null : h('small', {class: 'soft'}, t('deadlineHint')),
];

const sizes = (form, edit) =>
  h(
    'fieldset',
    {class: 'thirds'},
    h('legend', {}, t('sizeOfOne')),
    number(form, 'vcpus', t('vcpus'), edit),
    number(form, 'memory', t('memoryMB'), edit),
    number(form, 'disk', t('diskGB'), edit, {min: '0'}),
  );

// onlyThese leaves only the hosts of the drag.
function onlyThese({fields, hosts}, edit) {
  const names = hosts.slice(0, 4).join(', ') + (hosts.length > 4 ? ' …' : '');
  return check('only-these', t('onlyThese', {hosts: names}), fields.only, value => edit('only', value));
}

// which tells which hosts by a filter.
const which = ({fields, refusal, editor}, {properties}, send) =>
  h(
    'details',
    {class: 'more', open: fields.filter !== '' || Boolean(fields.unadded) || refusal?.field === 'host_properties' || undefined},
    h('summary', {}, t('whichHosts')),
    filterView({
      state: {...editor, properties},
      filter: fields.filter,
      complaint: refusal?.field === 'host_properties' ? refusal.message : '',
      id: 'form-filter',
      send: event => send({type: 'form.filter', event}),
    }),
  );
