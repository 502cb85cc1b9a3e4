// SPDX-License-Identifier: Apache-2.0
// The address of the page, which names the part that is shown and what is in view.
let followed = null;

// follow returns what the address names after its #, and lets the part that it names write it.
export function follow() {
  followed = location.hash;
  return followed;
}

// write lets the address name a path. It stays as it is if the user has gone to another one, which the page follows
// only in a later event: writing would call them back.
export function write(path, replace) {
  if (location.hash !== followed) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', `#${path}`);
  follow();
}
