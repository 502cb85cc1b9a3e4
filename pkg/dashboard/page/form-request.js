// SPDX-License-Identifier: Apache-2.0
// The request that a form means, and what it lacks.
import {joined} from './filter-language.js';
import {searches} from './form-fields.js';
import {placeComplaint, placeOf} from './form-place.js';
import {part} from './offers-part.js';
import {readDuration, readLength} from './lengths.js';
import {problemOf} from './timevalue.js';
import {HOUR, iso} from './time.js';
import {t} from './texts.js';

export const lengthOf = ({fields}) => readLength(fields.lasts);

const count = text => (/^\d+$/.test(text.trim()) ? Number(text) : NaN);

// complaintOf returns what is missing or wrong, as {field, message}, with what would be right as `choice` if that is
// known; null if the form can be asked.
export function complaintOf(form) {
  if (form.mode === 'change') return changeComplaint(form);
  return whatComplaint(form) || timeComplaint(form) || (form.fields.when === 'offers' ? offersComplaint(form) : null);
}

const offersComplaint = ({fields}) => (part.rangeComplaint ? part.rangeComplaint(fields) : wrong('when', part.missing ? 'partMissing' : 'loading'));

const wrong = (field, key) => ({field, message: t(key)});
const unread = (fields, field) => (Number.isNaN(fields[field].at) ? {field, message: problemOf(fields[field]) || t('timeMissing')} : null);

function changeComplaint({fields, before}) {
  const {start, end} = fields,
    complaint = unread(fields, 'end') || unread(fields, 'start');
  if (complaint) return complaint;
  if (end.at === before.end && start.at === before.start) return wrong('end', 'unchanged');
  return end.at <= start.at ? wrong('end', 'endFirst') : null;
}

// wordsUnread names what of the words was not understood.
export const wordsUnread = ({unread}) => t('wordsUnread', {words: unread});

function whatComplaint({fields}) {
  const {kind} = fields;
  if (kind !== 'maintenance' && fields.words.trim())
    return fields.unread ? {field: 'words', message: wordsUnread(fields)} : wrong('words', 'wordsWait');
  if (!fields.name.trim()) return wrong('name', kind === 'maintenance' ? 'needsReason' : 'needsName');
  if (kind === 'maintenance') return namesOf(fields).length ? null : wrong('maintained', 'needsHosts');
  if (!(count(fields.quantity) > 0)) return wrong('quantity', 'quantityWrong');
  const [small] = kind === 'instance' ? ['vcpus', 'memory'].filter(name => !(count(fields[name]) > 0)) : [];
  if (small) return wrong(small, 'sizeWrong');
  if (kind === 'instance' && Number.isNaN(count(fields.disk || '0'))) return wrong('disk', 'diskWrong');
  return fields.unadded ? wrong('filter', 'conditionWaits') : placeComplaint(fields);
}

function timeComplaint(form) {
  const {fields} = form,
    {by, earliest, end, deadline, start} = fields,
    lasts = lengthOf(form);
  if (fields.when === 'at' && Number.isNaN(start.at)) return unread(fields, 'start');
  if (!searches(fields) && by === 'end') {
    if (Number.isNaN(end.at)) return unread(fields, 'end');
    if (fields.when === 'at' && end.at <= start.at) return wrong('end', 'endFirst');
    return null;
  }
  if (!(lasts > 0)) return {field: 'lasts', message: readDuration(fields.lasts).problem};
  if (!searches(fields)) return null;
  const complaint = unread(fields, 'earliest') || unread(fields, 'deadline');
  if (complaint) return complaint;
  if (deadline.at - earliest.at >= lasts) return null;
  return {...wrong('deadline', 'tooShort'), choice: {what: 'deadline', at: Math.ceil((earliest.at + lasts) / HOUR) * HOUR}};
}

const namesOf = ({maintained}) => maintained.split(/[\s,]+/).filter(Boolean);

// bodyOf returns the body of the request; null while something is missing. That for offers is another one until one of
// them is picked.
export function bodyOf(form) {
  if (complaintOf(form)) return null;
  const {fields, before} = form;
  if (form.mode === 'change') {
    const starts = fields.start.at !== before.start && {start_time: iso(fields.start.at)},
      ends = fields.end.at !== before.end && {end_time: iso(fields.end.at)};
    return {...starts, ...ends};
  }
  const body = {name: fields.name, ...timesOf(fields)};
  if (fields.kind === 'maintenance') return {...body, maintenance: true, hosts: namesOf(fields)};
  const rule = ruleOf(form),
    place = placeOf(fields),
    instances = fields.kind === 'instance',
    {resources: custom, affinity, ...terms} = (fields.withTerms && fields.terms) || {};
  const whole = {
    ...body,
    kind: fields.kind,
    quantity: count(fields.quantity),
    ...(instances && {resources: {...sizeOf(fields), ...(custom && {custom})}, ...(affinity && {affinity})}),
    ...(rule && {host_properties: parsed(rule)}),
    ...(place && {together: place}),
    ...terms,
  };
  if (fields.when !== 'offers') return whole;
  return form.picked ? {...whole, ...form.picked} : part.wishOf(whole, fields);
}

const sizeOf = ({vcpus, memory, disk}) => ({vcpus: count(vcpus), memory_mb: count(memory), disk_gb: count(disk || '0')});

// timesOf returns the times of a booking as the API has them: a start with a length or an end, or a length between two
// times.
function timesOf({when, by, start, end, earliest, deadline, lasts}) {
  const duration = readLength(lasts);
  if (when === 'offers') return {};
  if (when === 'between') return {duration, start_time: iso(earliest.at), end_time: iso(deadline.at)};
  const starts = when === 'at' && {start_time: iso(start.at)};
  return by === 'end' ? {...starts, end_time: iso(end.at)} : {duration, ...starts};
}

function ruleOf({fields, hosts}) {
  if (!fields.only || hosts.length === 0) return fields.filter;
  return joined(fields.filter, hosts.length === 1 ? ['=', '$name', hosts[0]] : ['in', '$name', ...hosts]);
}

// parsed returns a filter as the API stores it; the API explains what is wrong with one that cannot be read.
function parsed(rule) {
  try {
    return JSON.parse(rule);
  } catch {
    return rule;
  }
}

// roomQuery returns the question of the API when the same would be free: between the two times of the form, or in the two
// weeks from its start; null if the API does not know it, as with a rule about where the hosts lie.
export function roomQuery(form, at) {
  const {fields, mode} = form,
    body = bodyOf(form);
  if (mode !== 'book' || fields.kind !== 'host' || fields.when === 'offers' || !body || body.together?.required) return null;
  const [from, until] = {
    between: [fields.earliest.at, fields.deadline.at],
    at: [fields.start.at, fields.start.at + FORTNIGHT],
    now: [null, at + FORTNIGHT],
  }[fields.when];
  return {
    duration: lengthOf(form),
    quantity: body.quantity,
    host_properties: body.host_properties && JSON.stringify(body.host_properties),
    start: from === null ? undefined : iso(from),
    end: iso(until),
  };
}

const FORTNIGHT = 14 * 24 * HOUR;
