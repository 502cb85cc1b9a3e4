// SPDX-License-Identifier: Apache-2.0
// What the service answers to a form: an offer, a refusal, the windows with room; and what the user can take instead.
import {seconds} from './time.js';

export const windowsOf = answer =>
  answer.windows.map(one => ({start: seconds(one.start), end: seconds(one.end), latest: seconds(one.latest_start), free: one.free}));

// offerOf returns what the request with this body would get.
export const offerOf = (offer, body) => ({
  body,
  start: seconds(offer.start),
  end: seconds(offer.end),
  hosts: offer.hosts || [],
  quantity: offer.quantity,
  matched: offer.matched,
  delayed: Boolean(offer.delayed_by_boot),
  servers: offer.servers || [],
});

// refusalOf returns why the request with this body was refused. It is `real` if there is no room, and not if the request
// is wrong.
export function refusalOf({message, field, refusal}, body) {
  const instant = text => (text ? seconds(text) : null);
  return {
    body,
    message,
    field,
    real: Boolean(refusal),
    blocked: (refusal?.blocked_by || []).map(one => within(body, {...one, start: seconds(one.start), end: seconds(one.end)})),
    earliest: instant(refusal?.earliest_start),
    largest: refusal?.largest_quantity || 0,
    latest: instant(refusal?.latest_end),
  };
}

// within returns the part of a block that lies in the time that was asked for. The service joins reservations that follow
// one another, and names those in this time.
function within({start_time: start, end_time: end, duration}, block) {
  const from = start ? seconds(start) : -Infinity,
    until = end ? seconds(end) : start ? from + duration : Infinity;
  return {...block, start: Math.max(block.start, from), end: Math.min(block.end, until)};
}

const wholeMinute = at => Math.ceil(at / 60) * 60;

// alternatives returns what can be taken instead of what was refused, each as {id, choice}.
export function alternatives(form) {
  const {refusal, mode} = form;
  if (!refusal) return [];
  return (mode === 'change' ? ofChange(form) : ofBooking(form)).filter(Boolean).map(choice => ({id: `take-${names[choice.what]}`, choice}));
}

const names = {start: 'earliest', quantity: 'fewer', until: 'until', move: 'move', elsewhere: 'elsewhere'};

function ofBooking({refusal: {body, earliest, largest, latest}, fields}) {
  const start = earliest && {what: 'start', at: wholeMinute(earliest)};
  if (fields.when === 'offers') return body.windows ? [start] : []; // else an offer is gone: others are asked for
  return [start, largest > 0 && largest < Number(fields.quantity) && {what: 'quantity', quantity: largest}, latest && {what: 'until', at: latest}];
}

// ofChange: the latest end that is possible, another time of the same length if the reservation has not begun, and the
// time that was added on other hosts, once it is known to be free there.
function ofChange({refusal: {earliest, latest}, before, movable, elsewhere}) {
  return [
    latest && latest !== before.end && {what: 'until', at: latest},
    earliest && movable && {what: 'move', at: wholeMinute(earliest)},
    elsewhere && {what: 'elsewhere', ...elsewhere},
  ];
}

// startOf returns the start that a click on a window takes: a whole minute, if it is in the window.
export const startOf = ({start, latest}) => Math.min(wholeMinute(start), Math.max(start, latest));
