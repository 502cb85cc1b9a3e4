// SPDX-License-Identifier: Apache-2.0
// The form of a booking or of a change: what is typed, what was asked for it, and what the service answered. A change is
// sent only if the offer for exactly this request is in view. Nothing here needs a browser.
import {again, answered, ask, closeAll, failure, isOpen, none} from './questions.js';
import {bodyOf, complaintOf, roomQuery} from './form-request.js';
import {ending, fieldsFrom, followed, isDefaultName, isFilled, named, timed, unwished, wished} from './form-fields.js';
import {offerOf, refusalOf, startOf, windowsOf} from './form-answer.js';
import {draft, partsOf, restored as partsRestored} from './form-draft.js';
import * as filter from './filter-state.js';
import {part} from './offers-part.js';
import {readWish} from './wish.js';
import {exact} from './timevalue.js';
import {length} from './lengths.js';
import {iso, seconds, span} from './time.js';
import {t} from './texts.js';

export {draft, startOf};

const TYPED = 250, // how long the user must not type until the form asks, in milliseconds
  RENEWED = 1000, // how long events are collected until it asks again
  CLOSED = 'closed form', // what the message is about that brings a form back
  SLOW = 4000, // after how long it says that there is no answer yet
  AGED = 30000, // how long an offer from now on is shown until it asks again; twice that without an answer, and it goes
  ROOM = 5000; // how long events are collected until it asks again when there is room; not all pages ask at the same time

const blank = {
  questions: none,
  offer: null,
  refusal: null,
  unsure: false, // a request was sent and not answered
  doubt: false, // so was one before this
  slow: false,
  unfolded: false, // whether the details of the answer are shown
  aging: false, // an offer from now on is old, and the question for a new one is under way
  roomDue: false,
  windows: [],
  offers: null, // for ranges, once they are asked for
  complete: true, // whether their search has tried everything
  stale: false, // whether something has changed since
  picked: null, // the parts of the request that one of them has
  sending: false,
  over: false, // the reservation was canceled or has ended while a change of it was on its way
  due: false,
  old: false,
  edited: {},
  hosts: [],
  all: [],
  before: null,
  movable: false,
  again: false, // the name is that of a reservation that is booked again
  elsewhere: null, // the time that is added to a reservation, if a booking of its own can have it: {start, seconds}
  focuses: false, // whether the keyboard goes on to the button after a wish
  wish: null, // the fields {before, after} the last wish in words; the next one begins with those before
  key: '',
  properties: null, // of the hosts, once a wish in words needs them
  editor: filter.initial(), // of the filter; the calendar knows the properties for it
  behind: null, // the filled form that comes back after this one
};

// opened returns the form for a drawn time, for a reservation to book again, for maintenance, or for a change of a
// reservation, with the first question. `from.before` is the form that was open: a drag keeps what the user has written
// there, and anything else lays it behind. One that is being sent stays. `from.number` is that of the first question.
export function opened(from, at) {
  const {before = null, number = 1} = from;
  if (before?.sending) return [before];
  const next = from.kind === 'change' || from.kind === 'move' ? changing(from) : booking(from, at);
  const questions = {...none, next: Math.max(number, before?.questions.next || 1)},
    [form, ...effects] = asked({...next, questions}, 0);
  return [form, ...endOf(before), ...effects, {do: 'untoast', about: CLOSED}, {do: 'focusForm'}];
}

// changing returns the form of a change; `from` and `until` are the start and the end that the drag has chosen.
function changing({id, name, start, end, from = start, until, movable = false, before}) {
  return {
    ...blank,
    mode: 'change',
    id,
    before: {name, start, end},
    fields: {start: exact(from), end: exact(until)},
    movable,
    behind: laidBehind(before),
  };
}

function booking(from, at) {
  const merges = from.kind === 'book',
    kept = merges ? [from.before, from.before?.behind].find(one => one?.mode === 'book') : null;
  const form = {
    ...blank,
    ...fieldsFrom(from, kept, at),
    mode: 'book',
    edited: kept?.edited || {},
    again: kept ? kept.again : Boolean(from.reservation) && !isDefaultName(from.reservation.name),
    doubt: Boolean(kept?.doubt || kept?.unsure),
    key: `${at}-${from.chance ?? 0}`,
    behind: merges ? kept?.behind || null : laidBehind(from.before),
  };
  return followed({...form, editor: kept?.editor || editorOf(form)}, at);
}

// editorOf returns the editor of a form's filter, with the condition that is typed and not added yet.
const editorOf = ({fields}) => filter.initial({plain: fields.unadded});

// laidBehind returns what comes back after another form.
const laidBehind = before => (isFilled(before) ? {...blank, ...partsOf({...before, behind: null}), editor: before.editor} : before?.behind || null);

// asked asks for the offer of what the form has, after a while of no typing; whatever was known before is not in view
// any more.
function asked(form, ms) {
  const [questions, ...effects] = closeAll(form.questions, key => key !== 'form.properties');
  const {unsure, offer, refusal, elsewhere, windows, offers, stale, picked, slow, old, aging, roomDue} = blank,
    next = {...form, questions, doubt: form.doubt || form.unsure, unsure, offer, refusal, elsewhere, windows, offers, stale, picked, slow, old, aging, roomDue},
    due = !wantsOffers(next) && !complaintOf(next);
  return [{...next, due}, ...effects, ...endedTimers, due && {do: 'wait', key: 'form.ask', ms, event: {type: 'form.ask'}}];
}

// wantsOffers reports whether the form asks for offers when it is sent, and books none yet.
export const wantsOffers = ({fields, picked}) => fields.when === 'offers' && !picked;

const endedTimers = ['form.ask', 'form.slow', 'form.age', 'form.room'].map(key => ({do: 'forget', key}));

// renewed asks again for the same; what is known stays in view until the answer.
const renewed = form => [{...form, due: true, old: false}, {do: 'wait', key: 'form.ask', ms: RENEWED, event: {type: 'form.ask'}}];

// step returns the form after an event, null when it is closed, and the effects.
export function step(form, event) {
  if (!form) return [null];
  if (form.sending && ['form.edit', 'form.take', 'form.wish', 'form.filter'].includes(event.type)) return [form];
  const change = changes[event.type];
  return change ? change(form, event) : [form];
}

// endOf returns the effects that end all that a form has asked.
function endOf(form) {
  if (!form) return [];
  const [, ...effects] = closeAll(form.questions);
  return [...effects, ...endedTimers];
}

// closed ends a form. The one behind it comes back.
function closed(form) {
  const ended = endOf(form);
  if (!form.behind) return [null, ...ended, {do: 'focusPicture'}];
  const [back, ...effects] = resumed({...form.behind, questions: {...none, next: form.questions.next}});
  return [back, ...ended, ...effects];
}

// closedByUser also offers the way back to what the user has filled in.
function closedByUser(form) {
  const closing = closed(form),
    doubt = form.sending || form.unsure;
  if (!doubt && !isFilled(form)) return closing;
  return [...closing, {do: 'toast', text: t(doubt ? 'formDoubt' : 'formClosed'), about: doubt ? '' : CLOSED, undo: {type: 'reopened', draft: draft(form)}}];
}

// edit takes a field: a text, or the value of a time. What is as before asks nothing.
function edit(form, {field, value, at}) {
  const before = form.fields[field];
  if (value === before) return [form];
  const next = {...form, fields: {...form.fields, [field]: value}};
  if (timed.includes(field) && Object.is(value.at, before.at)) return [next];
  next.edited = {...form.edited, [field]: true};
  if (field === 'name' && (form.offer || form.offers) && !form.unsure) return [next]; // it is not part of what is offered
  if (field === 'words') return [{...next, fields: {...next.fields, unread: ''}}];
  return asked(followed({...next, offer: null}, at, field), TYPED);
}

// filtered takes an event of the filter's editor. What is typed there and not part of the filter yet is a field.
function filtered(form, {event, properties, at}) {
  const {fields} = form,
    [editor, ...effects] = filter.step({...form.editor, properties}, event, fields.filter),
    change = effects.find(one => one.do === 'change');
  const [next, ...asking] = change ? edit({...form, editor}, {field: 'filter', value: change.filter, at}) : [{...form, editor}],
    [last, ...more] = edit(next, {field: 'unadded', value: filter.waiting(editor, next.fields.filter), at});
  return [last, ...asking, ...more];
}

// wish takes a wish in words over into the fields, once it is known which properties hosts have.
function wish(form, {at, enter = false}) {
  const {fields, properties} = form;
  if (!fields.words.trim()) return [form];
  if (!properties && isOpen(form.questions, 'form.properties')) return [{...form, focuses: form.focuses || enter}];
  if (!properties) {
    const [questions, effect] = ask(form.questions, 'form.properties', {path: 'v1/properties'});
    return [{...form, questions, focuses: enter}, effect];
  }
  const found = readWish(fields.words, properties, at);
  if (found.unread) return [{...form, fields: {...fields, unread: found.unread}}];
  const before = unwished(fields, form.wish),
    next = wished(before, found),
    written = Object.keys(next).filter(name => next[name] !== fields[name]),
    edited = {...form.edited, ...Object.fromEntries(written.map(name => [name, true]))};
  const [after, ...effects] = asked(followed({...form, fields: next, edited, offer: null}, at), 0);
  return [{...after, wish: {before, after: after.fields}}, ...effects, ...(enter ? [{do: 'reveal', id: 'form-words'}, {do: 'focus', id: 'confirm'}] : [])];
}

// take takes what the service or the page has proposed.
function take(form, {choice, at}) {
  const {fields, mode} = form;
  if (choice.what === 'elsewhere') return [form, {do: 'bookAgain', id: form.id, begins: choice.start, lasts: choice.seconds}];
  const taken = {
    start: () => (choice.at <= at + 60 ? {when: 'now', by: 'lasts'} : {when: 'at', start: exact(choice.at), by: 'lasts'}),
    quantity: () => ({quantity: String(choice.quantity), only: false}),
    until: () => ({end: exact(choice.at), by: 'end'}),
    move: () => ({start: exact(choice.at), end: exact(choice.at + fields.end.at - fields.start.at)}),
    lasts: () => ({lasts: length(choice.seconds), by: 'lasts'}),
    deadline: () => ({deadline: exact(choice.at)}),
    between: () => ({...(fields.when !== 'offers' && {when: 'between'}), earliest: exact(choice.from), deadline: exact(choice.until)}),
  }[choice.what]();
  const edited = mode === 'book' ? {...form.edited, ...Object.fromEntries(Object.keys(taken).map(name => [name, true]))} : form.edited;
  const asking = asked(followed({...form, offer: null, edited, fields: {...fields, ...taken}}, at), 0);
  return [...asking, ['lasts', 'between'].includes(choice.what) ? null : {do: 'focus', id: 'confirm'}]; // its button goes
}

const requestOf = (form, body) =>
  form.mode === 'change'
    ? {method: 'PATCH', path: `v1/reservations/${form.id}`, body}
    : {method: 'POST', path: wantsOffers(form) ? 'v1/offers' : 'v1/reservations', body};

function question(form) {
  const body = bodyOf(form);
  if (!body) return [{...form, due: false}];
  const [questions, effect] = ask(form.questions, 'form.offer', {...requestOf(form, body), ...(!wantsOffers(form) && {query: {dry_run: true}})});
  return [{...form, due: false, questions}, effect, slowly];
}

const slowly = {do: 'wait', key: 'form.slow', ms: SLOW, event: {type: 'form.slow'}};

// submit sends the request whose offer is in view. Without one it does nothing: the form says what it waits for.
// Offers are asked for by it.
function submit(form) {
  if (wantsOffers(form)) return askOffers(form);
  if (!canSubmit(form)) return [form];
  const [questions, ...ended] = closeAll(form.questions),
    [next, effect] = send({...form, questions, sending: true, due: false, slow: false});
  return [next, ...ended, ...endedTimers, effect, slowly];
}

function askOffers(form) {
  if (isAsking(form)) return [form];
  const [next, ...effects] = asked(form, 0),
    [asking, ...more] = question(next);
  return [asking, ...effects, ...more];
}

// pick books one of the offers, which is the one in view then, or holds it for `hold` seconds.
function pick(form, {offer, hold, at}) {
  if (form.sending || form.unsure || !form.offers?.includes(offer)) return [form];
  const next = {...form, picked: {...offer.picked, ...(hold && {hold})}, refusal: null};
  return submit(named({...next, offer: {...offer, body: bodyOf(next)}}, at));
}

// send sends a booking, or a change of the edges as they were drawn: somebody may have moved them since.
function send(form) {
  const body = exactly(bodyOf(form), form),
    only = form.mode === 'book' ? {headers: {'Idempotency-Key': form.key + digest(body)}} : {provided: moved(form)},
    [questions, effect] = ask(form.questions, 'form.send', {...requestOf(form, body), ...only}, {lasting: false});
  return [{...form, questions}, effect];
}

// moved returns the edges that the user moves, as they were drawn.
const moved = ({before, fields}) =>
  Object.fromEntries(['start', 'end'].filter(edge => fields[edge].at !== before[edge]).map(edge => [edge, iso(before[edge])]));

// exactly returns the body for the very time of the offer. A length between two times could get another one by now.
function exactly(body, {fields, offer}) {
  if (fields.when !== 'between') return body;
  const {end_time: deadline, ...rest} = body;
  return {...rest, start_time: iso(offer.start)};
}

// digest returns a number of a body, so that another body has another Idempotency-Key.
function digest(body) {
  let sum = 0;
  for (const letter of JSON.stringify(body)) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return `-${sum.toString(16)}`;
}

function takeAnswer(form, event) {
  const taken = answered(form.questions, event);
  if (!taken) return [form];
  const {key, error, answer, at} = event,
    {body} = taken.request,
    next = {...form, questions: taken.questions};
  if (key === 'form.properties') return error ? [next, ...taken.effects] : wish({...next, properties: answer.properties}, {at, enter: form.focuses});
  if (key === 'form.longer') return error ? [next, ...taken.effects] : askElsewhere(next, answer, at);
  if (key === 'form.elsewhere') return error ? [next, ...taken.effects] : [{...next, elsewhere: addedTime(next)}];
  if (key === 'form.windows') return [error ? next : {...next, windows: windowsOf(answer)}, ...taken.effects];
  const known = {...next, slow: false},
    quick = {do: 'forget', key: 'form.slow'};
  if (key === 'form.send') return [...(error ? unsent(known, error, body) : sent(known, answer)), quick];
  if (error && taken.effects.length) return [known, ...taken.effects, quick];
  if (answer?.offers) return [...part.compared(known, answer, at), quick];
  const shown = error ? {...known, offer: null, refusal: refusalOf(error, body), elsewhere: null} : offered(known, answer.offer, body, at),
    [after, ...effects] = addedTime(shown) ? askTerms(shown) : withRoom(shown, at),
    [last, ...more] = after.old ? renewed(after) : [after];
  return [last, quick, ...effects, ...aging(last), ...more];
}

// aging lets the form ask again for an offer that begins now: its time moves on.
const aging = ({offer, fields}) => (offer && fields.when === 'now' ? [{do: 'wait', key: 'form.age', ms: AGED, event: {type: 'form.aged'}}] : []);

// aged asks again for an offer that is old. One that had no answer until then is no offer any more.
function aged(form, {at}) {
  if (form.offers) return [{...form, stale: true}];
  if (!form.offer || form.sending || form.unsure) return [form];
  if (form.aging) return asked(form, 0);
  const [next, ...effects] = form.due || isOpen(form.questions, 'form.offer') ? [form] : question(form);
  return [{...next, aging: true}, ...effects, ...aging(form)];
}

// offered shows an offer. The name and the time that follow the start are those of the offer then.
const offered = (form, offer, body, at) => named(ending({...form, refusal: null, aging: false, offer: offerOf(offer, body)}), at);

// withRoom asks when the same would be free.
function withRoom(form, at) {
  const query = roomQuery(form, at);
  if (!query) return [form];
  const [questions, effect] = ask(form.questions, 'form.windows', {path: 'v1/availability', query});
  return [{...form, questions}, effect];
}

// addedTime is the time that a refused change adds at the end; null if it adds none.
function addedTime({mode, refusal, before, fields}) {
  if (mode !== 'change' || !refusal?.real || fields.start.at !== before.start || !(fields.end.at > before.end)) return null;
  return {start: before.end, seconds: fields.end.at - before.end};
}

// askTerms asks for the terms of the reservation that cannot be extended, to see whether the added time can be booked.
function askTerms(form) {
  const [questions, effect] = ask(form.questions, 'form.longer', {path: `v1/reservations/${form.id}`});
  return [{...form, questions}, effect];
}

// askElsewhere asks for an offer of the very booking that the button would begin.
function askElsewhere(form, reservation, at) {
  const added = addedTime(form),
    body = added && bodyOf(booking({kind: 'again', reservation, begins: added.start, lasts: added.seconds}, at));
  if (!body) return [form];
  const [questions, effect] = ask(form.questions, 'form.elsewhere', {method: 'POST', path: 'v1/reservations', body, query: {dry_run: true}});
  return [{...form, questions}, effect];
}

// unsent keeps the form after the service did not take the change. Without an answer nobody knows whether it did; the
// same request with the same key books once. What happened meanwhile may have made the offer old: the form has not heard it.
function unsent(form, error, body) {
  const next = {...form, sending: false},
    {now} = error;
  if (now) return overtaken(next, {name: now.name, start: seconds(now.start), end: seconds(now.end)});
  if (error.unsent) return [...(form.over ? closed(form) : form.unsure ? [next] : renewed(next)), {do: 'toast', text: error.message, kind: 'bad'}];
  const goesOn = form.picked && {do: 'focus', id: 'confirm'}; // the button that was pressed goes
  if (error.passes) return [{...next, unsure: true}, goesOn];
  return [{...next, offer: null, offers: null, picked: null, unsure: false, doubt: form.doubt || form.unsure, refusal: refusalOf(error, body)}, goesOn];
}

// sent closes the form and tells what was made, with the way back.
function sent(form, made) {
  const [next, ...effects] = closed(form),
    time = span(seconds(made.start), seconds(made.end)),
    {before, mode, fields} = form;
  const request =
    mode === 'book'
      ? {method: 'DELETE', path: `v1/reservations/${made.id}`}
      : {...requestOf(form, {...(fields.start.at !== before.start && {start_time: iso(before.start)}), end_time: iso(before.end)})};
  const text = mode === 'change' ? t('timeChanged', {span: time}) : part.heldText?.(made) || t(made.maintenance ? 'planned' : 'booked', {name: made.name, span: time, hosts: namesIn(made.hosts || [])});
  return [next, ...effects, {do: 'toast', text, about: mode === 'change' ? `time of ${form.id}` : '', undo: {type: 'undo', request, made}}, {do: 'send', event: {type: 'hosts', hosts: made.hosts || []}}];
}

const MOST_NAMED = 3;

// namesIn returns the hosts that a reservation has, the first ones by name.
const namesIn = hosts =>
  hosts.length > MOST_NAMED ? t('hostsAndMore', {names: hosts.slice(0, MOST_NAMED).join(', '), count: hosts.length - MOST_NAMED}) : hosts.join(', ');

// noticed asks again after an event that touches the offer, or what is in the way; what is typed stays.
function noticed(form, event) {
  if (form.mode === 'change' && event.id === form.id && gone.includes(event.status)) return form.sending ? [{...form, over: true}] : closed(form);
  if (isOpen(form.questions, 'form.offer')) return [{...form, old: true}];
  const {offer, offers, refusal} = form,
    meets = one => event.start < one.end && event.end > one.start;
  if (form.sending || form.unsure || form.due) return [form];
  if (wantsOffers(form)) return [offers?.some(meets) ? {...form, stale: true} : form];
  if (refusal?.real || (offer && meets(offer))) return renewed(form);
  if (form.roomDue) return [form];
  return [{...form, roomDue: true}, {do: 'wait', key: 'form.room', ms: ROOM * (0.75 + event.chance / 2), event: {type: 'form.room'}}];
}

const gone = ['canceled', 'ended', 'failed']; // what has no time that can change

// overtaken takes what the reservation is by now. An edge that the user has not moved follows it. If it is what was sent
// without an answer, the change is done.
function overtaken(form, {name, start, end}) {
  const {before, fields} = form,
    moved = {start: fields.start.at !== before.start, end: fields.end.at !== before.end};
  if (form.unsure && start === fields.start.at && end === fields.end.at)
    return [...closed(form), {do: 'toast', text: t('timeChanged', {span: span(start, end)})}];
  const next = {
    ...form,
    before: {name, start, end},
    fields: {...fields, ...(!moved.start && {start: exact(start)}), ...(!moved.end && {end: exact(end)})},
  };
  return [...asked(next, 0), {do: 'toast', text: t('changedMeanwhile', {name, span: span(start, end)}), kind: 'bad'}];
}

const changes = {
  'form.edit': edit,
  'form.filter': filtered,
  'form.take': take,
  'form.wish': wish,
  'form.submit': submit,
  'form.pick': pick,
  'form.close': closedByUser,
  'form.ask': form => (form.due ? question(form) : [form]),
  'form.slow': form => [{...form, slow: true}],
  'form.aged': aged,
  'form.room': (form, {at}) => (form.roomDue && !form.sending ? withRoom({...form, roomDue: false}, at) : [form]),
  'form.unfolded': (form, {open}) => [form.unfolded === open ? form : {...form, unfolded: open}],
  'form.changed': noticed,
  'form.overtaken': overtaken,
  'form.zoned': (form, {at}) => [named({...form}, at)],
  answered: takeAnswer,
  again: (form, {key}) => {
    const [questions, ...effects] = again(form.questions, key);
    return [{...form, questions}, ...effects];
  },
};

// isAsking reports whether the form waits for an offer; trouble is the error of a question that is asked again.
export const isAsking = form => form.due || isOpen(form.questions, 'form.offer');
export const trouble = form => failure(form.questions, 'form.offer');

// canSubmit reports whether the offer of exactly what the form has is in view.
export const canSubmit = form => Boolean(form.offer) && !form.sending && !complaintOf(form) && same(bodyOf(form), form.offer.body);

// same reports whether two requests ask for the same. The name, which is the reason of maintenance, changes no offer.
const same = (a, b) => JSON.stringify({...a, name: ''}) === JSON.stringify({...b, name: ''});

// overlay returns what the calendar draws of a form: its offer, what is in the way, and the windows between two dates.
export function overlay({mode, offer, refusal, windows, fields, before}) {
  const drawn = offer && mode === 'change' ? {...offer, ...changedSpan(before, offer)} : offer;
  return {
    offer: drawn && {start: drawn.start, end: drawn.end, hosts: drawn.hosts},
    blocked: refusal?.blocked || [],
    windows: fields.when === 'between' ? windows : [],
    hosts: offer?.hosts || [],
  };
}

// changedSpan is the time that a change adds or takes at one edge, or the whole new time.
function changedSpan(before, offer) {
  if (offer.start !== before.start) return {start: offer.start, end: offer.end};
  return {start: Math.min(before.end, offer.end), end: Math.max(before.end, offer.end)};
}

// resumed asks for a form that a tab has kept, or that was behind another.
export const resumed = form => asked(form, 0);

// restored returns the form of a text that a tab has kept; null for a text that is none.
export function restored(text) {
  const parts = partsRestored(text);
  const whole = one => one && {...blank, ...one, editor: editorOf(one)};
  return parts && {...whole(parts), behind: whole(parts.behind)};
}
