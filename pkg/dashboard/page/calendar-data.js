// SPDX-License-Identifier: Apache-2.0
// What the calendar knows of the hosts: which time it has read, what it has asked, and what events made old. Time that
// was not read is unknown, never free.
import {again, answered, ask, close, failure, isOpen, none} from './questions.js';
import {hostOf, rowsOf, searched} from './model.js';
import {iso, startOfDay} from './time.js';

const MANY = 60, // more hosts than these are read as all of them
  SOON = 120,
  LATEST = 5000; // how long events are collected, in milliseconds

// nothing is what a calendar knows at first. `known` is the time of which all claims are known; `old` are the hosts
// that events have named since, or 'all'.
export const nothing = {
  hosts: new Map(),
  known: null,
  unknownProperties: [],
  questions: none,
  refused: null,
  old: new Set(),
  collecting: false,
  took: 0,
  asked: 0,
};

export const isLoading = data => isOpen(data.questions, 'hosts');
export const trouble = data => failure(data.questions, 'hosts') || failure(data.questions, 'some');

// retryAt returns when the calendar asks again after a failure, on the page's clock in milliseconds.
export const retryAt = data => Math.min(...['hosts', 'some'].map(key => data.questions.open[key]?.until || Infinity));

export const covers = (range, start, end) => Boolean(range) && range.from <= start && range.to >= end;

// load asks for what is in view if it is not known. `terms` are the filter and whether facts are wanted; `window` is what
// is in view, with the page's clock.
export function load(data, terms, window, force = false) {
  const {start, end, clock} = window;
  const open = data.questions.open.hosts?.request;
  if (!force && (covers(data.known, start, end) || (open && open.filter === terms.filter && covers(open.range, start, end)))) return [data];
  const width = end - start,
    range = covers(data.known, start, end) ? data.known : {from: startOfDay(start - width * 0.4), to: startOfDay(end + width * 0.4, 1)};
  const [without, ...ended] = close(data.questions, 'some'),
    [questions, effect] = ask(without, 'hosts', request(range, terms));
  return [{...data, questions, old: new Set(), asked: clock, refused: null}, ...ended, effect];
}

const request = (range, {filter, facts}, more) => ({
  calendar: true,
  range,
  filter,
  query: {start: iso(range.from), end: iso(range.to), filter, facts: facts ? 'true' : '', limit: 1000, ...more},
});

// forget makes everything unknown, for another filter.
export const forget = data => ({...data, hosts: new Map(), known: null, unknownProperties: [], refused: null});

// heard notes the hosts that an event names; none means all. Events that follow one another become one question.
export function heard(data, names) {
  if (!data.known && !isLoading(data)) return [data];
  const old = names.length === 0 || data.old === 'all' ? 'all' : new Set([...data.old, ...names]);
  return collect({...data, old});
}

// collect waits for more events, longer if the service needs long to answer.
function collect(data) {
  if (data.collecting) return [data];
  const ms = Math.round(Math.min(LATEST, Math.max(SOON, data.took * 4)));
  return [{...data, collecting: true}, {do: 'wait', key: 'collected', ms, event: {type: 'collected'}}];
}

// collected asks again for the hosts that events named, unless an answer is under way: it asks when that is here.
export function collected(data, terms, window) {
  data = {...data, collecting: false};
  if (isLoading(data) || isOpen(data.questions, 'some') || !data.known) return [data];
  const names = data.old === 'all' ? [] : [...data.old];
  if (data.old !== 'all' && names.length === 0) return [data];
  if (data.old === 'all' || names.length > MANY || names.some(name => !data.hosts.has(name))) return load(data, terms, window, true);
  const [questions, effect] = ask(data.questions, 'some', request(data.known, terms, {host: names.join(','), limit: ''}));
  return [{...data, questions, old: new Set(), asked: window.clock}, effect];
}

// take takes an answer about hosts. It returns null for one that is late.
export function take(data, event) {
  const taken = answered(data.questions, event);
  if (!taken) return null;
  const {key, answer, error, clock} = event;
  data = {...data, questions: taken.questions, took: Math.max(0, clock - data.asked)};
  if (error) return refusal(data, key, error, taken);
  const read = answer.hosts.map(hostOf).map(host => [host.name, host]);
  data =
    key === 'hosts'
      ? {...data, hosts: new Map(read), known: taken.request.range, unknownProperties: answer.unknown, refused: null}
      : {...data, hosts: new Map([...data.hosts, ...read])};
  const more = data.old === 'all' || data.old.size > 0 ? collect(data) : [data];
  return [...more, ...taken.effects];
}

// refusal keeps the error of a question that is not asked again. A host that is gone makes all hosts old.
function refusal(data, key, error, taken) {
  if (taken.effects.length > 0) return [data, ...taken.effects];
  return key === 'some' ? collect({...data, old: 'all'}) : [{...data, refused: error}];
}

// retry asks once more what failed; key is null for all of it, by hand.
export function retry(data, key) {
  let questions = data.questions,
    effects = [];
  for (const one of key ? [key] : ['hosts', 'some']) {
    const [next, ...sent] = again(questions, one);
    questions = next;
    effects = [...effects, ...sent];
  }
  return [{...data, questions}, ...effects];
}

// arranged returns the rows of the hosts that are shown, and their height.
export function arranged(hosts, {group, search, only}) {
  const all = [...hosts.values()].filter(host => (!only || only.includes(host.name)) && searched(host, search));
  return rowsOf(all, group);
}
