// SPDX-License-Identifier: Apache-2.0
// The elements of what the service answers to a form, and of what is possible instead.
import {button, h, named} from './view.js';
import {t} from './texts.js';
import {isAsking, trouble} from './form-state.js';
import {alternatives, startOf} from './form-answer.js';
import {complaintOf} from './form-request.js';
import {part} from './offers-part.js';
import {length} from './lengths.js';
import {readable, span, when} from './time.js';

// answer tells what is known of the request, in short.
export function answer(form, take, send) {
  const complaint = complaintOf(form),
    failed = trouble(form),
    late = form.slow ? h('p', {class: 'soft', id: 'late'}, t('noAnswerYet')) : null;
  if (form.sending) return [h('p', {class: 'soft'}, t('sending')), late];
  if (form.unsure) return h('div', {class: 'box bad', id: 'refusal'}, h('strong', {}, t('noAnswer')), h('p', {}, t('unsure')));
  if (form.refusal) return refusal(form, take, send);
  if (complaint) return lacks(complaint, take);
  if (failed) return failure(failed, send);
  if (form.offers) return part.summary(form);
  if (form.offer) return offer(form, send);
  return isAsking(form) ? [h('p', {class: 'soft', id: 'asking'}, t('asking')), late] : null;
}

const lacks = ({message, choice}, take) => [
  h('p', {class: 'soft', id: 'complaint'}, message),
  choice ? h('div', {class: 'choices'}, button(choiceText(choice), () => take(choice), {class: 'choice', id: `take-${choice.what}`})) : null,
];

const failure = (error, send) =>
  h(
    'div',
    {class: 'box bad', id: 'refusal'},
    h('strong', {}, t('noAnswer')),
    h('p', {}, error.message, ' ', t('asksAgain')),
    h(
      'div',
      {class: 'choices'},
      button(t('tryAgain'), () => send({type: 'again', key: 'form.offer'}), {class: 'choice', id: 'try-again'}),
    ),
  );

// folded returns a box with one line, and with what only matters to some behind it. The fields need the room.
const folded = (attributes, line, facts, form, send) =>
  facts.length === 0
    ? h('div', attributes, h('p', {}, line))
    : h(
        'details',
        {...attributes, open: form.unfolded || undefined, toggle: event => send({type: 'form.unfolded', open: event.currentTarget.open})},
        h('summary', {}, h('span', {class: 'line-of'}, line)),
        facts,
      );

function offer(form, send) {
  const {mode, fields, offer: one} = form,
    hosts = one.hosts.length ? [': ', named(one.hosts.join(', '))] : '';
  const facts = [
    mode === 'book' && h('p', {key: 'hosts'}, t(fields.kind === 'instance' ? 'offerInstances' : 'offerHosts', {count: one.quantity, matched: one.matched}), hosts),
    one.delayed && h('p', {key: 'delayed'}, t('delayedByBoot')),
  ].filter(Boolean);
  return folded({class: 'box good', id: 'offer', key: 'offer'}, [h('strong', {}, titleOf(form)), ' ', span(one.start, one.end)], facts, form, send);
}

// titleOf says what an offer is: of a change, how much time it adds or takes, at whichever edge.
function titleOf({mode, before, offer}) {
  const change = mode === 'change' ? Math.round(offer.end - offer.start - (before.end - before.start)) : 0;
  return change === 0 ? t('offer') : t(change > 0 ? 'longer' : 'shorter', {length: length(Math.abs(change))});
}

const SHORT = 100; // letters of a message that three lines have

// refusal tells why there is no offer, and what is possible instead.
function refusal(form, take, send) {
  const {refusal: one} = form,
    message = readable(one.message),
    choices = alternatives(form),
    line = [h('strong', {}, t(one.real ? 'refused' : 'wrong')), ' '];
  return h(
    'div',
    {class: 'box bad', id: 'refusal', key: 'refusal'},
    message.length > SHORT
      ? folded({class: 'why'}, [...line, h('span', {class: 'cut'}, message)], [h('p', {key: 'message'}, message)], form, send)
      : h('p', {}, line, message),
    choices.length
      ? h(
          'div',
          {class: 'choices', role: 'group', 'aria-label': t('instead')},
          choices.map(({id, choice}) => button(choiceText(choice), () => take(choice), {class: 'choice', id, key: id})),
        )
      : null,
  );
}

// choiceText says what a choice does.
const choiceText = choice =>
  ({
    start: () => t('startThen', {start: when(choice.at)}),
    quantity: () => t('takeFewer', {count: choice.quantity}),
    until: () => t('untilThen', {end: when(choice.at)}),
    move: () => t('moveThen', {start: when(choice.at)}),
    elsewhere: () => t('elsewhere', {length: length(choice.seconds)}),
    deadline: () => t('deadlineThen', {end: when(choice.at)}),
  })[choice.what]();

// more lists what is worth knowing beside the answer: what is in the way, when there is room, and which servers must move.
export const more = (form, context, take) =>
  h('div', {class: 'beside'}, inTheWay(form.refusal?.blocked || []), toMove(form.offer?.servers || [], context), windows(form, take));

// toMove lists the servers for which maintenance would wait.
function toMove(servers, {project}) {
  if (servers.length === 0) return null;
  return h(
    'div',
    {class: 'box', id: 'to-move'},
    h('p', {}, t('toMove', {count: servers.length})),
    h(
      'ul',
      {class: 'plain-list'},
      servers.slice(0, 50).map(one => h('li', {key: one.id}, named(one.host), ': ', named(one.name || one.id), ` (${one.status}), `, project(one.project_id))),
    ),
  );
}

const MOST = 6; // windows that the form lists

// windows lists when the same would be free; a click takes the start.
function windows(form, take) {
  const {fields, windows: list} = form;
  if (list.length === 0) return null;
  return h(
    'div',
    {class: 'windows'},
    h('h3', {}, t(fields.when === 'between' ? 'freeThen' : 'alsoFree')),
    h(
      'ul',
      {class: 'choices'},
      list.slice(0, MOST).map(one =>
        h(
          'li',
          {key: one.start},
          button([h('span', {}, span(one.start, one.end)), h('strong', {}, t('countFree', {count: one.free}))], () => take({what: 'start', at: startOf(one)}), {
            class: 'choice',
          }),
        ),
      ),
    ),
    list.length > MOST ? h('p', {class: 'soft'}, t(fields.when === 'between' ? 'moreWindowsDrawn' : 'andMore', {count: list.length - MOST})) : null,
  );
}

function inTheWay(blocked) {
  if (blocked.length === 0) return null;
  return h(
    'details',
    {open: blocked.length <= 4 || undefined},
    h('summary', {}, t('inTheWay', {count: blocked.length})),
    h(
      'ul',
      {class: 'plain-list'},
      blocked.slice(0, 20).map(block =>
        h(
          'li',
          {key: `${block.host} ${block.start}`},
          named(block.host),
          ': ',
          span(block.start, block.end),
          (block.reservations || []).map(one => [' · ', h('a', {href: `#/reservation/${one.id}`}, named(one.name))]),
        ),
      ),
    ),
  );
}
