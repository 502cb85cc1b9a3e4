// SPDX-License-Identifier: Apache-2.0
// What the browser keeps for the user. A browser may refuse it, and then the page forgets with the tab.
const forgotten = new Map();

// calendarPlace returns where the user was in the calendar, in this tab; it is an address of the page.
export function calendarPlace() {
  try {
    return sessionStorage.getItem('calendar') || '#/calendar';
  } catch {
    return '#/calendar';
  }
}

// keepCalendarPlace keeps an address of the page if it is one of the calendar.
export function keepCalendarPlace(address) {
  const [, place] = address.match(/(#\/calendar\b.*)$/) || [];
  if (!place) return;
  try {
    sessionStorage.setItem('calendar', place.replace(/([?&])(again|maintain)=[^&]*&?/, '$1'));
  } catch {
    // The link leads to the present.
  }
}

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
