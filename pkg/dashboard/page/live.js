// SPDX-License-Identifier: Apache-2.0
// Whether the page hears of changes, and how old its last word is.
import {t} from './texts.js';

// silent is the state at first. `on` is true while the stream is open, and `since` is when something came last, on the
// page's clock in milliseconds; null is never.
export const silent = {on: false, since: null};

// heard returns the state after something came at a time: an event, or the sign of life that the service sends every 15
// seconds.
export const heard = (live, at) => (live.on && live.since === at ? live : {on: true, since: at});

// lost returns the state after the stream ended.
export const lost = live => (live.on ? {on: false, since: live.since} : live);

// liveText tells the state at a time.
export function liveText({on, since}, at) {
  if (since === null) return t('connecting');
  const age = Math.floor(Math.max(0, at - since) / 1000);
  return t(on ? 'liveAge' : 'liveOff', {
    age: age < 60 ? t('secondsOld', {seconds: age}) : t('minutesOld', {minutes: Math.floor(age / 60)}),
  });
}
