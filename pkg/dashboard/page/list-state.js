// SPDX-License-Identifier: Apache-2.0
// What the list of reservations knows: the rows that were read, the terms of the list, and what events made old. At most
// one request for rows is under way, and rows that changed are read again by their ids.
import {again, answered, ask, close, isOpen, none} from './questions.js';
import {columns, found, foundAgain} from './list-order.js';
import {heard, lost, silent} from './live.js';

// SHOWN rows are shown at first, and more of them with each press, until there are MOST_SHOWN.
export const SHOWN = 100,
  MOST_SHOWN = 500;
const FIRST_PAGE = 100, // is soon there
  PAGE = 1000,
  MOST_READ = 5000, // rows, until the user asks for more
  MOST_NAMED = 100, // ids in one request
  MANY = 300; // more old rows than these are read with all others

// How long requests wait, in milliseconds: for more events; after a request; and after all rows were read, for each page
// of them, before all are read again. What the project holds is read again at most as often as LIMITS says.
const SOON = 250,
  REST = 1000,
  REST_OF_PAGE = 2000,
  LIMITS = 5000,
  MARKED = 10000; // an event may come a little later than what it tells of

const current = 'waiting,pending,starting,active,ending',
  everyStatus = `${current},ended,canceled,failed`,
  DAYS = {month: 30, year: 365};

// pasts are the choices of how much of the past the list has.
export const pasts = ['none', 'month', 'year', 'all'];

// nothing returns the state before the event `begin`. `everything` is true for the reservations of all projects, and
// `limited` if the user has a project, which has limits.
export function nothing({everything = false, past = 'none', search = '', by = 'start', down = false, limited = true, names = {}}) {
  return {
    terms: {everything, past: pasts.includes(past) ? past : 'none'},
    search,
    sort: {by: columns.includes(by) ? by : 'start', down},
    shown: SHOWN,
    rows: new Map(), // by id: {one, words}
    found: [], // those that the search finds, sorted
    more: null, // the marker after which there are more than were read
    load: null, // the reading of all rows, while it is under way
    refused: null,
    old: new Set(), // ids
    allOld: false,
    markers: [], // {id, until}: a reservation after which a page began, and has moved since, hides those between
    notBefore: 0, // all rows are not read again before this time of the page's clock
    resting: false,
    limits: {limited, value: null, waiting: false},
    questions: none,
    names, // of projects, by id
    live: silent,
    clock: 0,
    at: 0,
  };
}

// both returns the state after further steps, with the effects of all.
const both = ([state, ...effects], ...steps) =>
  steps.reduce(
    ([before, ...made], step) => {
      const [next, ...more] = step(before);
      return [next, ...made, ...more];
    },
    [state, ...effects],
  );

const later = (key, ms, type) => ({do: 'wait', key, ms, event: {type}});

const tick = state => [state, later('tick', 1000, 'tick')];

// query returns the terms of the list as the API has them. The beginning of the past stands still while all rows are read.
function query({everything, past}, from) {
  return {
    all_projects: everything ? 'true' : '',
    status: past === 'none' ? current : everyStatus,
    start: past in DAYS ? new Date((from - DAYS[past] * 86400) * 1000).toISOString().slice(0, 19) + 'Z' : '',
  };
}

// read begins to read all rows. Those that are shown stay until all are there; `anew` shows each page at once, and
// `after` goes on after a marker.
function read(state, {anew = state.rows.size === 0, after = null, limit = anew ? FIRST_PAGE : PAGE}) {
  const load = {
    rows: after ? new Map(state.rows) : new Map(),
    until: after ? state.rows.size + MOST_READ : Math.max(MOST_READ, state.rows.size),
    anew,
    from: state.at,
    pages: 0,
    again: false,
  };
  return readPage({...state, load, old: new Set(), allOld: false, refused: null}, after, limit);
}

function readPage(state, marker, limit) {
  const markers = marker
    ? [...state.markers.filter(({until}) => until > state.clock), {id: marker, until: state.clock + MARKED}]
    : state.markers;
  const request = {path: 'v1/reservations', query: {...query(state.terms, state.load.from), limit, marker: marker || ''}, marker};
  const [questions, effect] = ask(state.questions, 'rows', request);
  return [{...state, questions, markers}, effect];
}

// readOld reads rows by their ids.
function readOld(state) {
  const ids = [...state.old].slice(0, MOST_NAMED),
    request = {path: 'v1/reservations', query: {...query(state.terms, state.at), id: ids.join(','), limit: MOST_NAMED}, ids};
  const [questions, effect] = ask(state.questions, 'rows', request);
  return [{...state, questions, old: new Set([...state.old].slice(MOST_NAMED))}, effect];
}

function readLimits(state) {
  if (!state.limits.limited) return [state];
  const [questions, effect] = ask(state.questions, 'limits', {path: 'v1/limits'});
  return [{...state, questions}, effect];
}

// step returns the state after an event, and the effects.
export function step(before, event) {
  const state = {...before, clock: event.clock, at: event.at};
  const next = steps[event.type]?.(state, event);
  return next || [before];
}

const steps = {
  begin: state => both(read(state, {}), readLimits, tick),
  tick,
  live: (state, {on}) => [{...state, live: on ? heard(state.live, state.clock) : lost(state.live)}],
  heard: state => [{...state, live: heard(state.live, state.clock)}],
  named: (state, {names}) => [{...state, names}],
  changed: noteChange,
  // What was read before may be old. A reading that is under way begins again with its next page.
  lost: state => (state.load ? [{...state, load: {...state.load, again: true}}] : rest({...state, allOld: true}, SOON)),
  rested: state => goOn({...state, resting: false}),
  limits: state =>
    isOpen(state.questions, 'rows')
      ? [state, later('limits rest', REST, 'limits')]
      : readLimits({...state, limits: {...state.limits, waiting: false}}),
  answered: take,
  again: (state, {key}) => askAgain(state, key),
  retry: state => [
    ...both(
      [state],
      one => askAgain(one, 'rows'),
      one => (one.refused ? read(one, {}) : [one]),
    ),
    focus,
  ],
  choose: (state, {terms}) => address(anew({...state, terms: {...state.terms, ...terms}})),
  search: (state, {text}) => address([arranged({...state, search: text, shown: SHOWN})]),
  sort: (state, {by}) => address([arranged({...state, sort: {by, down: state.sort.by === by && !state.sort.down}, shown: SHOWN})]),
  more: showMore,
  readOn: state =>
    state.more && !isOpen(state.questions, 'rows') ? [...read(state, {anew: true, after: state.more, limit: PAGE}), focus] : [state],
};

// focus moves the focus to the number of rows when the button that had it goes.
const focus = {do: 'focus', id: 'count'};

function showMore(state) {
  const shown = Math.min(MOST_SHOWN, state.shown + SHOWN),
    last = shown >= Math.min(MOST_SHOWN, state.found.length);
  return [{...state, shown}, ...(last ? [focus] : [])];
}

function askAgain(state, key) {
  const [questions, ...effects] = again(state.questions, key);
  return [{...state, questions}, ...effects];
}

// anew forgets the rows and reads those of other terms.
function anew(state) {
  const [questions, ...effects] = close(state.questions, 'rows');
  return both([arranged({...state, questions, rows: new Map(), more: null, shown: SHOWN}), ...effects], one => read(one, {anew: true}));
}

// address lets the address of the page name the terms.
function address([state, ...effects]) {
  const {terms, search, sort} = state;
  return [
    state,
    ...effects,
    {do: 'address', query: {all: terms.everything ? '1' : '', past: terms.past, search, by: sort.by, down: sort.down ? '1' : ''}},
  ];
}

const arranged = state => ({...state, found: found(state)});

// noteChange notes a row that an event made old. Others' rows matter only in the list of all projects.
function noteChange(state, {event: {reservation_id: id, mine}}) {
  if (!id || !(mine || state.terms.everything || state.rows.has(id))) return [state];
  const old = new Set(state.old).add(id),
    many = old.size > MANY || state.markers.some(one => one.id === id && one.until > state.clock);
  return both([{...state, old: many ? new Set() : old, allOld: state.allOld || many}], one => rest(one, SOON), limitsLater);
}

function limitsLater(state) {
  if (state.limits.waiting || !state.limits.limited) return [state];
  return [{...state, limits: {...state.limits, waiting: true}}, later('limits rest', LIMITS, 'limits')];
}

// rest lets some time pass before the next request, and collects events meanwhile.
const rest = (state, ms) => (state.resting ? [state] : [{...state, resting: true}, later('rest', ms, 'rested')]);

// goOn asks for what is old, if nothing else is under way.
function goOn(state) {
  if (isOpen(state.questions, 'rows')) return [state];
  if (state.allOld && state.clock >= state.notBefore) return read(state, {});
  if (state.old.size > 0) return both(readOld(state), one => rest(one, REST));
  return state.allOld ? rest(state, state.notBefore - state.clock) : [state];
}

// take takes an answer; a late one changes nothing.
function take(state, event) {
  const known = answered(state.questions, event);
  if (!known) return null;
  const next = {...state, questions: known.questions},
    {key, error, answer} = event;
  if (key === 'limits') return [{...next, limits: {...next.limits, value: answer || next.limits.value}}, ...known.effects];
  if (error) return isOpen(known.questions, key) ? [next, ...known.effects] : refuse(next, known.request, error);
  return known.request.ids ? takeOld(next, known.request.ids, answer) : takePage(next, answer);
}

// refuse shows why there are no rows. A marker that the service does not know any more is no reason: all are read again.
function refuse(state, {marker}, error) {
  if (marker && error.field === 'marker') return rest({...state, load: null, allOld: true}, REST);
  return [{...state, load: null, refused: error}];
}

const row = one => ({one, words: [one.name, one.status, one.kind, one.user_id, ...one.hosts].join('\n').toLowerCase()});

const added = (rows, list) => {
  const next = new Map(rows);
  for (const one of list) next.set(one.id, row(one));
  return next;
};

function takeOld(state, ids, answer) {
  const rows = added(state.rows, answer.reservations),
    there = new Set(answer.reservations.map(one => one.id));
  for (const id of ids) if (!there.has(id)) rows.delete(id);
  const next = {...state, rows};
  return settle({...next, found: foundAgain(next, new Set([...ids, ...there]))});
}

// takePage takes a page of all rows, and asks for the next one.
function takePage(state, {reservations, next}) {
  const load = {...state.load, rows: added(state.load.rows, reservations), pages: state.load.pages + 1};
  const whole = !next || load.rows.size >= load.until;
  if (load.anew || (whole && !load.again)) state = arranged({...state, rows: load.rows, more: null});
  if (load.again) return read(state, {anew: load.anew, limit: PAGE});
  if (!whole) return readPage({...state, load}, next, PAGE);
  return settle({...state, load: null, more: next || null, notBefore: state.clock + REST_OF_PAGE * load.pages});
}

// settle lets time pass before what has become old meanwhile is read.
const settle = state => (state.old.size > 0 || state.allOld ? rest(state, SOON) : [state]);
