// SPDX-License-Identifier: Apache-2.0
// The clock of a part of the page in tests.

// pass lets time pass on a page with a clock and timers by their keys, {due, event}; they fire in their order.
export function pass(page, ms) {
  const end = page.clock + ms;
  for (;;) {
    const [key, next] = [...page.timers].sort(([, a], [, b]) => a.due - b.due)[0] || [];
    if (!next || next.due > end) break;
    page.clock = next.due;
    page.timers.delete(key);
    page.send(next.event);
  }
  page.clock = end;
}
