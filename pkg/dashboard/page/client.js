// SPDX-License-Identifier: Apache-2.0
// The REST API: calls with its errors, and the calendar with its tags.
import {t} from './texts.js';
import {follow} from './time.js';

// Refused is an answer of the API that is not a success.
export class Refused extends Error {
  constructor(status, answer, after = 0) {
    super(answer?.error?.message || t(status === 0 ? 'unreachable' : 'unreadable', {status}));
    this.status = status;
    this.kind = answer?.error?.kind || '';
    this.field = answer?.error?.field || '';
    this.refusal = answer?.refusal || null;
    this.passes = status === 0 || status === 429 || status >= 500; // the same may succeed later
    this.after = after; // how many seconds the service asks to wait
    this.now = answer?.now || null; // what somebody else has made of what was to be changed
    this.unsent = false; // whether a change was not sent at all
  }
}

let signedOut = () => {};

// onSignedOut is called when the API does not know the user any more.
export function onSignedOut(then) {
  signedOut = then;
}

// signOff tells that the API does not know the user any more.
export const signOff = () => signedOut();

// unreadable is the error of an answer that is not what the API promises: it may be right the next time.
export const unreadable = status => new Refused(0, {error: {message: t('unreadable', {status})}});

async function send(method, path, body, headers, signal) {
  let answer;
  try {
    answer = await fetch(`../${path}`, {
      method,
      signal,
      headers: {Accept: 'application/json', ...headers},
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'same-origin',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, null);
  }
  if (answer.status === 304 || answer.status === 204) return {answer, json: null};
  const json = await read(answer);
  if (!answer.ok) {
    if (answer.status === 401 && !path.startsWith('dashboard/')) signOff();
    throw new Refused(answer.status, json, Number(answer.headers.get('Retry-After')) || 0);
  }
  return {answer, json};
}

// read returns what an answer says; null if it is empty, or an error without an explanation. A success that is cut off, or
// that something between here and the service has made up, is no answer: the same is asked again.
async function read(answer) {
  try {
    const text = await answer.text();
    return text ? JSON.parse(text) : null;
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    if (answer.ok) throw unreadable(answer.status);
    return null;
  }
}

// request sends what a question asks for: a list of all pages, the calendar, or one call. `provided` are values that the
// object must still have.
export async function request({method = 'GET', path, query, body, headers = {}, list, most, calendar: ofCalendar, provided}, signal) {
  if (ofCalendar) return calendar(query, signal);
  if (list) return all(path, query, list, most, signal);
  if (provided) return change({method, path, query, body, headers, provided}, signal);
  return send(method, path + parameters(query), body, headers, signal).then(({json}) => json);
}

const MOST_READ = 3; // times before one change

// change changes what still has the values that its user has seen. It is read before, and the service makes the change of
// nothing but what was read. What has changed in between in other ways, as by its start, is read again.
async function change({method, path, query, body, headers, provided}, signal) {
  for (let read = 1; ; read++) {
    const {answer, json: now} = await send('GET', path, undefined, {}, signal).catch(error => {
      throw Object.assign(error, {unsent: true});
    });
    if (Object.entries(provided).some(([name, value]) => JSON.stringify(now[name]) !== JSON.stringify(value))) throw new Refused(412, {error: {message: t('changedBySomebody')}, now});
    const tag = answer.headers.get('ETag');
    try {
      return (await send(method, path + parameters(query), body, {...headers, ...(tag && {'If-Match': tag})}, signal)).json;
    } catch (error) {
      if (error.status !== 412 || read === MOST_READ) throw error;
    }
  }
}

export const get = (path, query, signal) => send('GET', path + parameters(query), undefined, {}, signal).then(({json}) => json);
export const post = (path, body, {query, headers, signal} = {}) =>
  send('POST', path + parameters(query), body, headers, signal).then(({json}) => json);
export const patch = (path, body, query) => send('PATCH', path + parameters(query), body).then(({json}) => json);
export const remove = (path, query) => send('DELETE', path + parameters(query)).then(({json}) => json);

function parameters(query) {
  const list = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== null && value !== '') list.set(name, String(value));
  }
  const text = list.toString();
  return text ? `?${text}` : '';
}

// session returns who the user is. The page's clock follows the service's from then on.
export async function session() {
  const {answer, json} = await send('GET', 'dashboard/session', undefined, {});
  follow(Date.parse(answer.headers.get('Date')) / 1000, json.speed);
  return json;
}

// key returns a new Idempotency-Key.
export const key = () => [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');

// all reads every page of a list; `most` bounds it.
export async function all(path, query, list, most = 5000, signal = undefined) {
  const found = [];
  for (let marker; ;) {
    const page = await get(path, {limit: 1000, ...query, marker}, signal);
    found.push(...page[list]);
    if (!page.next || found.length >= most) return found;
    marker = page.next;
  }
}

const tags = new Map(); // by request: the tag and the answer of the last time

// calendar returns the hosts of every page of the calendar. What has not changed is not sent again.
export async function calendar(query, signal) {
  const hosts = [];
  let unknown = [];
  for (let marker; ;) {
    const path = 'v1/calendar' + parameters({...query, marker});
    const known = tags.get(path);
    const {answer, json} = await send('GET', path, undefined, known ? {'If-None-Match': known.tag} : {}, signal);
    const page = answer.status === 304 ? known.json : json;
    const tag = answer.headers.get('ETag');
    tags.delete(path);
    if (tag) tags.set(path, {tag, json: page});
    while (tags.size > 8) tags.delete(tags.keys().next().value);
    hosts.push(...page.hosts);
    unknown = page.unknown_properties || unknown;
    if (!page.next) return {hosts, unknown};
    marker = page.next;
  }
}
