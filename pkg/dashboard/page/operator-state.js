// SPDX-License-Identifier: Apache-2.0
// What the operators' pages know: the answers of the service with their age, what is typed, and the order that waits for
// a confirmation. Each page names its questions as a function of the state; here they are asked, and asked again.
import {again, answered, ask, close, closeAll, failure, isOpen, none} from './questions.js';
import {isAnswer} from './operator-answers.js';
import {pageOf} from './operator-list.js';

// How long answers stay fresh, in milliseconds. A page asks no more often than REST after events, and a hidden tab
// HIDDEN times as seldom as usual. An answer that took long is asked for again only after SLOW times as long, but after
// SELDOM.
const REST = 5000,
  HIDDEN = 20,
  EVERY = 15000,
  SLOW = 20,
  SELDOM = 300000;

// nothing returns the state before the event `begin`. `may` reports what the policy allows the user.
export const nothing = ({page = '', item = '', may = () => false, names = {}}) => ({
  page,
  item, // what the address names on the page, such as a host
  may,
  names, // of projects, by id
  fields: {}, // what is typed or chosen, by page and field
  sent: {}, // the fields of the forms that were sent, by form
  asked: {}, // by question: {of, at, stale, took}
  answers: {}, // by question: {value, at}
  refused: {}, // by question: the error, if asking again at once is no use
  all: {}, // the tables that show all of their rows
  order: null, // what waits for a confirmation, and is then sent
  results: {}, // of orders, by their names
  hidden: false,
  questions: none,
  clock: 0,
  at: 0,
});

const later = {do: 'wait', key: 'tick', ms: 1000, event: {type: 'tick'}};

const both = ([state, ...effects], step) => {
  const [next, ...more] = step(state);
  return [next, ...effects, ...more];
};

// step returns the state after an event, and the effects.
export function step(before, event) {
  const state = {...before, clock: event.clock ?? before.clock, at: event.at ?? before.at};
  return steps[event.type]?.(state, event) || [before];
}

const steps = {
  begin: state => both(read(state), one => [one, later]),
  tick: state => both(read(state), one => [one, later]),
  hidden: (state, {on}) => read({...state, hidden: on}),
  named: (state, {names}) => [{...state, names}],
  went: (state, {page, item}) => (page === state.page ? read({...state, item}) : both(left(state), one => read({...one, page, item}))),
  changed: state => read(allStale(state, ({follows}) => follows)),
  lost: state => read(allStale(state, () => true)),
  reread: state => both(askFailed(state), readNow),
  again: (state, {key}) => askAgain(state, key),
  answered: take,

  edit: (state, {form, field, value}) => read({...state, fields: {...state.fields, [form]: {...state.fields[form], [field]: value}}}),
  submit: (state, {form}) => submit(state, form),
  showAll: (state, {table}) => [{...state, all: {...state.all, [table]: true}}],

  ask: openOrder,
  keep: state => (state.order && !isOpen(state.questions, 'order') ? closeOrder(state) : null),
  confirm: sendOrder,
};

// questionsOf returns what the page asks: by key {request, every, of, follows}. `of` tells questions apart whose
// requests differ only in the time.
export const questionsOf = state => pageOf(state.page)?.questions(state) || {};

const identity = ({of, request}) => of ?? JSON.stringify(request);

// read asks what is not known and what has become old.
function read(state) {
  return Object.entries(questionsOf(state)).reduce((done, [key, wanted]) => both(done, one => readOne(one, key, wanted)), [state]);
}

function readOne(state, key, wanted) {
  const before = state.asked[key],
    other = before?.of !== identity(wanted);
  if (!other && isOpen(state.questions, key)) return [state];
  const age = state.clock - before?.at,
    least = Math.min(SELDOM, SLOW * (before?.took || 0)),
    every = Math.max(least, wanted.every || EVERY) * (state.hidden ? HIDDEN : 1);
  return other || age >= every || (before.stale && !state.hidden && age >= Math.max(least, REST)) ? askOne(state, key, wanted) : [state];
}

// askOne asks one question. The answer to another one of the same key is forgotten.
function askOne(state, key, wanted) {
  const of = identity(wanted),
    before = state.asked[key],
    start = before?.of === of ? state : without(state, key);
  const [questions, effect] = ask(start.questions, key, wanted.request);
  return [{...start, questions, asked: {...start.asked, [key]: {of, at: start.clock, stale: false, took: before?.took || 0}}}, effect];
}

// readNow asks everything that the page shows, except what is under way.
const readNow = state =>
  Object.entries(questionsOf(state)).reduce(
    (done, [key, wanted]) => both(done, one => (isOpen(one.questions, key) ? [one] : askOne(one, key, wanted))),
    [state],
  );

const askFailed = state =>
  Object.keys(questionsOf(state)).reduce((done, key) => both(done, one => askAgain(one, key)), [state]);

function askAgain(state, key) {
  const [questions, ...effects] = again(state.questions, key);
  if (effects.length === 0) return [state];
  return [{...state, questions, asked: {...state.asked, [key]: {...state.asked[key], at: state.clock}}}, ...effects];
}

const omitted = (object, key) => {
  const {[key]: gone, ...rest} = object;
  return rest;
};

const without = (state, key) => ({...state, answers: omitted(state.answers, key), refused: omitted(state.refused, key)});

const allStale = (state, passes) => {
  const wanted = questionsOf(state),
    asked = {...state.asked};
  for (const key of Object.keys(wanted)) if (asked[key] && passes(wanted[key])) asked[key] = {...asked[key], stale: true};
  return {...state, asked};
};

// left ends what the page was asking. Its answers stay, and are read again when the user comes back.
function left(state) {
  const open = Object.keys(questionsOf(state)).filter(key => isOpen(state.questions, key)),
    [questions, ...effects] = closeAll(state.questions, key => open.includes(key));
  const asked = open.reduce(omitted, state.asked);
  return both([{...state, questions, asked}, ...effects], one => (one.order && !isOpen(one.questions, 'order') ? closeOrder(one) : [one]));
}

// submit sends a form: its questions depend on the fields that were sent. The same form once more asks again.
function submit(state, form) {
  const next = {...state, sent: {...state.sent, [form]: state.fields[form] || {}}};
  return readNow(allStale(next, () => true));
}

// take takes an answer; a late one changes nothing.
function take(state, event) {
  const known = answered(state.questions, event);
  if (!known) return null;
  const next = {...state, questions: known.questions},
    {key, error} = event;
  if (key === 'order') return takeOrder(next, event);
  if (key === 'trial') return [{...next, order: {...next.order, trial: error ? {error} : {outcome: event.answer.outcome}}}];
  if (error && isOpen(known.questions, key)) return [next, ...known.effects];
  if (!error) return [taken(next, key, event.answer)];
  const refused = {...next.refused, [key]: error};
  return [{...next, refused, answers: isAnswer(error) ? omitted(next.answers, key) : next.answers}];
}

// taken keeps an answer with its time, and how long it took.
function taken(state, key, value) {
  const asked = {...state.asked, [key]: {...state.asked[key], took: state.clock - state.asked[key].at}};
  return {...state, asked, answers: {...state.answers, [key]: {value, at: state.clock}}, refused: omitted(state.refused, key)};
}

// openOrder asks for a confirmation. An order is data: what it is called, the request, and which fields the user may
// fill in; with `trial` the service is asked first what it would do.
function openOrder(state, {order}) {
  const next = {...state, order: {...order, trial: null, error: null}, fields: omitted(state.fields, 'order')};
  if (!order.trial) return [next];
  const [questions, effect] = ask(next.questions, 'trial', {...order.request, query: {dry_run: 'true'}}, {lasting: false});
  return [{...next, questions}, effect];
}

function closeOrder(state) {
  const [questions, ...effects] = close(state.questions, 'trial');
  return [{...state, questions, order: null}, ...effects];
}

function sendOrder(state) {
  const {order} = state;
  if (!order || isOpen(state.questions, 'order')) return null;
  const typed = Object.fromEntries((order.takes || []).map(name => [name, state.fields.order?.[name]?.trim()]).filter(([, text]) => text));
  const [questions, effect] = ask(state.questions, 'order', {...order.request, body: {...order.request.body, ...typed}}, {lasting: false});
  return [{...state, questions, order: {...order, error: null}}, effect];
}

// takeOrder tells that an order was carried out, and reads what it has changed.
function takeOrder(state, {answer, error}) {
  if (error) return [{...state, order: {...state.order, error}}];
  const {said, result} = state.order;
  const next = {...state, results: result ? {...state.results, [result]: {value: answer, at: state.clock}} : state.results};
  return both(both(closeOrder(next), anew), one => [one, {do: 'toast', text: said}]);
}

// anew asks all questions again. The answers to those under way may be from before the order.
function anew(state) {
  const open = Object.keys(questionsOf(state)),
    [questions, ...effects] = closeAll(state.questions, key => open.includes(key));
  return both([{...state, questions}, ...effects], readNow);
}

// freshness returns how old what the page shows is, in milliseconds: the age of its oldest answer, or null.
export function freshness(state) {
  const times = Object.keys(questionsOf(state)).map(key => state.answers[key]?.at).filter(at => at !== undefined);
  return times.length ? Math.max(0, state.clock - Math.min(...times)) : null;
}

// troubleOf returns the first error of the page with the milliseconds to the next attempt, or null.
export function troubleOf(state) {
  for (const [key, wanted] of Object.entries(questionsOf(state))) {
    const failed = failure(state.questions, key),
      refused = state.refused[key];
    if (failed) return {error: failed, wait: state.questions.open[key].until - state.clock};
    if (refused && !isAnswer(refused)) return {error: refused, wait: isOpen(state.questions, key) ? 0 : state.asked[key].at + (wanted.every || EVERY) - state.clock};
  }
  return null;
}
