// SPDX-License-Identifier: Apache-2.0
// The texts of the offers in the form of a booking in English, as those in texts.js; they are loaded with them.
export const texts = {
  atLeast: '{field}, at least',
  atMost: '{field}, at most',
  theSame: 'the same',
  mostWrong: 'The largest quantity is a number from the smallest one.',
  longestWrong: 'The longest duration is not shorter than the shortest one.',
  offersHint: 'Almanac looks for what is free in this time, and names what each offer lacks.',
  offersOf: 'Offers',
  offersFound: '{count} offers, the largest first.',
  offersFound_one: 'One offer.',
  offersStale: 'These offers may be out of date. Press Show offers to see what is free now.',
  offersIncomplete: 'The search has ended before it has tried everything, so there may be better offers.',
  offerWhole: 'all that you asked for',
  fewerHosts: '{count} hosts fewer',
  fewerHosts_one: '{count} host fewer',
  fewerInstances: '{count} instances fewer',
  fewerInstances_one: '{count} instance fewer',
  laterBy: '{length} later',
  holdIt: 'Hold for {length}',
};
