// SPDX-License-Identifier: Apache-2.0
// The fields of a reservation that can change: when, what of them the service has, what is typed for them, and what is
// sent. They have the names of the API's answer.
import {length, readLength} from './lengths.js';
import {exact, isUnread} from './timevalue.js';
import {iso, seconds, whenInZone} from './time.js';
import {filterWords} from './reservation-words.js';
import {t} from './texts.js';

// values are the fields as the service has them, each as a text or a number.
export const values = {
  name: one => one.name,
  end: one => seconds(one.end),
  quantity: one => one.quantity,
  resources: one => sizeOf(one.resources || {}),
  affinity: one => one.affinity || 'none',
  on_end: one => one.on_end,
  before_end: one => one.before_end,
  host_properties: one => (one.host_properties ? JSON.stringify(one.host_properties) : ''),
};

// sizeOf writes a size in one way, however it was written before.
const sizeOf = ({vcpus = 0, memory_mb: memory = 0, disk_gb: disk = 0, custom = {}}) =>
  JSON.stringify({vcpus, memory_mb: memory, disk_gb: disk, ...(Object.keys(custom).length > 0 && {custom})});

// fieldIDs are the ids of the elements for the fields.
export const fieldIDs = {
  name: 'rename',
  end: 'until',
  quantity: 'quantity',
  resources: 'size-vcpus',
  affinity: 'affinity',
  on_end: 'on-end',
  before_end: 'before-end',
  host_properties: 'change-filter-plain',
};

const written = {
  name: name => ({name}),
  end: end => ({end_time: iso(end)}),
  quantity: quantity => ({quantity}),
  resources: size => ({resources: JSON.parse(size)}),
  affinity: affinity => ({affinity}),
  on_end: end => ({on_end: end}),
  before_end: warning => ({before_end: warning}),
  host_properties: filter => ({host_properties: filter && JSON.parse(filter)}),
};

// bodyOf returns the body of the request that changes a field to a value.
export const bodyOf = (field, value) => written[field](value);

const done = {
  name: 'renamed',
  reason: 'reasonChanged',
  end: 'endChanged',
  quantity: 'quantityChanged',
  resources: 'sizeChanged',
  affinity: 'affinityChanged',
  on_end: 'atEndChanged',
  before_end: 'warningChanged',
  host_properties: 'filterChanged',
};

// doneText is the message after a change of a field. The name of maintenance is its reason.
export const doneText = (field, one) =>
  t(done[one.maintenance && field === 'name' ? 'reason' : field], {end: whenInZone(values.end(one)), quantity: one.quantity, value: valueText(field, one)});

// valueText returns the value of a field in words.
export function valueText(field, one) {
  const value = values[field](one);
  const texts = {
    end: () => whenInZone(value),
    resources: () => sizeWords(one.resources),
    affinity: () => t(`affinity_${value}`),
    on_end: () => endText(value),
    before_end: () => (value > 0 ? t('warnedBefore', {length: length(value)}) : t('warnedNever')),
    host_properties: () => (value ? filterWords(one) : t('filterNone')),
  };
  return texts[field]?.() ?? String(value);
}

const endings = {delete: 'endDelete', shelve: 'endShelve', stop: 'endStop', leave: 'endLeave'};

// endText tells what happens to servers at the end.
export const endText = end => t(endings[end] || 'endLeave');

// sizeWords returns the size of one instance in words.
export const sizeWords = ({vcpus = 0, memory_mb: memory = 0, disk_gb: disk = 0}) => t('sizeText', {vcpus, memory, disk});

const untilStart = ['resources', 'affinity'],
  ofServers = ['on_end', 'before_end', 'host_properties', 'quantity'], // maintenance is of the hosts that it names
  ofGroup = ['end', 'on_end', 'before_end']; // what all parts of a group have in common

// isPart reports whether a reservation is one of several in its group; of a group that is not known yet it is taken for one.
export const isPart = ({one, group}) => Boolean(one?.lease_id) && group?.reservations.length !== 1;

// canChange reports whether a field can change now, as planning.PlanChange has it. What is held waits for its confirmation,
// floating IPs are changed with their lease, and the page leaves a reservation that has begun its quantity.
export function canChange({one, group}, field) {
  if (one.held_until || one.kind === 'address' || (one.maintenance && ofServers.includes(field))) return false;
  if (ofGroup.includes(field) && isPart({one, group})) return false;
  if (untilStart.includes(field) && one.kind !== 'instance') return false;
  return one.status === 'pending' || (one.status === 'active' && ![...untilStart, 'quantity'].includes(field));
}

const shown = {
  end: exact,
  before_end: length,
  resources: size => {
    const {custom, ...amounts} = JSON.parse(size);
    return {...Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, String(amount)])), ...(custom && {custom})};
  },
};

// draftOf returns what a field shows: what was typed, else what the service has.
export function draftOf({one, drafts}, field) {
  if (drafts[field]) return drafts[field].value;
  const value = values[field](one);
  return shown[field] ? shown[field](value) : value;
}

const NEVER = /^\s*0+\s*[a-z]*\s*$/i; // a length of nothing

const whole = text => (/^\d+$/.test(String(text).trim()) ? Number(text) : NaN);

const read = {
  name: name => (name.trim() ? name : null),
  end: value => (isUnread(value) ? null : value.at),
  quantity: text => (whole(text) > 0 ? whole(text) : null),
  resources: ({custom, ...amounts}) => {
    const size = Object.fromEntries(Object.entries(amounts).map(([name, text]) => [name, whole(text || '0')]));
    return Object.values(size).some(Number.isNaN) || !(size.vcpus > 0 && size.memory_mb > 0) ? null : sizeOf({...size, custom});
  },
  before_end: text => (NEVER.test(text) ? 0 : (readLength(text) || null)),
};

// meant returns the value of a draft as the service would have it; null if it is none.
export const meant = (field, value) => (read[field] ? read[field](value) : value);

// isUntouched reports whether a draft is what the field shows without one: what means the same in other words stays.
export function isUntouched(field, value, one) {
  const now = values[field](one);
  if (field === 'end') return value.text === null && value.at === now;
  return field === 'before_end' ? value === length(now) : meant(field, value) === now;
}

// overtaken reports whether a field was changed elsewhere since the user began to type.
export const overtaken = ({one, drafts}, field) => Boolean(drafts[field]) && drafts[field].base !== values[field](one);
