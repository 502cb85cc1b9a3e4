// SPDX-License-Identifier: Apache-2.0
// The part of the form that asks for offers. Its script is loaded when somebody wants to compare them.

// part is what offers.js exports, once it is there; `missing` is true if it could not be loaded.
export const part = {missing: false};

let loading = null;

// loadOffers loads the script if it is not there, and calls then after it.
export async function loadOffers(then) {
  if (part.rangeFields || part.missing) return;
  loading ??= import('./offers.js').then(module => Object.assign(part, module), () => (part.missing = true));
  await loading;
  then();
}
