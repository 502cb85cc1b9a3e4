// SPDX-License-Identifier: Apache-2.0
// Which rows of the list of reservations a search finds, and in which order.

const words = new Intl.Collator(undefined, {numeric: true, sensitivity: 'base'}),
  statuses = ['active', 'starting', 'ending', 'pending', 'waiting', 'ended', 'canceled', 'failed'];

const orders = {
  name: (a, b) => words.compare(a.name, b.name),
  status: (a, b) => statuses.indexOf(a.status) - statuses.indexOf(b.status),
  start: (a, b) => compared(a.start, b.start),
  quantity: (a, b) => a.quantity - b.quantity,
  hosts: (a, b) => words.compare(a.hosts[0] || '', b.hosts[0] || ''),
  project: (a, b, names) => words.compare(names[a.project_id] || a.project_id, names[b.project_id] || b.project_id),
};

// columns are those by which a list can be sorted.
export const columns = Object.keys(orders);

// compared compares times of the API, which are all in UTC and of the same form.
const compared = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// found returns the rows that a search finds: each of its words is in the row, or begins its id. They are sorted by a
// column, then by start.
export function found({rows, search, sort, terms, names}) {
  const matches = matching(search, terms, names);
  return [...rows.values()].filter(matches).sort(comparing(sort, names));
}

// foundAgain returns the same after some rows have changed. The others keep their order, and each of those is put at its
// place: with thousands of rows, comparing all of them would take the most time of all.
export function foundAgain({rows, found: before, search, sort, terms, names}, changed) {
  const compare = comparing(sort, names),
    list = before.filter(({one}) => !changed.has(one.id)),
    fresh = [...changed].map(id => rows.get(id)).filter(row => row && matching(search, terms, names)(row));
  if (fresh.length > MANY) return found({rows, search, sort, terms, names});
  for (const row of fresh) list.splice(placeOf(row, list, compare), 0, row);
  return list;
}

const MANY = 200;

// placeOf returns where a row stands in a sorted list.
function placeOf(row, list, compare) {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compare(list[middle], row) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function matching(search, terms, names) {
  const sought = search.toLowerCase().split(/\s+/).filter(Boolean),
    project = one => (terms.everything ? `${names[one.project_id] || ''}\n${one.project_id}`.toLowerCase() : '');
  return ({one, words}) => sought.every(part => words.includes(part) || one.id.startsWith(part) || project(one).includes(part));
}

function comparing({by, down}, names) {
  const order = orders[by] || orders.start,
    sign = down ? -1 : 1;
  return ({one: a}, {one: b}) => sign * order(a, b, names) || compared(a.start, b.start) || compared(a.id, b.id);
}
