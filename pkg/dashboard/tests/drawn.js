// SPDX-License-Identifier: Apache-2.0
// Numbers drawn from a seed, the same in each run.

// drawing returns a function that draws a number from 0 to 1, and others that choose.
export function drawing(seed) {
  let state = seed >>> 0;
  const number = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const below = n => Math.floor(number() * n);
  return {number, below, oneOf: list => list[below(list.length)], often: share => number() < share};
}
