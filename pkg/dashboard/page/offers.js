// SPDX-License-Identifier: Apache-2.0
// Offers for ranges: what the form asks for them, and how it shows them. Nothing here but the views needs a browser.
import {button, h} from './view.js';
import {add, t} from './texts.js';
import {texts} from './texts-offers.js';
import {length, readDuration, readLength} from './lengths.js';
import {iso, now, seconds, span, when, zoneName} from './time.js';

add(texts);

// An empty upper end of a range is its lower one.
const mostOf = ({quantity, quantityTo}) => Number(quantityTo.trim() || quantity);
const longestOf = ({lasts, lastsTo}) => readLength(lastsTo.trim() ? lastsTo : lasts);

// rangeComplaint returns what is wrong with the upper ends of the ranges, as {field, message}; null for nothing.
export function rangeComplaint(fields) {
  const {quantity, quantityTo, lasts, lastsTo} = fields;
  if (quantityTo.trim() && (!/^\d+$/.test(quantityTo.trim()) || mostOf(fields) < Number(quantity))) return {field: 'quantityTo', message: t('mostWrong')};
  if (!lastsTo.trim()) return null;
  const {problem} = readDuration(lastsTo);
  return problem || longestOf(fields) < readLength(lasts) ? {field: 'lastsTo', message: problem || t('longestWrong')} : null;
}

const SOON = 60; // what begins within these seconds begins now, and offers of it are old after them

// wishOf returns the body of the request for offers. `body` is that of a booking without its times.
export function wishOf({name, quantity, kind, host_properties: filter, resources, affinity, together}, fields) {
  const {earliest, deadline} = fields;
  return {
    name,
    quantity: {min: quantity, max: mostOf(fields)},
    duration: {min: readLength(fields.lasts), max: longestOf(fields)},
    windows: [{...(earliest.at > now() + SOON && {start: iso(earliest.at)}), end: iso(deadline.at)}],
    alternatives: [
      {kind, ...(filter && {host_properties: filter}), ...(resources && {resources}), ...(affinity && {affinity}), ...(together && {together})},
    ],
  };
}

// offersOf returns the offers of an answer, in its order. What is `picked` of one is part of the request that books it, and
// `hold` is for how long it can be held: whole minutes until a minute before its start.
const offersOf = ({offers, max_hold: most}, at) =>
  offers.map(({start, end, quantity, kind, hosts, matched, gives_up: less, request}) => ({
    start: seconds(start),
    end: seconds(end),
    quantity,
    kind,
    hosts: hosts || [],
    matched,
    less,
    hold: Math.min(most, Math.floor((seconds(start) - at) / 60 - 1) * 60),
    picked: {start_time: request.start_time, end_time: request.end_time, quantity: request.quantity},
  }));

// compared returns the form with the offers of an answer, and leads the keyboard to them. Those that begin now are soon
// too late.
export function compared(form, answer, at) {
  const offers = offersOf(answer, at);
  return [
    {...form, offers, complete: answer.complete, stale: form.old, old: false},
    {do: 'focus', id: 'offers-head'},
    offers.some(one => one.start < at + SOON) && {do: 'wait', key: 'form.age', ms: SOON * 1000, event: {type: 'form.aged'}},
  ];
}

// lessText tells in words what an offer has less than all that was asked for.
export function lessText({kind, less: {quantity, duration, wait}}) {
  const parts = [
    quantity > 0 && t(kind === 'instance' ? 'fewerInstances' : 'fewerHosts', {count: quantity}),
    duration > 0 && t('shorter', {length: length(duration)}),
    wait > 0 && t('laterBy', {length: length(wait)}),
  ].filter(Boolean);
  return parts.join(', ') || t('offerWhole');
}

// heldText is the message about a reservation that waits for its confirmation; undefined about any other.
export const heldText = ({name, held_until: until}) => until && `${name}: ${t('held', {when: when(seconds(until))})}`;

const quantityText = ({kind, quantity}) => t(kind === 'instance' ? 'countInstances' : 'countHosts', {count: quantity});

// rangeFields are the fields of the ranges, made with those of the form.
export const rangeFields = (form, edit, {number, input}) => [
  h(
    'div',
    {class: 'halves', key: 'quantities'},
    number(form, 'quantity', t('atLeast', {field: t('quantity')}), edit, {max: '100000'}),
    number(form, 'quantityTo', t('atMost', {field: t('quantity')}), edit, {max: '100000', placeholder: t('theSame')}),
  ),
  h(
    'div',
    {class: 'halves', key: 'durations'},
    input(form, 'lasts', t('atLeast', {field: t('duration')}), edit, {name: 'duration'}),
    input(form, 'lastsTo', t('atMost', {field: t('duration')}), edit, {placeholder: t('theSame')}),
  ),
  h('small', {id: 'length-said', class: 'soft', key: 'said'}, readDuration(form.fields.lastsTo || form.fields.lasts).said || t('durationHint')),
  h('p', {class: 'soft small', key: 'hint'}, t('offersHint')),
];

// summary tells how many offers there are, for the answer that screen readers hear.
export const summary = ({offers, stale}) => h('p', {class: stale ? 'box' : 'soft', id: 'offers-said'}, t(stale ? 'offersStale' : 'offersFound', {count: offers.length}));

// offersView lists the offers, each with the buttons that book it and hold it.
export function offersView({offers, complete, sending}, send) {
  const pressed = (one, text, hold) =>
    button(text, () => send({type: 'form.pick', offer: one, hold}), {
      'aria-label': `${text}: ${quantityText(one)}, ${span(one.start, one.end)}, ${lessText(one)}`,
      'aria-disabled': sending ? 'true' : null,
    });
  return h(
    'section',
    {class: 'offers', key: 'offers', 'aria-labelledby': 'offers-head'},
    h('h3', {id: 'offers-head', tabindex: '-1'}, t('offersOf'), ' ', h('span', {class: 'soft'}, zoneName())),
    h(
      'ol',
      {class: 'plain-list'},
      offers.map(one =>
        h(
          'li',
          {key: `${one.start} ${one.end} ${one.quantity}`, class: 'box good'},
          h(
            'div',
            {},
            h('strong', {}, span(one.start, one.end)),
            h('div', {}, quantityText(one), ' · ', length(one.end - one.start)),
            h('div', {class: 'soft'}, lessText(one)),
          ),
          pressed(one, t('bookIt')),
          one.hold > 0 && pressed(one, t('holdIt', {length: length(one.hold)}), one.hold),
        ),
      ),
    ),
    complete ? null : h('p', {class: 'soft'}, t('offersIncomplete')),
  );
}
