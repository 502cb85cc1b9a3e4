// SPDX-License-Identifier: Apache-2.0
// A form between a user and a service that answers when the test says so.
import {opened, step} from '../page/form-state.js';

export const NOW = Date.UTC(2026, 10, 28, 14, 26) / 1000;

const text = at => new Date(at * 1000).toISOString().replace('.000Z', 'Z');

// lost is the error of a request without an answer.
export const lost = {status: 0, passes: true, message: 'The service cannot be reached.', field: '', refusal: null};

// refused returns the error of a request that has no room.
export const refused = (refusal, message = 'not enough hosts available') => ({
  status: 409,
  passes: false,
  message,
  field: '',
  refusal: {blocked_by: [], earliest_start: null, largest_quantity: 0, ...refusal},
});

// offerFor returns the answer to a dry run from a start on.
export const offerFor = (start, lasts = 7200, more = {}) => ({
  offer: {start: text(start), end: text(start + lasts), quantity: 1, matched: 4, hosts: ['a'], ...more},
});

export class Filled {
  constructor(from = {kind: 'book'}, before = null) {
    this.at = NOW;
    this.clock = 0;
    this.asked = []; // all questions, in order
    this.done = []; // other effects, in order
    this.timers = new Map();
    this.form = before?.form || null;
    this.open(from);
  }

  open(from) {
    this.take(opened({before: this.form, number: this.form?.questions.next || this.next || 1, ...from}, this.at));
  }

  send(event) {
    if (this.form) this.take(step(this.form, {at: this.at, clock: this.clock, chance: 0.5, ...event}));
  }

  edit(field, value) {
    this.send({type: 'form.edit', field, value});
  }

  choose(choice) {
    this.send({type: 'form.take', choice});
  }

  take([next, ...effects]) {
    this.next = Math.max(this.next || 1, next?.questions.next || 1, this.form?.questions.next || 1);
    this.form = next;
    for (const effect of effects.filter(Boolean)) {
      if (effect.do === 'ask') this.asked.push(effect);
      else if (effect.do === 'wait') this.timers.set(effect.key, {...effect, due: this.clock + effect.ms});
      else if (effect.do === 'forget') this.timers.delete(effect.key);
      else this.done.push(effect);
    }
  }

  // pass lets time go by, and sends the events that are due.
  pass(ms = 300) {
    this.clock += ms;
    this.at += ms / 1000;
    for (const [key, {due, event}] of [...this.timers]) {
      if (due > this.clock) continue;
      this.timers.delete(key);
      this.send(event);
    }
  }

  // last returns the last question of a key.
  last(key = 'form.offer') {
    return this.asked.findLast(one => one.key === key);
  }

  // answer answers a question, the last offer unless the test names another.
  answer(answer, question = this.last()) {
    const {key, number, request} = question;
    this.send({type: 'answered', key, number, request, ...(answer.message === undefined ? {answer} : {error: answer})});
  }

  // offered lets the form ask, and answers with an offer.
  offered(answer = null) {
    this.pass();
    const {body} = this.last().request,
      start = body.start_time ? Date.parse(body.start_time) / 1000 : Math.floor(this.at);
    this.answer(answer || offerFor(start, body.duration || Date.parse(body.end_time) / 1000 - start));
  }

  // changes returns the requests that change something, in order.
  changes() {
    return this.asked.map(one => one.request).filter(one => one.method && !one.query?.dry_run);
  }

  toast() {
    return this.done.findLast(one => one.do === 'toast');
  }
}
