// SPDX-License-Identifier: Apache-2.0
// The calendar's state between a user and a service: answers come late, in any order, with errors or never; events of
// the stream are delayed or lost; timers fire when the test says so.
import {HOSTS, Service} from './service.js';
import {initial, step} from '../page/calendar-state.js';

export const BEGIN = Date.UTC(2026, 11, 1, 12) / 1000;

const lost = {status: 0, passes: true, message: 'The service cannot be reached.', field: '', refusal: null},
  bad = status => ({status, passes: true, message: `status ${status}`, field: '', refusal: null});

export class World {
  constructor() {
    this.at = BEGIN;
    this.clock = 0;
    this.service = new Service(() => Math.floor(this.at));
    this.flying = []; // requests without an answer: {key, number, request, outcome}
    this.timers = new Map(); // by key: the event and when it is due
    this.done = []; // other effects
    this.sent = []; // changes that the page sent, with what the form showed then
    this.connected = false;
    const may = Object.fromEntries(['reservations:create', 'reservations:update', 'reservations:delete'].map(rule => [rule, true]));
    this.state = initial({query: new URLSearchParams(), kept: {}, may, draft: null, at: this.at});
    this.send({type: 'opened'});
    this.send({type: 'resized', width: 1000, height: 400, ratio: 1});
  }

  send(event) {
    const before = this.state;
    const [next, ...effects] = step(before, {at: this.at, clock: this.clock, chance: 0.5, ...event});
    this.state = next;
    for (const effect of effects) if (effect) this.carryOut(effect, before, event);
  }

  carryOut(effect, before, event) {
    if (effect.do === 'ask') {
      this.timers.delete(effect.key);
      const {request} = effect,
        changes = request.method && request.method !== 'GET' && !request.query?.dry_run;
      if (changes) this.sent.push({request, form: before.form, event});
      this.flying.push({...effect}); // also those whose question is closed: their answers come late
    } else if (effect.do === 'wait') this.timers.set(effect.key, {due: this.clock + effect.ms, event: effect.event});
    else if (effect.do === 'forget') this.timers.delete(effect.key); // an answer may be here before its request ends
    else this.done.push(effect);
  }

  // reach lets the service carry out a request; its answer is still on its way.
  reach(one) {
    if (one && !one.reached) Object.assign(one, {reached: true, outcome: this.service.answer(one.request)});
  }

  // deliver gives an answer to the page; `fault` is an error on the way: 'lost', 502 or 503. A change that must still find
  // certain values is read before, and with 503 not sent at all, as client.js has it.
  deliver(one, fault = null) {
    if (!one) return;
    if (fault !== 503) this.reach(one);
    this.flying = this.flying.filter(other => other !== one);
    const unsent = fault === 503 && Boolean(one.request.provided),
      outcome = fault ? {error: {...(fault === 'lost' ? lost : bad(fault)), unsent}} : one.outcome;
    this.send({type: 'answered', key: one.key, number: one.number, request: one.request, ...outcome});
  }

  pass(seconds) {
    this.at += seconds;
    this.clock += seconds * 1000;
    const due = [...this.timers].filter(([, timer]) => timer.due <= this.clock);
    for (const [key, {event}] of due) {
      this.timers.delete(key);
      this.send(event);
    }
  }

  connect() {
    if (this.connected) return;
    this.connected = true;
    this.service.events = []; // a stream that was away tells of a gap, not of what happened meanwhile
    this.send({type: 'live', on: true});
    this.send({type: 'gap'});
  }

  disconnect() {
    this.connected = false;
    this.send({type: 'live', on: false});
  }

  tell() {
    const event = this.service.events.shift();
    if (event && this.connected) this.send(event);
  }

  // settle lets everything arrive that is on its way, until nothing moves but an open form, which asks again from time to
  // time.
  settle() {
    this.connect();
    for (let round = 0; round < 200; round++) {
      const due = [...this.timers].filter(([key]) => key !== 'form.age').map(([, timer]) => timer.due);
      if (this.service.events.length) this.tell();
      else if (this.flying.length) this.deliver(this.flying[0]);
      else if (due.length) this.pass(Math.max(0.001, (Math.min(...due) - this.clock) / 1000));
      else return true;
    }
    return false;
  }

  // shown returns the claims that the page shows of a host in the time that it knows, as texts in order.
  shown(host) {
    const {known, hosts} = this.state.data;
    return (hosts.get(host)?.claims || []).filter(one => one.start < known.to && known.from < one.end).map(one => `${one.start}-${one.end} ${one.mine}`).sort();
  }

  // has returns the claims that the service has of a host in the time that the page knows.
  has(host) {
    const {known} = this.state.data;
    return [...this.service.reservations.values()]
      .filter(one => one.hosts.includes(host) && one.start < known.to && known.from < one.end)
      .map(one => `${one.start}-${one.end} ${one.mine}`)
      .sort();
  }

  hosts() {
    return HOSTS;
  }
}
