// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"fmt"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// memory is what a service knows, under mu: what the records held at some moment, host by host, and
// what this service is about to store. A decision reads memory only. Its commit names the versions of the
// hosts that it was made on, and the records refuse it if these have changed. Then the service reads
// what has changed and decides again. The version that memory has of a host increases only
// while memory holds every live claim that the records had on the host in that version. A
// project has a version too, which increases with each commit after which the project holds
// more hosts at some instant. If there is a limit on hosts, a commit names this version, and
// the same rules hold for it and the project's claims.
type memory struct {
	options   Options
	woken     chan struct{} // something may be due
	news      chan struct{} // what is promised has changed
	newest    atomic.Pointer[state]
	kept      keptDemands
	adoptions atomic.Int64 // how often memory has taken something over from the records

	mu         memoryLock
	hosts      *planning.HostIndex
	calendar   *calendar.Calendar
	live       map[string]*entry
	liveIndex  liveIndex // the reservations in live
	namers     namers    // among them
	counted    Counted   // the same
	marks      uint64    // see Fingerprint
	listener   Listener
	held       map[string]planning.Held
	configured int // how often the rules were replaced
	agenda     agenda
	openings   openings
	pruned     span.Instant // the calendar no longer has claims that ended by then

	known      map[string]int64      // versions, by host
	projects   map[string]int64      // versions, by project; used if there is a limit
	attempts   map[*attempt]struct{} // in flight or in doubt
	logCursor  logCursor
	followed   span.Instant // see FollowedUntil
	tombstones tombstones
}

// newMemory returns a memory without hosts and reservations.
func newMemory(o Options) *memory {
	return &memory{
		options:   o,
		woken:     make(chan struct{}, 1),
		news:      make(chan struct{}, 1),
		openings:  openings{heard: make(chan struct{}, 1)},
		hosts:     &planning.HostIndex{},
		calendar:  calendar.New(nil, o.Now()),
		live:      make(map[string]*entry),
		liveIndex: newLiveIndex(),
		namers:    make(namers),
		counted:   Counted{ByStatus: make(map[reservation.Status]int)},
		held:      make(map[string]planning.Held),
		known:     make(map[string]int64),
		projects:  make(map[string]int64),
		attempts:  make(map[*attempt]struct{}),
	}
}

// entry is a live reservation.
type entry struct {
	changing *turns.Gate // held while the reservation changes here

	// Guarded by memory.mu. While an attempt is being stored, r is the stored state; for a new
	// reservation, it is the state that is being stored.
	r       reservation.Reservation
	indexed *reservation.Reservation // r, as the index has it
	attempt *attempt
	over    bool // it is no longer in memory.live
	// endRetried is when this replica first repeated the reservation's end after a failure.
	endRetried span.Instant
}

// load adds live reservations to a memory that has none.
func (m *memory) load(list []reservation.Reservation) error {
	var hosts []string
	for i := range list {
		for _, c := range list[i].Claims {
			hosts = append(hosts, c.Host)
		}
	}
	m.admit(hosts)
	byProject := make(map[string][]*reservation.Reservation)
	for i := range list {
		r := &list[i]
		if err := m.calendar.Restore(m.calendarClaims(r, r.Claims)...); err != nil {
			return fmt.Errorf("load reservation %s of project %s: %w", r.ID, r.ProjectID, err)
		}
		e := &entry{r: *r, changing: turns.New(1, 0)}
		m.live[r.ID] = e
		m.index(e)
		byProject[r.ProjectID] = append(byProject[r.ProjectID], r)
	}
	for project, all := range byProject {
		m.setHeld(project, planning.HeldBy(all))
	}
	m.agenda = newAgenda(m.live)
	return nil
}

// Observe replaces the inventory with a newer one.
func (m *memory) Observe(s *inventory.Snapshot) {
	for {
		m.mu.RLock()
		before := m.hosts
		m.mu.RUnlock()
		var added []resource.Vector
		next, only := before.WithState(s)
		if !only {
			next, added = before.With(planning.OrderHosts(s))
		}
		if m.takeOver(before, next, added, !only) {
			return
		}
	}
}

// takeOver replaces the host index; facts is true if more than the state of hosts may have changed. It returns false if another call has replaced it in the
// meantime.
func (m *memory) takeOver(before, next *planning.HostIndex, added []resource.Vector, facts bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hosts != before {
		return false
	}
	for _, capacity := range added {
		m.calendar.AddHost(capacity)
	}
	for number := range next.Names() {
		if h := next.Host(number); h != nil {
			m.calendar.SetCapacity(number, h.Capacity)
		}
	}
	if facts {
		m.openings.note(m.liveIndex.waiting, planning.Freed{All: true})
	}
	m.hosts = next
	return true
}

// admit adds hosts that have claims but are not in the inventory; mu is held.
func (m *memory) admit(names []string) {
	next, added := m.hosts.Admit(names)
	for range added {
		m.calendar.AddHost(resource.Vector{})
	}
	m.hosts = next
}

// Configure replaces the rules for later decisions.
func (m *memory) Configure(l planning.Limits, defaults planning.Defaults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.Limits, m.options.Defaults = l, defaults
	m.configured++
	m.openings.note(m.liveIndex.waiting, planning.Freed{All: true})
}

// limits returns the limits as they are configured now.
func (m *memory) limits() planning.Limits {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.options.Limits
}

// limited reports whether there is a limit on the sum of what a project holds.
func (m *memory) limited() bool {
	l := m.limits()
	return l.Hosts > 0 || l.HostSeconds > 0
}

// Prune removes past claims from the calendar, except those of live reservations: their end may
// be late, or the clock may be set back.
func (m *memory) Prune() {
	m.mu.Lock()
	defer m.mu.Unlock()
	over := m.options.Now()
	if first, ok := m.liveIndex.byRelease.first(); ok {
		over = min(over, first-1)
	}
	m.pruned = max(m.pruned, over)
	m.calendar.Prune(over)
	m.tombstones.age()
	if len(m.agenda) > 2*len(m.live)+agendaSlack {
		m.agenda = newAgenda(m.live)
	}
}

// agendaSlack is the number of outdated appointments from which the agenda is rebuilt.
const agendaSlack = 1000

// addLive adds a reservation to the live ones; the calendar contains its claims already.
func (m *memory) addLive(e *entry) {
	m.live[e.r.ID] = e
	m.index(e)
	m.setHeld(e.r.ProjectID, m.held[e.r.ProjectID].With(&e.r))
	m.agenda.enter(&e.r)
}

// replace replaces a reservation's state in memory, and adds its next event to the agenda if this
// event has changed. The caller holds mu.
func (m *memory) replace(e *entry, r reservation.Reservation) {
	before, had := nextDue(&e.r)
	m.unindex(e)
	if !holdsSame(&e.r, &r) || e.r.HeldUntil() != r.HeldUntil() {
		m.setHeld(r.ProjectID, m.held[r.ProjectID].Without(&e.r).With(&r))
	}
	e.r = r
	m.index(e)
	if after, has := nextDue(&e.r); has && (!had || after != before) {
		m.agenda.enter(&e.r)
	}
}

// forget removes a reservation from the live ones; its claims have been removed from the calendar
// already.
func (m *memory) forget(e *entry) {
	m.setHeld(e.r.ProjectID, m.held[e.r.ProjectID].Without(&e.r))
	delete(m.live, e.r.ID)
	m.unindex(e)
	e.over = true
}

// index adds the state of an entry to the index of live reservations.
func (m *memory) index(e *entry) {
	r := e.r
	e.indexed = &r
	m.liveIndex.add(e.indexed)
	m.namers.add(e.indexed)
	m.counted.add(e.indexed, 1)
	m.marks += markOf(e.indexed)
}

// unindex removes an entry from the index of live reservations.
func (m *memory) unindex(e *entry) {
	m.liveIndex.remove(e.indexed)
	m.namers.remove(e.indexed)
	m.counted.add(e.indexed, -1)
	m.marks -= markOf(e.indexed)
}

// release removes claims from the calendar. A claim that ended before pruned may be missing: the
// calendar has pruned it. If any other claim is missing, memory is corrupt, and release panics
// rather than promise a host twice.
func (m *memory) release(claims []calendar.Claim) {
	for _, c := range claims {
		if err := m.calendar.Remove(c); err != nil && c.Span.End > m.pruned {
			panic(fmt.Sprintf("booking: the calendar lost a claim: %v", err))
		}
	}
}

// restoreClaims adds the claims of a reservation, for which there is room, to the calendar.
func (m *memory) restoreClaims(r *reservation.Reservation) { m.restore(m.calendarClaims(r, r.Claims)) }

// restore adds claims to the calendar that it contained a moment ago, or for which room was just
// made. It panics if there is no room for them.
func (m *memory) restore(claims []calendar.Claim) {
	if err := m.calendar.Restore(claims...); err != nil {
		panic(fmt.Sprintf("booking: what was held is taken: %v", err))
	}
}

// calendarClaims returns claims of r in the calendar's form.
func (m *memory) calendarClaims(r *reservation.Reservation, claims []reservation.Claim) []calendar.Claim {
	return m.hosts.Claims(r, claims)
}

// holding returns the claims that the calendar contains for an entry.
func (m *memory) holding(e *entry) []calendar.Claim {
	if e.attempt != nil && e.attempt.held != nil {
		return e.attempt.held
	}
	return m.calendarClaims(&e.r, e.r.Claims)
}

// revert removes an attempt that was not stored, and restores the old claims in the calendar.
func (m *memory) revert(a *attempt) {
	m.endAttempt(a.entry)
	if a.before.ID == "" {
		m.forget(a.entry)
	}
}

// put replaces a reservation in memory by its stored state; the calendar contains its claims
// already.
func (m *memory) put(r reservation.Reservation) {
	e, live := m.live[r.ID]
	m.tell(e, &r)
	m.openings.learn(m.liveIndex.waiting, e, &r, m.options.Now())
	if live {
		m.endAttempt(e)
	}
	switch {
	case !live:
		m.addLive(&entry{r: r, changing: turns.New(1, 0)})
	case r.Status.Live():
		m.replace(e, r)
	default:
		m.forget(e)
		m.tombstones.add(r.ID, r.Version)
	}
}

// endAttempt ends the attempt of an entry, if there is one.
func (m *memory) endAttempt(e *entry) {
	a := e.attempt
	if a == nil {
		return
	}
	if a.before.ID != "" {
		m.countMore(a, -1)
	}
	a.over = true
	delete(m.attempts, a)
	e.attempt = nil
}

// entry returns the entry of a live reservation.
func (m *memory) entry(id string) (*entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, ok := m.live[id]
	return e, ok
}

func (m *memory) wake() { job.Poke(m.woken) }

// Requests and events for a reservation take turns: a start or an end waits for at most one
// request.
const byRequest, byEvent = "request", "event"
