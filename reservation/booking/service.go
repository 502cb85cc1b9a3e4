// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Caller is the user who makes a request.
type Caller struct {
	ProjectID, UserID string
	// RequestID is the id of the API request, for the audit trail.
	RequestID string
	// Admin is true if the caller may use the reservations of every project.
	Admin bool
	// SeesHidden is true if the caller may use hidden properties in filters.
	SeesHidden bool
}

// Options configure a Service.
type Options struct {
	Records  Records
	Keys     Keys
	Reader   Reader
	Limits   planning.Limits
	Defaults planning.Defaults
	LeadTime int64 // seconds before a start within which its hosts should be empty
	// Migrates is true if the instances of others are migrated off reserved hosts.
	Migrates bool
	// Images returns the current facts about images, which are immutable. If it is nil or
	// returns nil, decisions ignore images.
	Images func() *staging.Facts
	// Enforcement makes the checks that must allow a booking or a change; nil means that there are
	// none.
	Enforcement *enforcement.Checker
	// Cloud carries out events in the cloud; nil means that there is no cloud.
	Cloud Cloud
	// Addresses reads the pool of floating IPs; nil means that there is none. Networks carries out the
	// events of floating IPs in the cloud.
	Addresses Addresses
	Networks  Cloud
	// Replica is the name of this replica among those that share the records.
	Replica string
	// Parallel is the number of events that are carried out concurrently, for which CarryOut does
	// not wait. 0 means that CarryOut carries them out itself, one after the other.
	Parallel int
	// Deciding is the number of decisions of one project that are made concurrently, each on one
	// processor; 0 means one. One more may be made for another project, so that no project waits
	// for the long decisions of a single one.
	Deciding int
	// Announce informs the other replicas that something was stored. It must not block; nil means
	// that nobody is informed.
	Announce func()
	Now      func() span.Instant
	// Elapsed is the time since some moment, on a monotonic clock; nil uses Now.
	Elapsed func() time.Duration
	NewID   func() string
}

// Service books reservations. It is safe for concurrent use, and any number of services
// may share the same records.
//
// Memory holds what the records held at some moment, host by host, and what this service is
// about to store. A decision reads memory only. Its commit names the versions of the hosts
// that it was made on, and the records refuse it if these have changed. Then the service reads
// what has changed and decides again. The version that memory has of a host increases only
// while memory holds every live claim that the records had on the host in that version. A
// project has a version too, which increases with each commit after which the project holds
// more hosts at some instant. If there is a limit on hosts, a commit names this version, and
// the same rules hold for it and the project's claims.
//
// A decision is made on an immutable state, outside all locks that others wait for. Two
// gates, at which the projects take turns, admit decisions: one admits decisions that claim
// time, one at a time; the other admits as many decisions of a project as leave one processor
// free, and one more of another project. A decision is entered under mu if it still holds, and is made again if not.
//
// The locks, in the order in which they are taken:
//
//   - one per idempotency key, held while a request with this key is booked;
//   - one per project, held while a lease without reservations is booked;
//   - one per lease, held while the lease changes here;
//   - one per reservation, in the order of their ids, held while the reservation changes here;
//   - the gates, left before anything is stored;
//   - one per host and one per project with a limit, in the order of their names, held while
//     time on the host, or for the project, is claimed here;
//   - reading, held while the records are read;
//   - mu, over memory, held to read or enter something, never while deciding, storing or
//     reading records;
//   - those of Records.
//
// The checks of package enforcement are asked, about a decision that is not entered, while none of
// them is held except that of the idempotency key. Then the decision is made again.
//
// No request waits for any of them, except mu, longer than it lasts. A new claim enters the
// calendar before it is stored, and an old one leaves it afterwards, so that whatever happens
// in between, the calendar holds too much rather than too little.
type Service struct {
	options  Options
	woken    chan struct{}                   // something may be due
	news     chan struct{}                   // what is promised has changed
	keys     locks[[2]string]                // by project and key
	empty    locks[string]                   // by project
	leases   locks[string]                   // by id
	claiming locks[string]                   // by host, or project with a limit
	together *job.Together[string, *attempt] // new reservations, by project
	reading  contextMutex                    // held while the records are read
	follows  job.Shared[struct{}]
	slots    contextMutex // for events that are carried out concurrently
	changes  *turns.Gate  // for decisions that claim time, one at a time
	deciding *turns.Gate  // for all decisions
	newest   atomic.Pointer[state]
	kept     keptDemands
	working  work

	adoptions atomic.Int64 // how often memory has taken something over from the records
	stale     atomic.Int64

	mu         memoryLock
	hosts      *planning.HostIndex
	calendar   *calendar.Calendar
	live       map[string]*entry
	liveIndex  liveIndex // the reservations in live
	counted    Counted   // the same
	marks      uint64    // see Fingerprint
	listener   Listener
	held       map[string]planning.Held
	configured int // how often the rules were replaced
	agenda     agenda
	pruned     span.Instant // the calendar no longer has claims that ended by then

	known      map[string]int64      // versions, by host
	projects   map[string]int64      // versions, by project; used if there is a limit
	attempts   map[*attempt]struct{} // in flight or in doubt
	logCursor  logCursor
	followed   span.Instant // see FollowedUntil
	tombstones tombstones
}

// Requests and events for a reservation take turns: a start or an end waits for at most one
// request.
const byRequest, byEvent = "request", "event"

// entry is a live reservation.
type entry struct {
	changing *turns.Gate // held while the reservation changes here

	// Guarded by Service.mu. While an attempt is being stored, r is the stored state; for a new
	// reservation, it is the state that is being stored.
	r       reservation.Reservation
	indexed *reservation.Reservation // r, as the index has it
	attempt *attempt
	over    bool // it is no longer in Service.live
	// endRetried is when this replica first repeated the reservation's end after a failure.
	endRetried span.Instant
}

// Open returns a service with the hosts of s and the live reservations in the records. It fails
// if stored reservations contradict each other.
func Open(ctx context.Context, o Options, s *inventory.Snapshot) (*Service, error) {
	d := &Service{
		options:   o,
		woken:     make(chan struct{}, 1),
		news:      make(chan struct{}, 1),
		reading:   newContextMutex(),
		slots:     newSlots(max(1, o.Parallel)),
		hosts:     &planning.HostIndex{},
		calendar:  calendar.New(nil, o.Now()),
		live:      make(map[string]*entry),
		liveIndex: newLiveIndex(), counted: Counted{ByStatus: make(map[reservation.Status]int)},
		changes:  turns.New(1, 0),
		deciding: turns.New(max(1, o.Deciding)+1, max(1, o.Deciding)),
		held:     make(map[string]planning.Held),
		known:    make(map[string]int64),
		projects: make(map[string]int64),
		attempts: make(map[*attempt]struct{}),
	}
	d.together = d.companies()
	d.follows = job.Shared[struct{}]{Limit: followLimit, Read: func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.poll(ctx, Recall{})
	}}
	d.Observe(s)
	asked := o.Now()
	all, err := o.Records.Recall(ctx, Recall{All: true, Projects: d.projectVersion})
	if err != nil {
		return nil, fmt.Errorf("load reservations: %w", err)
	}
	if err := d.load(all.Reservations); err != nil {
		return nil, err
	}
	for _, h := range all.Hosts {
		d.known[h.Host] = h.Version
	}
	for _, p := range all.Projects {
		d.projects[p.Project] = p.Version
	}
	d.logCursor.begin(all.Log)
	d.followed = asked
	return d, nil
}

// load adds live reservations to a memory that has none.
func (d *Service) load(list []reservation.Reservation) error {
	var hosts []string
	for i := range list {
		for _, c := range list[i].Claims {
			hosts = append(hosts, c.Host)
		}
	}
	d.admit(hosts)
	byProject := make(map[string][]*reservation.Reservation)
	for i := range list {
		r := &list[i]
		if err := d.calendar.Restore(d.calendarClaims(r, r.Claims)...); err != nil {
			return fmt.Errorf("load reservation %s of project %s: %w", r.ID, r.ProjectID, err)
		}
		e := &entry{r: *r, changing: turns.New(1, 0)}
		d.live[r.ID] = e
		d.index(e)
		byProject[r.ProjectID] = append(byProject[r.ProjectID], r)
	}
	for project, all := range byProject {
		d.setHeld(project, planning.HeldBy(all))
	}
	d.agenda = newAgenda(d.live)
	return nil
}

// Observe replaces the inventory with a newer one.
func (d *Service) Observe(s *inventory.Snapshot) {
	for {
		d.mu.RLock()
		before := d.hosts
		d.mu.RUnlock()
		var added []resource.Vector
		next, only := before.WithState(s)
		if !only {
			next, added = before.With(planning.OrderHosts(s))
		}
		if d.takeOver(before, next, added) {
			return
		}
	}
}

// takeOver replaces the host index. It returns false if another call has replaced it in the
// meantime.
func (d *Service) takeOver(before, next *planning.HostIndex, added []resource.Vector) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hosts != before {
		return false
	}
	for _, capacity := range added {
		d.calendar.AddHost(capacity)
	}
	for number := range next.Names() {
		if h := next.Host(number); h != nil {
			d.calendar.SetCapacity(number, h.Capacity)
		}
	}
	d.hosts = next
	return true
}

// admit adds hosts that have claims but are not in the inventory; mu is held.
func (d *Service) admit(names []string) {
	next, added := d.hosts.Admit(names)
	for range added {
		d.calendar.AddHost(resource.Vector{})
	}
	d.hosts = next
}

// Configure replaces the rules for later decisions.
func (d *Service) Configure(l planning.Limits, defaults planning.Defaults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.options.Limits, d.options.Defaults = l, defaults
	d.configured++
}

// limits returns the limits as they are configured now.
func (d *Service) limits() planning.Limits {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.options.Limits
}

// Offer returns what Book would do now, without doing it.
func (d *Service) Offer(ctx context.Context, by Caller, req reservation.Request) (planning.Plan, error) {
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return planning.Plan{}, err
	}
	defer d.deciding.Leave(by.ProjectID)
	return planning.NewPlan(d.view(by, by.ProjectID).View, req)
}

// InTurn runs do when the project has its turn, as for a decision. Large answers are computed in
// this way, so that they leave a processor for other requests.
func (d *Service) InTurn(ctx context.Context, project string, do func()) error {
	if err := d.deciding.Enter(ctx, project); err != nil {
		return err
	}
	defer d.deciding.Leave(project)
	do()
	return nil
}

// Prune removes past claims from the calendar, except those of live reservations: their end may
// be late, or the clock may be set back.
func (d *Service) Prune() {
	d.mu.Lock()
	defer d.mu.Unlock()
	over := d.options.Now()
	if first, ok := d.liveIndex.byRelease.first(); ok {
		over = min(over, first-1)
	}
	d.pruned = max(d.pruned, over)
	d.calendar.Prune(over)
	d.tombstones.age()
	if len(d.agenda) > 2*len(d.live)+agendaSlack {
		d.agenda = newAgenda(d.live)
	}
}

// agendaSlack is the number of outdated appointments from which the agenda is rebuilt.
const agendaSlack = 1000

// Stale returns how often a commit was refused because the records had changed.
func (d *Service) Stale() int64 { return d.stale.Load() }

func (d *Service) elapsed() time.Duration {
	if d.options.Elapsed == nil {
		return time.Duration(d.options.Now()) * time.Second
	}
	return d.options.Elapsed()
}

// addLive adds a reservation to the live ones; the calendar contains its claims already.
func (d *Service) addLive(e *entry) {
	d.live[e.r.ID] = e
	d.index(e)
	d.setHeld(e.r.ProjectID, d.held[e.r.ProjectID].With(&e.r))
	d.agenda.enter(&e.r)
}

// replace replaces a reservation's state in memory, and adds its next event to the agenda if this
// event has changed. The caller holds mu.
func (d *Service) replace(e *entry, r reservation.Reservation) {
	before, had := nextDue(&e.r)
	d.unindex(e)
	if !holdsSame(&e.r, &r) {
		d.setHeld(r.ProjectID, d.held[r.ProjectID].Without(&e.r).With(&r))
	}
	e.r = r
	d.index(e)
	if after, has := nextDue(&e.r); has && (!had || after != before) {
		d.agenda.enter(&e.r)
	}
}

// forget removes a reservation from the live ones; its claims have been removed from the calendar
// already.
func (d *Service) forget(e *entry) {
	d.setHeld(e.r.ProjectID, d.held[e.r.ProjectID].Without(&e.r))
	delete(d.live, e.r.ID)
	d.unindex(e)
	e.over = true
}

// index adds the state of an entry to the index of live reservations.
func (d *Service) index(e *entry) {
	r := e.r
	e.indexed = &r
	d.liveIndex.add(e.indexed)
	d.counted.add(e.indexed, 1)
	d.marks += markOf(e.indexed)
}

// unindex removes an entry from the index of live reservations.
func (d *Service) unindex(e *entry) {
	d.liveIndex.remove(e.indexed)
	d.counted.add(e.indexed, -1)
	d.marks -= markOf(e.indexed)
}

// release removes claims from the calendar. A claim that ended before pruned may be missing: the
// calendar has pruned it. If any other claim is missing, memory is corrupt, and release panics
// rather than promise a host twice.
func (d *Service) release(claims []calendar.Claim) {
	for _, c := range claims {
		if err := d.calendar.Remove(c); err != nil && c.Span.End > d.pruned {
			panic(fmt.Sprintf("booking: the calendar lost a claim: %v", err))
		}
	}
}

// restoreClaims adds the claims of a reservation, for which there is room, to the calendar.
func (d *Service) restoreClaims(r *reservation.Reservation) { d.restore(d.calendarClaims(r, r.Claims)) }

// restore adds claims to the calendar that it contained a moment ago, or for which room was just
// made. It panics if there is no room for them.
func (d *Service) restore(claims []calendar.Claim) {
	if err := d.calendar.Restore(claims...); err != nil {
		panic(fmt.Sprintf("booking: what was held is taken: %v", err))
	}
}

// calendarClaims returns claims of r in the calendar's form.
func (d *Service) calendarClaims(r *reservation.Reservation, claims []reservation.Claim) []calendar.Claim {
	return d.hosts.Claims(r, claims)
}
