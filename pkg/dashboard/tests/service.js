// SPDX-License-Identifier: Apache-2.0
// A small service for tests: whole hosts, bookings by the user and by others, and the events that the stream tells. It
// shares no code with the page.
export const HOSTS = ['a', 'b', 'c', 'd'];
const text = at => new Date(at * 1000).toISOString().replace('.000Z', 'Z'),
  instant = one => Date.parse(one) / 1000;

export class Service {
  constructor(now) {
    this.now = now;
    this.reservations = new Map(); // the live ones, by their ids
    this.ever = new Map(); // every state that a reservation had, as text, by its id
    this.events = []; // those that the stream has not delivered
    this.keys = new Map();
    this.made = 0;
  }

  // free returns the hosts that are free in a time, except for one reservation.
  free(start, end, but = '') {
    const taken = [...this.reservations.values()].filter(one => one.id !== but && one.start < end && start < one.end).flatMap(one => one.hosts);
    return HOSTS.filter(host => !taken.includes(host));
  }

  put(one, change) {
    const before = this.reservations.get(one.id);
    if (one.status === 'canceled') this.reservations.delete(one.id);
    else this.reservations.set(one.id, one);
    this.ever.set(one.id, [...(this.ever.get(one.id) || []), claimText(one)]);
    this.events.push({
      type: 'changed',
      change,
      id: one.id,
      name: one.name,
      status: one.status,
      mine: one.mine,
      start: Math.min(one.start, before?.start ?? one.start),
      end: Math.max(one.end, before?.end ?? one.end),
      hosts: [...new Set([...one.hosts, ...(before?.hosts || [])])],
    });
    return one;
  }

  // book makes a reservation of the first free hosts, or returns null.
  book({name, start, duration, quantity = 1, hosts = HOSTS}, mine) {
    const free = this.free(start, start + duration).filter(host => hosts.includes(host));
    if (free.length < quantity) return null;
    const id = `r${++this.made}`;
    return this.put({id, name, mine, start, end: start + duration, hosts: free.slice(0, quantity), status: 'pending', kind: 'host'}, 'created');
  }

  cancel(id) {
    const one = this.reservations.get(id);
    if (one) this.put({...one, status: 'canceled'}, 'changed');
  }

  // answer returns what the service answers to a request of the page: {answer} or {error}.
  answer(request) {
    const [, of] = request.path?.match(/^v1\/reservations\/(\w+)$/) || [],
      one = this.reservations.get(of);
    if (request.provided && one && Object.entries(request.provided).some(([name, value]) => asAnswer(one)[name] !== value))
      return {error: {status: 412, message: 'changed by somebody', passes: false, field: '', refusal: null, now: asAnswer(one)}}; // as client.js does
    if (request.calendar) return {answer: this.calendar(request.query)};
    if (request.method === 'POST' && request.path === 'v1/reservations') return this.post(request);
    if (request.method === 'PATCH') return this.patch(request);
    if (one && !request.method) return {answer: asAnswer(one)};
    if (request.path === 'v1/availability') return {answer: {windows: []}};
    if (request.path === 'v1/properties') return {answer: {properties: []}};
    return {error: {status: 404, message: `nothing is at ${request.path}`, passes: false, refusal: null, field: ''}};
  }

  calendar({start, end, host}) {
    const [from, to] = [instant(start), instant(end)],
      names = host ? host.split(',') : HOSTS;
    return {
      unknown: [],
      hosts: names.map(name => ({
        host: name,
        facts: null,
        claims: [...this.reservations.values()]
          .filter(one => one.hosts.includes(name) && one.start < to && from < one.end)
          .map(one => ({
            start: text(one.start),
            end: text(one.end),
            kind: 'host',
            share: 1,
            mine: one.mine,
            status: one.mine ? one.status : undefined,
            reservation_id: one.mine ? one.id : undefined,
            name: one.mine ? one.name : undefined,
          })),
      })),
    };
  }

  post({body, query, headers = {}}) {
    const key = headers['Idempotency-Key'];
    if (key && this.keys.has(key)) return {answer: this.keys.get(key)};
    const wanted = {...this.timeOf(body), quantity: body.quantity, hosts: hostsOf(body.host_properties)},
      {start, duration} = wanted,
      free = this.free(start, start + duration).filter(host => wanted.hosts.includes(host));
    if (free.length < body.quantity || duration <= 0) return refused(`${free.length} of ${body.quantity} hosts are free`);
    if (query?.dry_run)
      return {
        answer: {
          offer: {start: text(start), end: text(start + duration), quantity: body.quantity, matched: wanted.hosts.length, hosts: free.slice(0, body.quantity)},
        },
      };
    const made = asAnswer(this.book({name: body.name, ...wanted}, true));
    if (key) this.keys.set(key, made);
    return {answer: made};
  }

  // timeOf returns the start and the length that a request gets: a start with a length or an end, or the first hour between
  // two times from which all hosts of the quantity are free.
  timeOf({start_time: from, end_time: until, duration, quantity}) {
    const start = from ? instant(from) : this.now();
    if (!until || !duration) return {start, duration: duration ?? instant(until) - start};
    for (let at = start; at + duration <= instant(until); at += 3600) if (this.free(at, at + duration).length >= quantity) return {start: at, duration};
    return {start, duration};
  }

  patch({path, body, query}) {
    const id = path.split('/').at(-1),
      one = this.reservations.get(id);
    if (!one) return {error: {status: 404, message: `there is no reservation ${id}`, passes: false, refusal: null, field: ''}};
    const start = body.start_time ? instant(body.start_time) : one.start,
      end = body.end_time ? instant(body.end_time) : one.end;
    if (end <= start || !one.hosts.every(host => this.free(start, end, id).includes(host))) return refused('a host is not free');
    if (query?.dry_run) return {answer: {offer: {start: text(start), end: text(end), quantity: one.hosts.length, hosts: one.hosts}}};
    return {answer: asAnswer(this.put({...one, start, end, name: body.name ?? one.name}, 'changed'))};
  }
}

const refused = message => ({error: {status: 409, message, passes: false, field: '', refusal: {blocked_by: [], earliest_start: null, largest_quantity: 0, latest_end: null}}});
const asAnswer = one => ({...one, start: text(one.start), end: text(one.end), quantity: one.hosts.length});

// hostsOf returns the hosts of a filter by their names.
function hostsOf(filter) {
  if (!filter) return HOSTS;
  const names = JSON.stringify(filter).match(/"[a-d]"/g) || [];
  return names.length ? names.map(name => name[1]) : HOSTS;
}

// claimText writes what the page may show of a reservation.
export const claimText = ({start, end, mine}) => `${start}-${end} ${mine}`;
