// SPDX-License-Identifier: Apache-2.0
// A service and a shell for the operators' pages: requests wait until the test answers them, and time passes when it says so.
import {nothing, step} from '../page/operator-state.js';
import {pass} from './clock.js';

export {freshness, nothing, step, troubleOf} from '../page/operator-state.js';
export {isOld} from '../page/operator-answers.js';

// lost is the error of a request that did not arrive.
export const lost = {status: 0, passes: true, message: 'the service cannot be reached', after: 0};

export const NOW = 1.8e9;

export class World {
  constructor(page, {may = () => true, item = ''} = {}) {
    [this.requests, this.timers, this.asked, this.others] = [new Map(), new Map(), [], []];
    this.clock = 0;
    this.state = nothing({page, item, may});
    this.send({type: 'begin'});
  }

  send(event) {
    const [next, ...effects] = step(this.state, {clock: this.clock, at: NOW + this.clock / 1000, chance: 0.5, ...event});
    this.state = next;
    for (const effect of effects) {
      if (effect.do === 'ask') {
        this.requests.set(effect.key, effect);
        this.timers.delete(effect.key);
        this.asked.push(effect);
      } else if (effect.do === 'forget') {
        this.requests.delete(effect.key);
        this.timers.delete(effect.key);
      } else if (effect.do === 'wait') this.timers.set(effect.key, {due: this.clock + effect.ms, event: effect.event});
      else this.others.push(effect);
    }
  }

  answer(key, answer, error) {
    const asked = this.requests.get(key);
    if (!asked) throw new Error(`nothing was asked as ${key}`);
    this.requests.delete(key);
    this.send({type: 'answered', ...asked, ...(error ? {error} : {answer})});
  }

  pass(ms) {
    pass(this, ms);
  }

  asks() {
    return this.asked.map(({key}) => key);
  }
}
