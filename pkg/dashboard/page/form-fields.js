// SPDX-License-Identifier: Apache-2.0
// The fields of a booking: what they have at first, what of them a new drag keeps, and which follow others until the user
// writes them.
import {joined} from './filter-language.js';
import {fieldsOfPlace} from './form-place.js';
import {exact} from './timevalue.js';
import {DAY, HOUR, MINUTE, length, readLength} from './lengths.js';
import {seconds, whenInZone} from './time.js';
import {t} from './texts.js';

export const timed = ['start', 'end', 'earliest', 'deadline']; // the fields that are times

// searches reports whether the service chooses the start, between two times.
export const searches = ({when}) => when === 'between' || when === 'offers';

const nextHour = at => Math.ceil((at + 1) / HOUR) * HOUR;

// fieldsFrom returns the fields and the hosts of a booking that a drag, a button or a link opens. `kept` is an open form,
// of which stays what the user has written.
export function fieldsFrom(from, kept, at) {
  const drawn = Boolean(from.duration),
    start = from.start > at + 60 ? from.start : 0,
    earliest = nextHour(at),
    until = Math.round((from.start || at) + (from.duration || 2 * HOUR)); // of a drag a time of the clock, else an hour from now
  const first = {
    name: '',
    kind: 'host',
    quantity: String(from.hosts?.length || 1),
    quantityTo: '', // of offers, which are for ranges
    lastsTo: '',
    when: start ? 'at' : 'now',
    start: exact(start || earliest + HOUR),
    earliest: exact(earliest),
    deadline: exact(earliest + 7 * DAY),
    lasts: length(from.duration || 2 * HOUR),
    end: exact(until),
    by: drawn && !start && until % MINUTE === 0 ? 'end' : 'lasts', // which of the end and the length the user set last
    only: (from.hosts?.length || 0) > 0,
    maintained: (from.all || []).join(' '),
    vcpus: '4',
    memory: '8192',
    disk: '20',
    filter: from.filter || '',
    ...fieldsOfPlace(),
    unadded: '', // a condition that is typed and not part of the filter yet
    words: '', // a wish in words that is not taken over yet
    unread: '', // what of it is not understood
    terms: null, // of a reservation that is booked again, those without fields
    withTerms: false,
  };
  const hosts = {hosts: from.hosts || [], all: from.all || []};
  if (kept && !drawn) return {fields: kept.fields, hosts: kept.hosts, all: kept.all};
  if (kept) return {fields: {...first, ...writtenOf(kept)}, ...hosts};
  if (from.reservation) return {fields: {...first, ...termsOf(from.reservation), ...timeOf(from, at)}, ...hosts};
  return {fields: from.kind === 'maintain' ? {...first, kind: 'maintenance'} : first, ...hosts};
}

const ofDrag = ['when', 'start', 'end', 'by', 'lasts', 'only', 'quantity', 'maintained'];

// writtenOf returns what the user has written into a form, without what a drag sets. The quantity of instances is not
// that of the hosts of the drag.
const writtenOf = ({fields, edited}) =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([name]) => edited[name] && (!ofDrag.includes(name) || (name === 'quantity' && fields.kind === 'instance')),
    ),
  );

// termsOf are the terms of a reservation, to book the same again.
const termsOf = one => ({
  name: one.name,
  kind: one.maintenance ? 'maintenance' : one.kind === 'instance' ? 'instance' : 'host',
  quantity: String(one.quantity),
  lasts: length(seconds(one.end) - seconds(one.start)),
  maintained: one.maintenance ? one.hosts.join(' ') : '',
  filter: one.host_properties ? JSON.stringify(one.host_properties) : '',
  ...(one.resources && {
    vcpus: String(one.resources.vcpus || 0),
    memory: String(one.resources.memory_mb || 0),
    disk: String(one.resources.disk_gb || 0),
  }),
  ...fieldsOfPlace(one.together),
  terms: otherTerms(one),
  withTerms: true,
});

// otherTerms are those for which the form has no fields; null if there are none.
function otherTerms({maintenance, image, affinity, policy, on_end: end, before_end: warning, resources}) {
  if (maintenance) return null;
  const {custom} = resources || {};
  const terms = {
    ...(image && {image}),
    ...(affinity && affinity !== 'none' && {affinity}),
    ...(policy && {policy}),
    ...(end && {on_end: end}),
    ...(warning !== undefined && {before_end: warning}),
    ...(custom && Object.keys(custom).length > 0 && {resources: custom}),
  };
  return Object.keys(terms).length > 0 ? terms : null;
}

// timeOf is the time that a link wants instead of now.
const timeOf = ({begins, lasts}, at) => ({
  ...(begins > at + 60 && {when: 'at', start: exact(begins)}),
  ...(lasts > 0 && {lasts: length(lasts)}),
});

// followed returns a booking after one of its fields has changed, with the others that follow it.
export function followed(form, at, changed = '') {
  if (form.mode !== 'book') return form;
  const fields = withPresent(form, at, changed);
  return named({...form, fields: withEnd(withDeadline(fields, form.edited), at, changed)}, at);
}

// withPresent moves a start that the user has not written out of the past when they turn to it, and gives maintenance,
// which has a fixed start, the earliest one.
function withPresent({fields, edited}, at, changed) {
  const next = name => (edited[name] || fields[name].at > at ? fields[name] : exact(nextHour(at)));
  if (fields.kind === 'maintenance' && searches(fields)) return {...fields, when: 'at', start: fields.earliest};
  return changed === 'when' ? {...fields, start: next('start'), earliest: next('earliest')} : fields;
}

// withDeadline leaves room for the length until the user writes a deadline.
function withDeadline(fields, edited) {
  const lasts = (fields.when === 'offers' && readLength(fields.lastsTo)) || readLength(fields.lasts);
  if (edited.deadline || !(lasts > 0) || Number.isNaN(fields.earliest.at)) return fields;
  const at = fields.earliest.at + Math.max(7 * DAY, Math.ceil((2 * lasts) / DAY) * DAY);
  return at === fields.deadline.at ? fields : {...fields, deadline: exact(at)};
}

// withEnd lets the end follow the start and the length, or the length follow the end, whichever was written before.
function withEnd(fields, at, changed) {
  const start = fields.when === 'at' ? fields.start.at : Math.round(at),
    by = changed === 'end' ? 'end' : ['lasts', 'start', 'when'].includes(changed) ? 'lasts' : fields.by;
  if (by === 'end') {
    const lasts = fields.end.at > start ? length(fields.end.at - start) : fields.lasts;
    return {...fields, by, lasts};
  }
  const lasts = readLength(fields.lasts),
    until = lasts > 0 ? start + lasts : NaN;
  return {...fields, by, end: Object.is(until, fields.end.at) ? fields.end : exact(until)};
}

// isDefaultName reports whether a name is one that named gives: its last word, or the one before the zone, is a time.
export function isDefaultName(name) {
  const [before, after] = t('defaultName', {start: '\0'}).split('\0');
  if (!name.startsWith(before) || !name.endsWith(after)) return false;
  return /\d{1,2}:\d\d( \S+)?$/.test(name.slice(before.length, name.length - after.length));
}

// named gives a booking the name of its start until the user writes one. Maintenance has a reason, which only the user
// knows. The name of a request that may have been sent stays.
export function named(form, at) {
  if (form.mode !== 'book' || form.edited.name || form.again || form.sending || form.unsure) return form;
  const {fields, offer} = form,
    start = offer ? offer.start : {now: at, at: fields.start.at, between: fields.earliest.at, offers: fields.earliest.at}[fields.when],
    name = fields.kind === 'maintenance' ? '' : t('defaultName', {start: whenInZone(Number.isNaN(start) ? at : start)});
  return name === fields.name ? form : {...form, fields: {...fields, name}};
}

// ending returns a booking after an answer: until when it lasts is known by the offer.
export function ending(form) {
  const {fields, offer, mode} = form;
  if (mode !== 'book' || !offer || fields.when !== 'now') return form;
  return {...form, fields: fields.by === 'end' ? {...fields, lasts: length(offer.end - offer.start)} : {...fields, end: exact(offer.end)}};
}

// isFilled reports whether a form has what its user would miss.
export const isFilled = form => form?.mode === 'book' && Object.keys(form.edited).length > 0;

// wished returns the fields after a wish in words, as wish.js reads it.
export function wished(fields, {quantity, lasts, conditions, from, until, start, end}) {
  const chooses = Boolean(quantity) || conditions.length > 0;
  return {
    ...fields,
    words: '',
    unread: '',
    ...(quantity && {quantity}),
    ...(lasts && {lasts, by: 'lasts'}),
    ...(chooses && {only: false, filter: conditions.reduce(joined, fields.filter)}),
    ...(from && {when: fields.when === 'offers' ? 'offers' : 'between', earliest: exact(from), deadline: exact(until), by: 'lasts'}),
    ...(start && {when: 'at', start: exact(start), by: 'lasts'}),
    ...(end && {end: exact(end), by: 'end'}),
  };
}

const ofWish = [['quantity'], ['only'], ['filter'], ['when', 'start', 'earliest', 'deadline'], ['lasts', 'by', 'end']];

// unwished returns the fields as they were before the last wish; what the user has changed since then stays.
export function unwished(fields, wish) {
  if (!wish) return fields;
  const kept = ofWish.filter(([name]) => fields[name] === wish.after[name]).flat();
  return {...fields, ...Object.fromEntries(kept.map(name => [name, wish.before[name]]))};
}
