// SPDX-License-Identifier: Apache-2.0
// What the browser keeps for the user. A browser may refuse it, and then the page forgets with the tab.
const forgotten = new Map();

// kept returns a text that was kept under a name, or null.
export function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return forgotten.get(name) ?? null;
  }
}

// keep keeps a text under a name; null forgets it.
export function keep(name, text) {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    if (text === null) forgotten.delete(name);
    else forgotten.set(name, text);
  }
}
