// SPDX-License-Identifier: Apache-2.0
// What the page of one reservation knows: the reservation as the service has it, what the user has typed, and what was
// refused. What is typed is kept for each field by itself, with the value that the field had before; a change by others
// changes the reservation and no draft.
import {again, answered, ask, close, isOpen, none} from './questions.js';
import {heard, lost, silent} from './live.js';
import * as filter from './filter-state.js';
import {bodyOf, canChange, doneText, draftOf, fieldIDs, isPart, isUntouched, meant, values} from './reservation-fields.js';
import {isOver} from './reservation-words.js';
import {readable} from './time.js';
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
  group: null, // to which it belongs, with all its parts
  refused: null, // why there is none
  old: false,
  resting: false,
  drafts: {}, // by field: {value, base}
  change: null, // the one under way: {field, before, after, undoes}
  refusal: null, // {field, error} of the last change
  servers: null, // {of, list, error}
  dialog: null, // {servers, provided, changed} while the user is asked whether to cancel what is `provided`
  editor: filter.initial(), // of the filter
  editing: false, // whether the editor is open, for which the properties are read
  feed: null,
  questions: none,
  live: silent,
  clock: 0,
});

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

const groupPath = ({one}) => `v1/groups/${encodeURIComponent(one.lease_id)}`;

// readGroup asks for the group of a reservation, which may have another name or other parts now. One that is canceled has none.
const readGroup = state =>
  state.one.lease_id && state.one.status !== 'canceled' ? question(state, 'group', {path: groupPath(state)}) : [{...state, group: null}];

// concerns reports whether an event is about the reservation or another part of its group.
const concerns = ({id, group}, event) => event.reservation_id === id || Boolean(group?.reservations.some(part => part.id === event.reservation_id));

const rest = (state, ms = SOON) => (state.resting ? [state] : [{...state, resting: true}, later('rest', ms, 'rested')]);

// goOn reads the reservation if it is old. A change that is under way comes first: the answer to a question before it
// would show what was before.
function goOn(state) {
  if (!state.old || isOpen(state.questions, 'one') || isChanging(state)) return [state];
  return both(read(state), one => rest(one, REST));
}

// isChanging reports whether the answer to a change, a cancellation or a confirmation is still to come.
export const isChanging = ({change, questions}) => Boolean(change) || isOpen(questions, 'cancel') || isOpen(questions, 'confirmHold');

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
  changed: (state, {event}) => (concerns(state, event) ? rest({...state, old: true}) : null),
  lost: state => rest({...state, old: true}),
  rested: state => goOn({...state, resting: false}),
  copy: (state, {id}) => [state, {do: 'copy', id}],
  again: (state, {key}) => askAgain(state, key),
  retry: state => (state.refused ? read({...state, refused: null}) : askAgain(state, 'one')),
  answered: take,

  typed: (state, {field, value}) => [typed(state, field, value)],
  drop: (state, {field}) => [{...dropped(state, field), editor: filter.emptied(state.editor)}, {do: 'focus', id: fieldIDs[field]}],
  submit: (state, {field}) => submit(state, field),
  filter: filtered,
  filterWanted: state => (state.editing ? null : question({...state, editing: true}, 'properties', {path: 'v1/properties'})),
  longer: (state, {more}) => (state.one ? change(state, 'end', values.end(state.one) + more) : null),
  until: (state, {end}) => change(state, 'end', end),
  undo,
  confirmHold: state =>
    state.one && !isChanging(state)
      ? question(withoutReading(state), 'confirmHold', {method: 'PATCH', path: path(state), body: {hold: 0}}, {lasting: false})
      : null,

  cancel: state => (isChanging(state) || isPart(state) ? null : question({...state, dialog: null}, 'foresee', cancellation(state), {lasting: false})),
  keep: state => {
    if (!state.dialog || isOpen(state.questions, 'cancel')) return null; // it is closed already, or on its way
    const [questions, ...effects] = close(state.questions, 'foresee');
    return [{...state, questions, dialog: null}, ...effects];
  },
  confirm: state =>
    isChanging(state) || !state.dialog || isOpen(state.questions, 'foresee')
      ? null
      : question(withoutReading(state), 'cancel', {method: 'DELETE', path: path(state), provided: state.dialog.provided}, {lasting: false}),
};

// cancellation asks what a cancellation would do; the parts of a group are canceled together.
const cancellation = state => ({method: 'DELETE', path: isPart(state) ? groupPath(state) : path(state), query: {dry_run: 'true'}});

// serversIn returns the servers of the reservation in an answer to that.
const serversIn = ({id}, answer) => (answer.cancellation || answer.reservations.find(part => part.id === id) || {servers: []}).servers;

function askAgain(state, key) {
  const [questions, ...effects] = again(state.questions, key);
  return [{...state, questions}, ...effects];
}

// withoutReading closes the question for the reservation: its answer may be from before the change that follows.
function withoutReading(state) {
  if (!isOpen(state.questions, 'one')) return state;
  return {...state, questions: close(state.questions, 'one')[0], old: true};
}

// canSubmit reports whether a field has a value that the service does not have.
export function canSubmit(state, field) {
  const draft = state.drafts[field];
  if (!draft || isChanging(state) || !canChange(state, field)) return false;
  if (field === 'host_properties' && filter.waiting(state.editor, draft.value)) return false;
  const value = meant(field, draft.value);
  return value !== null && value !== values[field](state.one);
}

function typed(state, field, value) {
  const base = state.drafts[field]?.base ?? values[field](state.one),
    refusal = state.refusal?.field === field ? null : state.refusal,
    drafts = {...state.drafts, [field]: {value, base}};
  return isUntouched(field, value, state.one) ? {...dropped(state, field), refusal} : {...state, drafts, refusal};
}

// filtered takes an event of the filter's editor.
function filtered(state, {event}) {
  const [editor, ...effects] = filter.step(state.editor, event, draftOf(state, 'host_properties')),
    change = effects.find(one => one.do === 'change'),
    next = {...state, editor};
  return [change ? typed(next, 'host_properties', change.filter) : next];
}

function dropped(state, field) {
  const {[field]: gone, ...drafts} = state.drafts;
  return {...state, drafts};
}

const submit = (state, field) => (canSubmit(state, field) ? change(state, field, meant(field, state.drafts[field].value)) : null);

// change sends a new value of a field.
function change(state, field, after, undoes = false) {
  if (!state.one || isChanging(state)) return null;
  const before = values[field](state.one);
  return question(
    {...withoutReading(state), change: {field, before, after, undoes}, refusal: null},
    'change',
    {method: 'PATCH', path: path(state), body: bodyOf(field, after), provided: {[field]: state.one[field]}},
    {lasting: false},
  );
}

// told is the message after a change of a field. The one before about the same field is old then.
const told = (field, one, undoes = false) => ({do: 'toast', text: undoes ? t('undone') : doneText(field, one), about: `${field} of ${one.id}`});

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
    return [readGroup, readServers, settle, madeAfterAll].reduce(both, foreseeAgain(show(state, answer)));
  },
  change: takeChange,
  cancel: takeCancel,
  confirmHold: (state, {error}) =>
    both(
      [
        {...state, old: true},
        error ? {do: 'toast', text: readable(error.message), kind: 'bad'} : {do: 'focus', id: 'reservation-head'}, // its button goes
      ],
      rest,
    ),
  foresee: (state, {answer, error}) => {
    if (error) return [{...state, dialog: null}, {do: 'toast', text: readable(error.message), kind: 'bad'}];
    if (!state.one || isOver(state.one)) return [state];
    return [{...state, dialog: {provided: askedOf(state.one), changed: Boolean(state.dialog?.changed), servers: answer.cancellation.servers}}];
  },
  properties: (state, {answer, error}) =>
    error ? [state] : [{...state, editor: filter.step(state.editor, {type: 'loaded', properties: answer.properties.filter(one => one.name !== 'id')})[0]}],
  servers: (state, {answer, error, request}) => [{...state, servers: {of: request.of, list: answer && serversIn(state, answer), error}}],
  group: (state, {answer}) => (answer ? readServers({...state, group: answer}) : [state]),
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

// askedOf is what the question before a cancellation shows of a reservation.
const askedOf = ({name, start, end, quantity}) => ({name, start, end, quantity});

// foreseeAgain lets an open question say that the reservation has changed, and asks again what happens to its servers.
function foreseeAgain(state) {
  const {one, dialog} = state;
  if (!dialog || Object.entries(askedOf(one)).every(([name, value]) => value === dialog.provided[name])) return [state];
  return question({...state, dialog: {...dialog, provided: askedOf(one), changed: true}}, 'foresee', cancellation(state), {lasting: false});
}

// readServers asks for the servers of an active reservation, once for each of its versions.
function readServers(state) {
  const {one, group, servers} = state,
    of = `${one.status} ${one.updated_at}`;
  if (one.status !== 'active' || !state.mayCancel(one) || servers?.of === of || (one.lease_id && !group)) return [state];
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

// takeCancel shows at once that the reservation is canceled: the service has said so. One that has changed meanwhile is
// shown as it is, and its user is asked again.
function takeCancel(state, {error}) {
  if (error?.now) return both(overtaken(show({...state, old: true}, error.now), error), rest);
  const next = {...state, dialog: null, old: true};
  if (error) return both([next, {do: 'toast', text: readable(error.message), kind: 'bad'}], rest);
  const effects = [
    {do: 'toast', text: t(state.one.maintenance ? 'maintenanceCanceled' : 'canceled', {name: state.one.name})},
    {do: 'focus', id: 'reservation-head'},
  ];
  return both([{...next, one: {...state.one, status: 'canceled'}, drafts: {}, refusal: null}, ...effects], rest);
}

const overtaken = (state, error) => (state.dialog ? foreseeAgain(state) : [state, {do: 'toast', text: error.message, kind: 'bad'}]);
