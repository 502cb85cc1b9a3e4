// SPDX-License-Identifier: Apache-2.0
// What the browser keeps for the user. A browser may refuse it, and then the page forgets with the tab.
const forgotten = new Map();

// inTab are the names of what a tab keeps, and no other one sees.
const inTab = {place: 'calendar', form: 'booking'};

// calendarPlace returns where the user was in the calendar, in this tab; it is an address of the page.
export const calendarPlace = () => ofTab(inTab.place) || '#/calendar';

// keepCalendarPlace keeps an address of the page if it is one of the calendar.
export function keepCalendarPlace(address) {
  const [, place] = address.match(/(#\/calendar\b.*)$/) || [];
  if (place) keepInTab(inTab.place, place.replace(/([?&])(again|maintain)=[^&]*&?/, '$1'));
}

// formBefore returns the form that was open in this tab before a reload, or null.
export const formBefore = () => ofTab(inTab.form);

// keepForm keeps a form for this tab; null forgets it.
export const keepForm = text => keepInTab(inTab.form, text);

// forgetTab forgets what the tab keeps, when its user leaves.
export function forgetTab() {
  for (const name of Object.values(inTab)) keepInTab(name, null);
}

function ofTab(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

function keepInTab(name, text) {
  try {
    if (text === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, text);
  } catch {
    // Where the browser keeps nothing, a reload begins anew.
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
