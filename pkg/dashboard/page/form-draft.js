// SPDX-License-Identifier: Apache-2.0
// A form as a text that a tab keeps over a reload.
import {timed} from './form-fields.js';

const VERSION = 3; // of the text; one of another version is forgotten

const parts = ['mode', 'id', 'before', 'movable', 'again', 'fields', 'edited', 'hosts', 'all', 'key', 'doubt'];

// partsOf returns what a form needs to be filled in again. What was sent without an answer leaves a doubt.
export function partsOf(form) {
  const kept = Object.fromEntries(parts.map(name => [name, form[name]]));
  return {...kept, doubt: form.doubt || form.unsure || form.sending, behind: form.behind && partsOf(form.behind)};
}

// draft returns a form as a text.
export const draft = form => JSON.stringify({version: VERSION, ...partsOf(form)});

// restored returns the parts of a form from its text; null for a text that is none.
export function restored(text) {
  try {
    const {version, ...kept} = JSON.parse(text);
    return version === VERSION ? read(kept) : null;
  } catch {
    return null;
  }
}

// read puts back the times that JSON cannot write.
function read(kept) {
  const fields = Object.entries(kept.fields).map(([name, value]) => [name, timed.includes(name) ? {...value, at: value.at ?? NaN} : value]);
  return {...kept, fields: Object.fromEntries(fields), behind: kept.behind ? read(kept.behind) : null};
}
