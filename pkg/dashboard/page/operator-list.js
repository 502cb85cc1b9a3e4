// SPDX-License-Identifier: Apache-2.0
// The modules of the operators' pages, by their names. Each has `questions(state)` and `view(state, send)`.
import * as decisions from './operator-decisions.js';
import * as doctor from './operator-doctor.js';
import * as energy from './operator-energy.js';
import * as hosts from './operator-hosts.js';
import * as images from './operator-images.js';
import * as preemptible from './operator-preemptible.js';
import * as queue from './operator-queue.js';
import * as usage from './operator-usage.js';

const modules = {decisions, doctor, energy, hosts, images, preemptible, queue, usage};

// pageOf returns the module of a page.
export const pageOf = name => modules[name];
