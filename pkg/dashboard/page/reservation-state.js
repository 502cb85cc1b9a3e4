// SPDX-License-Identifier: Apache-2.0
// What the page of one reservation knows: the reservation as the service has it, what the user has typed, and what was
// refused. What is typed is kept for each field by itself, with the value that the field had before; a change by others
// changes the reservation and no draft.
import {again, answered, ask, close, isOpen, none} from './questions.js';
import {heard, lost, silent} from './live.js';
import {edited, exact, isUnread} from './timevalue.js';
import {isOver} from './reservation-words.js';
import {readable, whenInZone} from './time.js';
import {t} from './texts.js';

// How long requests wait, in milliseconds: for more events, and after a request.
const SOON = 250,
  REST = 1000;

// nothing returns the state before the event `begin`. `feeds` is true if the service has links to feeds, and `mayCancel`
// tells whether the user may cancel a reservation, and so may ask which servers it has.
export const nothing = ({id, names = {}, feeds = false, mayCancel = () => false}) => ({
  id,
  names, // of projects, by id
  feeds,
  mayCancel,
  one: null, // the reservation
  refused: null, // why there is none
  old: false,
  resting: false,
  drafts: {}, // by field: {value, base}
  change: null, // the one under way: {field, before, after, undoes}
  refusal: null, // {field, error} of the last change
  servers: null, // {of, list, error}
  dialog: null, // {servers} while the user is asked whether to cancel
  feed: null,
  questions: none,
  live: silent,
  clock: 0,
});

// values are the fields that can be changed, as the service has them.
export const values = {name: one => one.name, end: one => Date.parse(one.end) / 1000, quantity: one => one.quantity};

const path = state => `v1/reservations/${encodeURIComponent(state.id)}`;

const both = ([state, ...effects], step) => {
  const [next, ...more] = step(state);
  return [next, ...effects, ...more];
};

const later = (key, ms, type) => ({do: 'wait', key, ms, event: {type}});

function question(state, key, request, options) {
  const [questions, effect] = ask(state.questions, key, request, options);
  return [{...state, questions}, effect];
}

const read = state => question({...state, old: false}, 'one', {path: path(state)});

const rest = (state, ms = SOON) => (state.resting ? [state] : [{...state, resting: true}, later('rest', ms, 'rested')]);

// goOn reads the reservation if it is old. A change that is under way comes first: the answer to a question before it
// would show what was before.
function goOn(state) {
  if (!state.old || state.change || isOpen(state.questions, 'one') || isOpen(state.questions, 'cancel')) return [state];
  return both(read(state), one => rest(one, REST));
}

const isChanging = state => Boolean(state.change) || isOpen(state.questions, 'cancel');

// step returns the state after an event, and the effects.
export function step(before, event) {
  const state = {...before, clock: event.clock ?? before.clock};
  return steps[event.type]?.(state, event) || [before];
}

const tick = state => [state, later('tick', 1000, 'tick')];

const steps = {
  begin: state =>
    both(
      both(read(state), one => (one.feeds ? question(one, 'feed', {path: 'v1/feed'}) : [one])),
      tick,
    ),
  tick,
  live: (state, {on}) => [{...state, live: on ? heard(state.live, state.clock) : lost(state.live)}],
  named: (state, {names}) => [{...state, names}],
  heard: state => [{...state, live: heard(state.live, state.clock)}],
  changed: (state, {event}) => (event.reservation_id === state.id ? rest({...state, old: true}) : null),
  lost: state => rest({...state, old: true}),
  rested: state => goOn({...state, resting: false}),
  copy: (state, {id}) => [state, {do: 'copy', id}],
  again: (state, {key}) => askAgain(state, key),
  retry: state => (state.refused ? read({...state, refused: null}) : askAgain(state, 'one')),
  answered: take,

  typed: (state, {field, value}) => [typed(state, field, value)],
  drop: (state, {field}) => [dropped(state, field), {do: 'focus', id: fieldIDs[field]}],
  submit: (state, {field}) => submit(state, field),
  longer: (state, {more}) => (state.one ? change(state, 'end', values.end(state.one) + more) : null),
  until: (state, {end}) => change(state, 'end', end),
  undo,

  cancel: state => (isChanging(state) ? null : question({...state, dialog: null}, 'foresee', cancellation(state), {lasting: false})),
  keep: state => {
    if (!state.dialog || isOpen(state.questions, 'cancel')) return null; // it is closed already, or on its way
    const [questions, ...effects] = close(state.questions, 'foresee');
    return [{...state, questions, dialog: null}, ...effects];
  },
  confirm: state =>
    isChanging(state) || !state.dialog
      ? null
      : question(withoutReading(state), 'cancel', {method: 'DELETE', path: path(state)}, {lasting: false}),
};

// fieldIDs are the ids of the elements for the fields.
export const fieldIDs = {name: 'rename', end: 'until', quantity: 'quantity'};

const cancellation = state => ({method: 'DELETE', path: path(state), query: {dry_run: 'true'}});

function askAgain(state, key) {
  const [questions, ...effects] = again(state.questions, key);
  return [{...state, questions}, ...effects];
}

// withoutReading closes the question for the reservation: its answer may be from before the change that follows.
function withoutReading(state) {
  if (!isOpen(state.questions, 'one')) return state;
  return {...state, questions: close(state.questions, 'one')[0], old: true};
}

// draftOf returns what a field shows: what was typed, else what the service has.
export function draftOf({one, drafts}, field) {
  if (drafts[field]) return drafts[field].value;
  const value = values[field](one);
  return field === 'end' ? exact(value) : value;
}

// meant returns the value of a draft as the service would have it; NaN or an empty text if it is none.
function meant(field, value) {
  if (field === 'end') return isUnread(value) ? NaN : value.at;
  return field === 'quantity' ? Number(value || NaN) : value;
}

// overtaken reports whether a field was changed elsewhere since the user began to type.
export const overtaken = ({one, drafts}, field) => Boolean(drafts[field]) && drafts[field].base !== values[field](one);

// canSubmit reports whether a field has a value that the service does not have.
export function canSubmit(state, field) {
  const draft = state.drafts[field];
  if (!draft || isChanging(state)) return false;
  const value = meant(field, draft.value);
  return field === 'name' ? value.trim() !== '' && value !== state.one.name : value > 0 && value !== values[field](state.one);
}

function typed(state, field, value) {
  const now = values[field](state.one),
    base = state.drafts[field]?.base ?? now;
  const refusal = state.refusal?.field === field ? null : state.refusal;
  if (meant(field, value) === now && (field !== 'end' || value.text === null)) return {...dropped(state, field), refusal};
  return {...state, drafts: {...state.drafts, [field]: {value, base}}, refusal};
}

function dropped(state, field) {
  const {[field]: gone, ...drafts} = state.drafts;
  return {...state, drafts};
}

const submit = (state, field) => (canSubmit(state, field) ? change(state, field, meant(field, state.drafts[field].value)) : null);

const written = {
  name: name => ({name}),
  end: end => ({end_time: new Date(Math.round(end) * 1000).toISOString().replace('.000Z', 'Z')}),
  quantity: quantity => ({quantity}),
};

// change sends a new value of a field.
function change(state, field, after, undoes = false) {
  if (!state.one || isChanging(state)) return null;
  const before = values[field](state.one);
  return question(
    {...withoutReading(state), change: {field, before, after, undoes}, refusal: null},
    'change',
    {method: 'PATCH', path: path(state), body: written[field](after), provided: {[field]: state.one[field]}},
    {lasting: false},
  );
}

const done = {name: 'renamed', reason: 'reasonChanged', end: 'endChanged', quantity: 'quantityChanged'};

// told is the message after a change of a field. The one before about the same field is old then. The name of maintenance
// is its reason.
const told = (field, one, undoes = false) => ({
  do: 'toast',
  text: t(undoes ? 'undone' : done[one.maintenance && field === 'name' ? 'reason' : field], {end: whenInZone(values.end(one)), quantity: one.quantity}),
  about: `${field} of ${one.id}`,
});

// undo takes a change back, unless another change has followed it.
function undo(state, {field, before, after}) {
  if (!state.one || isOver(state.one) || values[field](state.one) !== after)
    return [state, {do: 'toast', text: t('undoLate'), kind: 'bad'}];
  return change(state, field, before, true);
}

// take takes an answer; a late one changes nothing.
function take(state, event) {
  const known = answered(state.questions, event);
  if (!known) return null;
  const next = {...state, questions: known.questions};
  const [after, ...effects] = event.error && isOpen(known.questions, event.key) ? [next] : takes[event.key](next, event);
  return [after, ...known.effects, ...effects];
}

const takes = {
  one: (state, {answer, error}) => {
    if (error) return [{...state, refused: error, one: null}];
    return both(both(readServers(show(state, answer)), settle), madeAfterAll);
  },
  change: takeChange,
  cancel: takeCancel,
  foresee: (state, {answer, error}) =>
    error
      ? [state, {do: 'toast', text: readable(error.message), kind: 'bad'}]
      : [{...state, dialog: {servers: answer.cancellation.servers}}],
  servers: (state, {answer, error, request}) => [{...state, servers: {of: request.of, list: answer?.cancellation.servers, error}}],
  feed: (state, {answer}) => [{...state, feed: answer?.url || null}],
};

const settle = state => (state.old ? rest(state) : [state]);

// madeAfterAll tells of a change that was made although its answer did not arrive.
function madeAfterAll(state) {
  const {one, refusal} = state;
  if (!refusal?.error.passes || values[refusal.field](one) !== refusal.after) return [state];
  return [
    {...state, refusal: null},
    told(refusal.field, one),
  ];
}

// show shows the reservation as the service has it. A draft that says the same is no draft any more.
function show(state, one) {
  let next = {...state, one, refused: null, dialog: isOver(one) ? null : state.dialog};
  for (const field of Object.keys(state.drafts))
    if (meant(field, state.drafts[field].value) === values[field](one)) next = dropped(next, field);
  return next;
}

// readServers asks for the servers of an active reservation, once for each of its versions.
function readServers(state) {
  const {one, servers} = state,
    of = `${one.status} ${one.updated_at}`;
  if (one.status !== 'active' || !state.mayCancel(one) || servers?.of === of) return [state];
  return question({...state, servers: {...servers, of}}, 'servers', {...cancellation(state), of});
}

function takeChange(state, {answer, error}) {
  const {field, before, after, undoes} = state.change;
  if (error) return both([{...state, change: null, refusal: {field, error, after}, old: true}], one => rest(one));
  let next = {...state, change: null, one: answer, old: true};
  if (meant(field, draftOf(state, field)) === after) next = dropped(next, field);
  else if (next.drafts[field]) next = {...next, drafts: {...next.drafts, [field]: {...next.drafts[field], base: values[field](answer)}}};
  const event = undoes ? null : {type: 'undo', field, before, after: values[field](answer)};
  return both([next, {...told(field, answer, undoes), undo: event}], rest);
}

// takeCancel shows at once that the reservation is canceled: the service has said so.
function takeCancel(state, {error}) {
  const next = {...state, dialog: null, old: true};
  if (error) return both([next, {do: 'toast', text: readable(error.message), kind: 'bad'}], rest);
  const effects = [
    {do: 'toast', text: t(state.one.maintenance ? 'maintenanceCanceled' : 'canceled', {name: state.one.name})},
    {do: 'focus', id: 'reservation-head'},
  ];
  return both([{...next, one: {...state.one, status: 'canceled'}, drafts: {}, refusal: null}, ...effects], rest);
}
