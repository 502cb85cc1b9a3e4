// SPDX-License-Identifier: Apache-2.0
// What the picture shows: hosts with their claims, in rows.
import {seconds} from './time.js';

export const ROW = 30,
  GROUP = 28;

// hostOf returns a host of an answer of the API with its claims in seconds, each with the part of the row that it
// takes: `top` and `bottom`, from 0 to 1.
export function hostOf(answer) {
  const claims = answer.claims.map(claim => ({
    ...claim,
    start: seconds(claim.start),
    end: seconds(claim.end),
    share: claim.share || 1,
    mine: Boolean(claim.mine),
    id: claim.reservation_id || '',
    name: claim.name || '',
    project: claim.project_id || '',
  }));
  const host = {name: answer.host, facts: answer.facts || null, claims};
  stack(claims);
  return host;
}

// stack lays claims that share a host above each other.
function stack(claims) {
  claims.sort((a, b) => a.start - b.start || b.end - a.end);
  const open = [];
  for (const claim of claims) {
    for (let i = open.length - 1; i >= 0; i--) if (open[i].end <= claim.start) open.splice(i, 1);
    open.sort((a, b) => a.top - b.top);
    let top = 0;
    for (const other of open) {
      if (other.top - top >= claim.share - 1e-9) break;
      top = Math.max(top, other.bottom);
    }
    claim.top = Math.min(top, 0.92);
    claim.bottom = Math.min(1, claim.top + Math.max(claim.share, 0.08));
    open.push(claim);
  }
}

// groupings returns what hosts can be grouped by: the zone, and every property.
export function groupings(hosts) {
  const names = new Set();
  for (const host of hosts) for (const name of Object.keys(host.facts?.properties || {})) names.add(name);
  return [...names].sort();
}

function groupOf(host, by) {
  if (by === 'zone') return host.facts?.zone || '';
  if (by === 'aggregates') return (host.facts?.aggregates || []).join(', ');
  const value = host.facts?.properties?.[by];
  return value === undefined ? '' : Array.isArray(value) ? value.join(', ') : String(value);
}

const compare = new Intl.Collator(undefined, {numeric: true}).compare;

// rowsOf returns the rows in their order, each with its place: hosts, below the heads of their groups.
export function rowsOf(hosts, by) {
  const rows = [];
  let y = 0;
  const add = (row, height) => {
    rows.push({...row, y, height});
    y += height;
  };
  const sorted = [...hosts].sort((a, b) => compare(a.name, b.name));
  if (!by) {
    for (const host of sorted) add({host}, ROW);
    return {rows, height: y};
  }
  const groups = Map.groupBy ? Map.groupBy(sorted, host => groupOf(host, by)) : grouped(sorted, by);
  for (const name of [...groups.keys()].sort((a, b) => (a === '') - (b === '') || compare(a, b))) {
    add({group: name, by, count: groups.get(name).length}, GROUP);
    for (const host of groups.get(name)) add({host}, ROW);
  }
  return {rows, height: y};
}

function grouped(hosts, by) {
  const groups = new Map();
  for (const host of hosts) {
    const name = groupOf(host, by);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(host);
  }
  return groups;
}

// rowAt returns the index of the row at a place, by halves.
export function rowAt(rows, y) {
  let low = 0,
    high = rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (rows[middle].y <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

// claimAt returns the claim of a host at a time; `part` is the height in the row, and -1 means any.
export function claimAt(host, at, part = -1, slack = 0) {
  let best = null;
  for (const claim of host.claims) {
    if (claim.start - slack > at) break;
    if (claim.end + slack > at && (part < 0 || (part >= claim.top && part <= claim.bottom))) best = claim;
  }
  return best;
}

// freeUntil returns until when a host has no claim from a time on; Infinity if none follows.
export const freeUntil = (host, at) =>
  host.claims.reduce((until, claim) => (claim.start >= at ? Math.min(until, claim.start) : until), Infinity);

// searched reports whether a host, or one of its claims, has a name that contains a text.
export function searched(host, text) {
  const wanted = text.trim().toLowerCase();
  return wanted === '' || [host, ...host.claims].some(one => one.name.toLowerCase().includes(wanted));
}

// taken returns the times in which a host has claims, as spans that do not touch, in order.
function taken({claims}) {
  const spans = [];
  for (const {start, end} of claims) {
    const last = spans.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else spans.push({start, end});
  }
  return spans;
}

// freeOver returns how many of the hosts are free and usable between two times, as steps: [{at, free}], in order. A step
// ends where the free hosts change, even if their number stays: all of it is the same hosts. Claims of a part of a host
// count as taken.
export function freeOver(hosts, from, to) {
  const changes = new Map([[from, 0]]),
    add = (at, by) => changes.set(at, (changes.get(at) || 0) + by);
  let free = 0;
  for (const host of hosts.filter(usable)) {
    free++;
    for (const {start, end} of taken(host)) {
      if (end <= from || start >= to) continue;
      add(Math.max(start, from), -1);
      if (end < to) add(end, 1);
    }
  }
  return [...changes].sort(([a], [b]) => a - b).map(([at, by]) => ({at, free: (free += by)}));
}

// maintenanceAt returns the maintenance of a host at a time, if there is one.
export const maintenanceAt = (host, at) => host.claims.find(claim => claim.maintenance && claim.start <= at && at < claim.end);

export const usable = host => !host.facts || (host.facts.reservable && host.facts.state !== 'out_of_order');

// use returns what runs on a host now: free, preemptible, or used.
export function use(host) {
  const facts = host.facts;
  if (!facts) return '';
  if (facts.instance_count === 0) return 'free';
  return facts.preemptible_count !== undefined && facts.preemptible_count === facts.instance_count ? 'preemptible' : 'used';
}
