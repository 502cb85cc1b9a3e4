// SPDX-License-Identifier: Apache-2.0
// Filters in Almanac's language, as conditions that people read. Nothing here needs a browser.

const signs = {'=': '=', '!=': '≠', '<': '<', '<=': '≤', '>': '>', '>=': '≥'};

const isName = value => typeof value === 'string' && value.startsWith('$'),
  isPlain = value => ['string', 'number', 'boolean'].includes(typeof value) && !isName(value);

// isSimple reports whether a rule is one condition: a comparison, or that a list contains a value.
function isSimple(rule) {
  if (!Array.isArray(rule)) return false;
  const [operator, ...rest] = rule;
  if (operator === '==' || Object.hasOwn(signs, operator)) return rest.length === 2 && isName(rest[0]) && isPlain(rest[1]);
  if (operator !== 'in' || rest.length < 2) return false;
  return (isPlain(rest[0]) && isName(rest[1]) && rest.length === 2) || (isName(rest[0]) && rest.slice(1).every(isPlain));
}

// conditionsOf returns the conditions of a filter if all of them must hold and each is simple; null for any other
// filter, which only its own text shows. An empty filter has none.
export function conditionsOf(filter) {
  if (filter.trim() === '') return [];
  let rule;
  try {
    rule = JSON.parse(filter);
  } catch {
    return null;
  }
  if (isSimple(rule)) return [rule];
  return Array.isArray(rule) && rule[0] === 'and' && rule.length > 1 && rule.slice(1).every(isSimple) ? rule.slice(1) : null;
}

// filterOf returns the filter in which all conditions hold.
export function filterOf(conditions) {
  if (conditions.length === 0) return '';
  return JSON.stringify(conditions.length === 1 ? conditions[0] : ['and', ...conditions]);
}

// textOf returns a condition as people write it: gpu = a100.
export function textOf([operator, a, ...rest]) {
  if (operator !== 'in') return `${a.slice(1)} ${signs[operator] || '='} ${rest[0]}`;
  return isName(a) ? `${a.slice(1)} = ${rest.join(' | ')}` : `${rest[0].slice(1)} ∋ ${a}`;
}

// condition returns the condition that a property, an operator and a value make.
export function condition(property, operator, value) {
  const typed = property.type === 'number' ? Number(value) : property.type === 'bool' ? String(value) === 'true' : value;
  return property.type === 'list' ? ['in', typed, `$${property.name}`] : [operator, `$${property.name}`, typed];
}

// operatorsOf returns the operators of a property, each with its sign.
export function operatorsOf({type}) {
  if (type === 'list') return [['in', '∋']];
  const all = Object.entries(signs);
  return type === 'number' ? all : type === 'bool' ? all.slice(0, 1) : all.slice(0, 2);
}

// read returns the conditions of a text such as `gpu=a100, memory>=64`, or of a filter in the language, for the
// properties that exist; null if it is no such text.
export function read(text, properties) {
  if (text.trim().startsWith('[')) return ruleOf(text);
  const found = text.split(',').map(one => readOne(one.trim(), properties));
  return found.includes(null) ? null : found;
}

// ruleOf returns a filter that is written in the language: its conditions, or itself as one.
function ruleOf(text) {
  try {
    return conditionsOf(text) || [JSON.parse(text)];
  } catch {
    return null;
  }
}

export function readOne(text, properties) {
  const [, name = '', sign, written = ''] = text.match(/^\$?([\w.:-]+)\s*(!=|<>|<=|>=|==|≠|≤|≥|∋|=|<|>)\s*(.+)$/) || [],
    value = written.replace(/^"(.*)"$/, '$1'),
    property = properties.find(one => one.name === name) || properties.find(one => one.name.toLowerCase() === name.toLowerCase()),
    operator = {'==': '=', '<>': '!=', '∋': 'in'}[sign] || Object.keys(signs).find(one => one === sign || signs[one] === sign);
  if (!property || !fits(property, operator, value)) return null;
  return condition(property, operator, property.type === 'bool' ? value.toLowerCase() : value);
}

// fits reports whether a property can be compared so. A list can only be searched for an element.
function fits({type}, operator, value) {
  if (type === 'list') return ['=', 'in'].includes(operator);
  if (type === 'bool') return ['=', '!='].includes(operator) && /^(true|false)$/i.test(value);
  return operator !== 'in' && (type !== 'number' || !Number.isNaN(Number(value)));
}

// joined returns a filter for hosts that pass both a filter and a condition. A filter that is no JSON stays as it is:
// the service explains what is wrong with it.
export function joined(filter, more) {
  if (filter.trim() === '') return JSON.stringify(more);
  let before;
  try {
    before = JSON.parse(filter);
  } catch {
    return filter;
  }
  const parts = Array.isArray(before) && before[0] === 'and' ? before.slice(1) : [before],
    same = JSON.stringify(more);
  return parts.some(one => JSON.stringify(one) === same) ? filter : JSON.stringify(['and', ...parts, more]);
}
