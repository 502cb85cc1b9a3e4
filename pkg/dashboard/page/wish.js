// SPDX-License-Identifier: Apache-2.0
// A wish in words, such as "3 gpu=a100 for 2 days next month", as what a form asks for. Nothing here needs a browser.
import {readOne} from './filter-language.js';
import {length, readLength} from './lengths.js';
import {periodIn} from './periods.js';

const numbers = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve'];

// joining are the words that only join the others.
const joining = /^(for|of|with|on|in|at|the|an?|and|some|any|hosts?|nodes?|servers?|machines?|during|within|sometime)$/i;

const unit = '(?:weeks?|wks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m)',
  lasting = new RegExp(`(?:^|\\s)(\\d+(?:[.,]\\d+)?\\s*${unit}(?:(?:\\s*,|\\s+and)?\\s*\\d+\\s*${unit})*)(?=[\\s,]|$)`, 'i'),
  compared = /(?:^|[\s,])(\$?[\w.:-]+\s*(?:!=|<>|<=|>=|==|≠|≤|≥|∋|=|<|>)\s*(?:"[^"]*"|[^\s,]+))/;

// readWish returns what a text wishes: {quantity, lasts, conditions}, and {from, until} to search or {start} or
// {start, end}, without what it does not name. `unread` is what of it was not understood; then nothing else is there.
export function readWish(text, properties, at) {
  const conditions = [];
  let rest = text.trim();
  for (let match; (match = rest.match(compared)); rest = rest.replace(match[0], ' ')) {
    const one = readOne(match[1], properties);
    if (!one) return {unread: match[1].trim()};
    conditions.push(one);
  }
  const period = periodIn(withDigits(rest), at);
  if (period?.unread) return {unread: period.unread};
  const plain = period ? period.rest : withDigits(rest),
    lasts = plain.match(lasting);
  const words = withWords(lasts ? plain.replace(lasts[1], ' ') : plain, properties);
  if (words.unread) return words;
  return {
    unread: '',
    conditions: [...conditions, ...words.conditions],
    ...(words.quantity && {quantity: words.quantity}),
    ...(lasts && {lasts: length(readLength(lasts[1]))}),
    ...(period && timeOf(period, lasts ? readLength(lasts[1]) : 0)),
  };
}

// timeOf returns the time of a wish. From one day to another without a length is all of that time, and what lasts longer
// than the one day that is named begins with it.
function timeOf({from, until, whole, oneDay, start}, lasts) {
  if (start) return {start};
  if (oneDay && lasts > until - from) return {start: from};
  return whole && !lasts ? {start: from, end: until} : {from, until};
}

// withDigits writes small numbers as digits: two days, a day.
const withDigits = text =>
  text
    .replace(/\b[a-z]+\b/gi, word => (numbers.includes(word.toLowerCase()) ? String(numbers.indexOf(word.toLowerCase()) + 1) : word))
    .replace(/\ban? (?=(?:week|day|hour|minute)\b)/gi, '1 ');

// withWords reads the words that are left: how many, and properties or values by their names.
function withWords(text, properties) {
  const conditions = [],
    unread = [];
  let quantity = '';
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const [, count] = word.match(/^(\d+)[x×]?$/i) || [],
      condition = meant(word, properties);
    if (count && !quantity) quantity = count;
    else if (condition) conditions.push(condition);
    else if (!joining.test(word)) unread.push(word);
  }
  return {conditions, quantity, unread: unread.join(' ')};
}

// meant returns the condition that a word alone means: that a property has it as its value, or that the property of this
// name has any value; null if it means none.
function meant(word, properties) {
  const same = text => String(text).toLowerCase() === word.toLowerCase(),
    best = list => list.find(one => !one.built_in) || list[0],
    property = best(properties.filter(({name}) => same(name)));
  if (property?.type === 'bool') return ['=', `$${property.name}`, true];
  const has = property?.type === 'string' ? (property.values || []).filter(value => !/^(none|no|-|)$/i.test(value)) : [];
  if (has.length > 0) return has.length === 1 ? ['=', `$${property.name}`, has[0]] : ['in', `$${property.name}`, ...has];
  const having = best(properties.filter(({type, values}) => ['string', 'list'].includes(type) && values?.some(same)));
  if (!having) return null;
  const value = having.values.find(same);
  return having.type === 'list' ? ['in', value, `$${having.name}`] : ['=', `$${having.name}`, value];
}
