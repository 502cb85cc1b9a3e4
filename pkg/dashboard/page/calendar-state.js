// SPDX-License-Identifier: Apache-2.0
// The state of the calendar, and what each event makes of it. Nothing here needs a browser.
import * as data from './calendar-data.js';
import * as windows from './calendar-window.js';
import * as editor from './filter-state.js';
import * as form from './form-state.js';
import {cursorOf, dragged, hourAt, placeAt, pressed} from './gestures.js';
import {claimUnder, entered, marked, pressedKey, selection} from './cursor.js';
import {timeOverFree} from './free.js';
import {HEAD, end} from './places.js';
import {answered, ask} from './questions.js';
import {t} from './texts.js';
import {claimAt, usable} from './model.js';
import {heard as heardLive, lost as lostLive, silent} from './live.js';

const SETTLED = 140, // how long the calendar must stand still until it reads, in milliseconds
  HELD = 500; // how long a finger must rest to book

// initial returns the calendar of an address. `kept` are the choices that the browser keeps, `may` what the user may do
// by the names of the rules, and `draft` a form that was open before a reload.
export function initial({query, kept, may, draft, at}) {
  const view = {...windows.opened(query, at), width: 0, height: 0, scroll: 0, ratio: 1, label: 168, scale: 1};
  return {
    view,
    filter: query.get('filter') || '',
    editor: editor.initial({saved: editor.savedFrom(kept.filters)}),
    propertiesAsked: false,
    group: query.get('group') ?? kept.group ?? '',
    search: query.get('search') || '',
    asTable: kept.table === 'yes',
    only: null,
    goal: query.get('host') || '',
    may,
    data: data.nothing,
    rows: [],
    total: 0,
    live: silent,
    cursor: {row: 0, at, mark: null, markRow: 0},
    focused: false,
    hover: null,
    gesture: null,
    fingers: [],
    form: draft,
    formNumber: 1, // of the next question of a form, so that no form takes an answer to another
    help: false,
    tools: false,
    filterWanted: Boolean(query.get('filter')),
    printing: false,
    shownRows: 100,
    address: '',
  };
}

const over = ['ended', 'canceled', 'failed', 'ending'];

// mayOf tells what the user may do with a claim: open it, change its end, or move it. A calendar that has no id for a
// claim offers nothing.
export const mayOf = (may, at) => claim => {
  const change = Boolean(claim.id) && may[claim.maintenance ? 'reservations:maintain' : 'reservations:update'] && !over.includes(claim.status) && claim.end > at;
  return {open: Boolean(claim.id), change: Boolean(change && claim.mine), move: Boolean(change && claim.mine && claim.status === 'pending')};
};

const termsOf = ({filter, may}) => ({filter, facts: Boolean(may['hosts:list'])});
const windowOf = ({view}, {clock}) => ({start: view.start, end: view.width ? end(view) : view.start + view.span, clock});

// step returns the state after an event, and what is to be done.
export const step = (state, event) => withProperties(stepped(state, event));

function stepped(state, event) {
  if (event.type.startsWith('form.') || (event.type !== 'key' && event.key?.startsWith('form.')))
    return state.form ? withForm(state, form.step(state.form, event.type === 'form.filter' ? {...event, properties: state.editor.properties} : event)) : [state];
  const change = changes[event.type];
  return change ? change(state, event) : [state];
}

// withForm takes the form after an event. What it offers, or what is in its way, is brought into view if it is new.
function withForm(state, [next, ...effects]) {
  const overlay = next && form.overlay(next),
    before = state.form && form.overlay(state.form),
    isNew = JSON.stringify(overlay) !== JSON.stringify(before);
  const formNumber = (next || state.form)?.questions.next ?? state.formNumber,
    folded = foldedTo({...state, form: next, formNumber}, isNew || !next),
    view = isNew && overlay ? showing(folded, overlay) : folded.view;
  const moved = view === state.view ? [] : [settling];
  return [{...folded, view, cursor: next ? folded.cursor : cursorAfter(folded, state.form)}, ...effects, ...moved, draftOf(next)];
}

// cursorAfter returns where the keyboard goes on after a form was sent: at what it has booked.
function cursorAfter({cursor, rows}, before) {
  const {offer, hosts} = before?.sending ? form.overlay(before) : {offer: null},
    row = offer ? rows.findIndex(one => one.host && hosts.includes(one.host.name)) : -1;
  return row < 0 ? cursor : {...cursor, row, at: offer.start};
}

// foldedTo keeps rows that are folded at the hosts that the form is about now. Without a form all rows are there.
function foldedTo(state, changed) {
  if (!state.only || !changed) return state;
  const hosts = hostsOfForm(state);
  if (!state.form) return arrange({...state, only: null});
  return hosts.length > 0 ? arrange({...state, only: hosts}) : state;
}

// hostsOfForm returns the names of the hosts that the form offers, or of those in its way.
export function hostsOfForm(state) {
  const {hosts, blocked} = state.form ? form.overlay(state.form) : {hosts: [], blocked: []};
  return hosts.length > 0 ? hosts : [...new Set(blocked.map(one => one.host))];
}

// showing returns the view with the time of an offer, or of what is in the way, and with its rows: the first one at
// least.
function showing(state, {offer, blocked}) {
  const at = offer || blocked[0];
  if (!at) return state.view;
  const names = new Set(hostsOfForm(state)),
    rows = state.rows.filter(one => one.host && names.has(one.host.name)),
    view = windows.shows(state.view, at.start, at.end);
  return rows.length > 0 ? windows.revealed(windows.revealed(view, rows.at(-1)), rows[0]) : view;
}

// formHears tells an open form that reservations in a time have changed.
const formHears = (state, event) => (state.form ? withForm(state, form.step(state.form, {...event, type: 'form.changed'})) : [state]);

const draftOf = next => ({do: 'draft', text: next ? form.draft(next) : null});
const settling = {do: 'wait', key: 'settled', ms: SETTLED, event: {type: 'settled'}};

// withData takes what the calendar knows after an event, and arranges the rows anew if the hosts have changed.
function withData(state, [next, ...effects]) {
  if (next.hosts === state.data.hosts) return [{...state, data: next}, ...effects];
  const [seen, ...more] = formSees(arrange({...state, data: next}));
  return [seen, ...effects, ...more];
}

// formSees tells the form of a change if the reservation is not any more what it was when the form opened.
function formSees(state) {
  const {form: open, data: {hosts}} = state;
  if (open?.mode !== 'change' || open.sending) return [state];
  const claims = [...hosts.values()].flatMap(host => host.claims.filter(claim => claim.id === open.id)),
    isBefore = ({name, start, end}) => name === open.before.name && start === open.before.start && end === open.before.end;
  if (claims.length === 0 || claims.some(isBefore)) return [state];
  const [{name, start, end}] = claims;
  return withForm(state, form.step(open, {type: 'form.overtaken', name, start, end}));
}

// arrange makes the rows anew; the cursor stays on its host.
function arrange(state) {
  const {rows, height} = data.arranged(state.data.hosts, state),
    name = state.rows[state.cursor.row]?.host?.name,
    same = rows.findIndex(row => row.host?.name === name);
  const next = {
    ...state,
    rows,
    total: height,
    hover: hoverIn(rows, state.hover),
    cursor: {...state.cursor, row: same >= 0 ? same : Math.max(0, Math.min(state.cursor.row, rows.length - 1))},
  };
  return goalReached(next);
}

// hoverIn keeps the facts that are shown if their host is still at its place; their claim may be another one by now.
function hoverIn(rows, hover) {
  if (!hover || hover.free) return hover;
  const row = rows.find(one => one.host?.name === hover.row.host?.name);
  if (!row?.host || row.y !== hover.row.y) return null;
  return {...hover, row, index: rows.indexOf(row), claim: hover.name ? null : claimAt(row.host, hover.at)};
}

// goalReached scrolls to the host that a link names, once.
function goalReached(state) {
  const row = state.goal && state.rows.find(one => one.host?.name === state.goal);
  return row ? {...state, goal: '', view: windows.revealed({...state.view, scroll: 0}, row), cursor: {...state.cursor, row: state.rows.indexOf(row)}} : state;
}

const look = (state, event, force) => withData(state, data.load(state.data, termsOf(state), windowOf(state, event), force));
const show = (state, view) => [{...state, view, hover: null}, settling];

// begin opens a form; a filled one keeps what it has.
function begin(state, from, event) {
  const next = form.opened({...from, filter: state.filter, may: state.may, now: event.at, before: state.form, number: state.formNumber, chance: event.chance}, event.at);
  return withForm({...state, gesture: null, hover: null}, next);
}

// book opens the form for a drawn time and its rows.
function book(state, drawn, event) {
  if (!state.may['reservations:create']) return [state];
  const hosts = drawn ? state.rows.slice(drawn.first, drawn.last + 1).flatMap(row => (row.host ? [row.host] : [])) : [];
  const start = drawn && Math.max(drawn.start, event.at);
  return begin(
    state,
    {
      kind: 'book',
      all: hosts.map(host => host.name),
      hosts: hosts.filter(usable).map(host => host.name),
      start,
      duration: drawn ? Math.max(drawn.end - start, 900) : 0,
    },
    event,
  );
}

const open = (state, claim) => [state, claim?.id ? {do: 'go', path: `/reservation/${claim.id}`} : null];

// release ends a gesture: a drawn selection opens the form, a moved edge the question, and a press without a move opens
// what is under it.
function release(state, event) {
  const {gesture} = state,
    next = {...state, gesture: null};
  if (!gesture || gesture.kind === 'given up') return [next];
  const {found, drawn, kind} = gesture,
    {claim} = found;
  if (!drawn) return press(next, found, event);
  if (kind === 'select') return book(next, drawn, event);
  const about = {id: claim.id, name: claim.name, start: claim.start, end: claim.end, movable: claim.status === 'pending'};
  if (kind === 'end') return begin(next, {kind: 'change', ...about, until: drawn.end}, event);
  return begin(next, {kind: 'move', ...about, from: drawn.start, until: drawn.end}, event);
}

function press(state, found, event) {
  if (found?.claim?.id) return open(state, found.claim);
  if (found?.name) return [{...state, hover: {...hoverOf(state.view, found, event), pinned: true}}];
  const proposed = proposedAt(state, found);
  if (proposed) return proposed.choice ? withForm(state, form.step(state.form, {...event, type: 'form.take', choice: proposed.choice})) : [state];
  const drawn = event.touch ? null : hourAt(state, found, event.at);
  return drawn ? book(state, drawn, event) : [{...state, hover: hoverOf(state.view, found, event)}];
}

// proposedAt returns what the form proposes at a place: a time with room, as the choice that takes it, or its offer,
// which is taken already.
function proposedAt(state, found) {
  if (!state.form || !found?.row.host) return null;
  const {offer, windows} = form.overlay(state.form),
    has = ({start, end}) => start <= found.at && found.at < end;
  if (offer && has(offer) && (offer.hosts.length === 0 || offer.hosts.includes(found.row.host.name))) return {choice: null};
  const window = windows.find(has);
  return window ? {choice: {what: 'start', at: form.startOf(window)}} : null;
}

// hoverOf returns what the facts at the pointer are of: a host, a claim, or the row of the free hosts.
function hoverOf(view, found, {px, py, touch}) {
  const place = {px, py, kept: Boolean(touch)};
  if (found?.row.host) return {...found, ...place};
  const at = timeOverFree(view, place);
  return at === null ? null : {free: true, at, ...place};
}

const changes = {
  opened: (state, event) => {
    const [next, ...effects] = look(state, event),
      [resumed, ...more] = next.form ? withForm(next, form.resumed(next.form)) : [next];
    return [resumed, ...effects, ...more, settling];
  },
  resized: (state, event) => {
    const view = windows.resized(state.view, event);
    return look({...state, view}, event);
  },
  scrolled: (state, {scroll}) => [scroll === state.view.scroll ? state : {...state, view: {...state.view, scroll}, hover: null}],
  panned: (state, {pixels}) => show(state, windows.panned(state.view, pixels)),
  zoomed: (state, {factor, px = null}) => show(state, windows.zoomed(state.view, factor, px)),
  ranged: (state, {name, at}) => show(state, windows.ranged(state.view, name, at)),
  now: (state, {at}) => show(state, windows.toNow(state.view, at)),
  settled: (state, event) => {
    const [next, ...effects] = look(state, event),
      address = windows.addressOf(next);
    const near = state.address === '' || windows.isNear(state.address, address);
    return [{...next, address: near && state.address ? state.address : address}, ...effects, {do: 'address', path: address, replace: near}];
  },
  went: (state, event) => {
    const view = windows.resized({...state.view, ...windows.opened(event.query, event.at)}, state.view),
      filter = event.query.get('filter') || '',
      next = {...state, view, group: event.query.get('group') ?? state.group, search: event.query.get('search') || '', goal: event.query.get('host') || '', address: ''};
    return filter === state.filter ? look(arrange(next), event) : changes.filtered(next, {...event, filter});
  },
  zoned: (state, event) => {
    const next = {...state, view: {...state.view}},
      [after, ...effects] = next.form ? withForm(next, form.step(next.form, {...event, type: 'form.zoned'})) : [next];
    return [after, ...effects, settling];
  },
  grouped: (state, {group}) => [arrange({...state, group}), {do: 'keep', name: 'group', value: group}, settling],
  searched: (state, {text}) => [arrange({...state, search: text, view: {...state.view, scroll: 0}}), settling],
  // folded leaves the rows of the hosts that the form is about, or brings the others back.
  folded: (state, {on}) => {
    const next = arrange({...state, only: on && hostsOfForm(state).length > 0 ? hostsOfForm(state) : null});
    return [next.form ? {...next, view: showing(next, form.overlay(next.form))} : next];
  },
  // filter is an event of the filter's editor.
  filter: (state, {event, ...moment}) => {
    const [next, ...effects] = editor.step(state.editor, event, state.filter),
      change = effects.find(one => one.do === 'change'),
      after = {...state, editor: next},
      others = effects.filter(one => one !== change);
    return change && change.filter !== state.filter ? [...changes.filtered(after, {...moment, filter: change.filter}), ...others] : [after, ...others];
  },
  filtered: (state, event) => {
    const [next, ...effects] = look({...state, filter: event.filter, data: data.forget(state.data)}, event, true);
    return [arrange(next), ...effects, settling];
  },
  tabled: state => [{...state, asTable: !state.asTable, shownRows: 100}, {do: 'keep', name: 'table', value: state.asTable ? 'no' : 'yes'}],
  more: state => [{...state, shownRows: state.shownRows + 200}],
  helped: state => [{...state, help: !state.help}],
  tools: state => [{...state, tools: !state.tools}],
  filterWanted: state => [state.filterWanted ? state : {...state, filterWanted: true}],
  ticked: state => [{...state}],
  printing: (state, {on}) => [{...state, printing: on}],

  // undo takes back what a toast has told, if nobody has changed the reservation since. Each has its own question: one that
  // follows at once does not end it.
  undo: (state, {request, made: {name, start, end, quantity}}) => {
    const provided = {name, start, end, quantity},
      [questions, effect] = ask(state.data.questions, `undo ${state.data.questions.next}`, {...request, provided}, {lasting: false});
    return [{...state, data: {...state.data, questions}}, effect];
  },
  answered: (state, event) => {
    if (event.key.startsWith('undo ')) return undone(state, event);
    if (event.key === 'properties') return propertiesKnown(state, event);
    const taken = data.take(state.data, event);
    if (!taken) return [state];
    const [next, ...effects] = withData(state, taken);
    if (event.error) return [next, ...effects];
    const [after, ...more] = look(next, event); // what is in view may be another time by now
    return [after, ...effects, ...more];
  },
  again: (state, {key = null}) => withData(state, data.retry(state.data, key)),
  collected: (state, event) => withData(state, data.collected(state.data, termsOf(state), windowOf(state, event))),
  changed: (state, event) => {
    const {known} = state.data,
      concerns = !known || (event.end >= known.from && event.start <= known.to);
    const told = toldOf(state, event),
      [next, ...effects] = concerns ? withData(state, data.heard(state.data, event.hosts)) : [state];
    const [after, ...more] = formHears(next, event);
    return [{...after, live: heardLive(after.live, event.clock)}, ...effects, ...more, told];
  },
  hosts: (state, event) => withData({...state, live: heardLive(state.live, event.clock)}, data.heard(state.data, event.hosts)),
  heard: (state, {clock}) => [{...state, live: heardLive(state.live, clock)}],
  gap: (state, event) => {
    const [next, ...effects] = withData({...state, live: heardLive(state.live, event.clock)}, data.heard(state.data, [])),
      [after, ...more] = formHears(next, {...event, start: -Infinity, end: Infinity}); // what was missed may touch any offer
    return [after, ...effects, ...more];
  },
  live: (state, {on, clock}) => [{...state, live: on ? heardLive(state.live, clock) : lostLive(state.live)}],

  booked: (state, event) => book(state, null, event),
  againBooked: (state, event) => begin(state, {kind: 'again', reservation: event.reservation, begins: event.begins, lasts: event.lasts}, event),
  reopened: (state, event) => {
    const draft = form.restored(event.draft);
    if (state.form || !draft) return [state];
    return withForm(state, form.resumed({...draft, questions: {...draft.questions, next: state.formNumber}}));
  },
  maintained: (state, event) => begin(state, {kind: 'maintain', all: [event.host], hosts: [event.host]}, event),

  hovered: (state, event) => {
    if (state.gesture) return [{...state, gesture: {...dragged(state, state.gesture, event, event.at, state.may['reservations:create']), at: {px: event.px, py: event.py}}}];
    if (state.hover?.pinned) return [state];
    const found = placeAt(state, event, mayOf(state.may, event.at));
    const hover = hoverOf(state.view, found, event),
      pointer = hover?.free ? 'help' : cursorOf(found, mayOf(state.may, event.at), state.may['reservations:create'], event.at);
    return [{...state, hover, pointer}];
  },
  left: state => [state.hover && !state.hover.kept && !state.hover.pinned ? {...state, hover: null} : state],
  unpinned: state => [{...state, hover: null}, {do: 'focusPicture'}],
  pressed: (state, event) => {
    const may = mayOf(state.may, event.at),
      found = placeAt(state, event, may);
    return [{...state, hover: null, gesture: pressed(found, event, may)}];
  },
  released: (state, event) => release(state, event),
  givenUp: state => [{...state, gesture: state.gesture && {...state.gesture, kind: 'given up', drawn: null}}],

  touched: (state, event) => [
    {...state, hover: null, fingers: [...state.fingers, {id: event.id, px: event.px, py: event.py, moved: false}]},
    state.fingers.length === 0 ? {do: 'wait', key: 'held', ms: HELD, event: {type: 'held', px: event.px, py: event.py}} : {do: 'forget', key: 'held'},
  ],
  slid: (state, event) => slide(state, event),
  lifted: (state, event) => {
    const finger = state.fingers.find(one => one.id === event.id),
      next = {...state, fingers: state.fingers.filter(one => one.id !== event.id)},
      tapped = finger && !finger.moved && !event.canceled && state.fingers.length === 1;
    const [after, ...effects] = tapped ? press(next, placeAt(state, event, mayOf(state.may, event.at)), {...event, touch: true}) : [next];
    return [after, {do: 'forget', key: 'held'}, ...effects];
  },
  held: (state, event) => {
    const [finger] = state.fingers,
      found = placeAt(state, event, mayOf(state.may, event.at)),
      drawn = hourAt(state, found, event.at);
    if (state.fingers.length !== 1 || finger.moved || !drawn) return [state];
    return book({...state, fingers: [{...finger, moved: true}]}, drawn, event);
  },

  focused: (state, event) => {
    const next = {...state, focused: true, cursor: entered(state, event.at)};
    return [next, {do: 'said'}];
  },
  blurred: state => [{...state, focused: false}],
  key: (state, event) => {
    const {act, ...parts} = pressedKey(state, event),
      next = {...state, ...parts, focused: true, hover: null},
      effects = parts.view && parts.view !== state.view ? [settling] : [];
    const [after, ...more] = act ? acts[act](next, event) : [next];
    return [after, ...effects, ...more, act === '' ? {do: 'said'} : null];
  },
};

const acts = {
  book: (state, event) => book(state, null, event),
  open: state => open(state, claimUnder(state)),
  select: (state, event) => book({...state, cursor: {...state.cursor, mark: null}}, selection(state), event),
  escape: (state, event) => (state.form ? withForm(state, form.step(state.form, {...event, type: 'form.close'})) : [{...state, help: false}]),
  free: state => [state, {do: 'said', what: 'free'}],
  host: state => {
    const row = state.rows[state.cursor.row],
      {view} = state;
    if (!row?.host) return [state];
    const hover = {row, name: true, at: 0, claim: null, px: view.label, py: HEAD + row.y - view.scroll, pinned: true};
    return [{...state, hover}, {do: 'focus', id: 'host-menu'}];
  },
  help: state => [{...state, help: !state.help}],
  search: state => [state, {do: 'focus', id: 'search'}],
};

// slide moves the calendar with one finger and zooms with two; the browser scrolls the rows.
function slide(state, event) {
  const before = state.fingers.find(one => one.id === event.id);
  if (!before) return [state];
  const moved = before.moved || Math.hypot(event.px - before.px, event.py - before.py) > 6;
  if (!moved) return [state];
  const fingers = state.fingers.map(one => (one.id === event.id ? {...one, px: event.px, py: event.py, moved} : one));
  if (fingers.length === 1) {
    const [next, ...effects] = show(state, windows.panned(state.view, before.px - event.px));
    return [{...next, fingers}, ...effects, {do: 'forget', key: 'held'}];
  }
  const apart = list => Math.max(20, Math.abs(list[0].px - list[1].px)),
    [next, ...effects] = show(state, windows.zoomed(state.view, apart(state.fingers) / apart(fingers), (fingers[0].px + fingers[1].px) / 2));
  return [{...next, fingers}, ...effects];
}

// withProperties asks for the properties that a filter can use, once somebody has an editor of one. Without them a filter
// can still be written as a text.
function withProperties([state, ...effects]) {
  if (state.propertiesAsked || !(state.form || state.filterWanted || state.filter || state.data.refused?.field === 'filter')) return [state, ...effects];
  const [questions, effect] = ask(state.data.questions, 'properties', {path: 'v1/properties'});
  return [{...state, propertiesAsked: true, data: {...state.data, questions}}, ...effects, effect];
}

function propertiesKnown(state, event) {
  const taken = answered(state.data.questions, event);
  if (!taken) return [state];
  const next = {...state, data: {...state.data, questions: taken.questions}};
  if (event.error) return [next, ...taken.effects];
  const [known] = editor.step(state.editor, {type: 'loaded', properties: event.answer.properties.filter(one => one.name !== 'id')});
  return [{...next, editor: known}];
}

// undone tells whether a change was taken back. Without an answer nobody knows, and the calendar reads what it is.
function undone(state, event) {
  const taken = answered(state.data.questions, event);
  if (!taken) return [state];
  const {error} = event,
    [next, ...effects] = withData(state, data.heard({...state.data, questions: taken.questions}, []));
  const told = error ? {text: error.passes ? t('undoDoubt') : error.message, kind: 'bad'} : {text: t('undone')};
  return [next, ...effects, {do: 'toast', ...told}];
}

// toldOf returns the message that a reservation of the user has another status, or null.
function toldOf(state, {mine, change, status, id, name}) {
  if (!mine || change !== 'changed' || status === 'pending') return null;
  for (const host of state.data.hosts.values()) {
    const claim = host.claims.find(one => one.id === id);
    if (claim) return claim.status === status ? null : {do: 'told', name, status};
  }
  return null;
}

// drawing returns what the picture draws beside the rows: a selection, a moved edge, an offer, and what is in the way.
export function drawing(state) {
  const overlay = state.form ? form.overlay(state.form) : {offer: null, blocked: [], windows: [], hosts: []},
    {gesture} = state;
  return {
    ...overlay,
    drag: gesture?.kind === 'select' ? gesture.drawn : null,
    stretch: gesture?.drawn && gesture.kind !== 'select' ? {claim: gesture.found.claim, kind: gesture.kind, ...gesture.drawn} : null,
    marked: state.cursor.mark === null ? null : marked(state.cursor),
  };
}
