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
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Caller is on whose behalf the desk acts.
type Caller struct {
	ProjectID, UserID string
	// RequestID is the request in which the caller asks, for the audit trail.
	RequestID string
	// Admin may see and change every project's reservations.
	Admin bool
	// SeesHidden may ask for hosts by properties that are hidden.
	SeesHidden bool
}

// Options are the desk's rules and what it needs from outside.
type Options struct {
	Records  Records
	Keys     Keys
	Reader   reservation.Reader
	Limits   Limits
	Defaults Defaults
	LeadTime int64 // seconds before a start in which its hosts should be empty
	// Migrates says that from then on guests of others are migrated off them.
	Migrates bool
	// Images gives the newest facts about images, which nobody changes any more; nil, and
	// nil facts, leave images out of all decisions.
	Images func() *staging.Facts
	// Cloud does what events call for; nil where there is nothing to do.
	Cloud Cloud
	// Replica names this desk among those that share the records.
	Replica string
	// Parallel is how many events are carried out at once, and CarryOut does not wait
	// for them; with 0 it does one after the other.
	Parallel int
	// Deciding is how many decisions are made at once, each on a processor of its own;
	// 0 is one. Where it leaves a processor free, nobody else waits for a decision.
	Deciding int
	// Announce, where it is not nil, tells the other replicas that something was
	// stored. It must not wait.
	Announce func()
	Now      func() span.Instant
	// Elapsed is the time since some moment, on a clock that nobody sets; nil is
	// Now's.
	Elapsed func() time.Duration
	NewID   func() string
}

// Desk books reservations. It is safe for concurrent use, and any number of desks
// may share the same records.
//
// What a desk has in memory is what the records held at some moment, host by host,
// and what it is about to store itself. A decision is made on memory alone; the
// commit says on which versions of the hosts it was made, and the records refuse it
// where they have moved on. Then the desk reads what has changed and decides again.
// The version that it knows of a host rises only while memory holds every live claim
// that the records had on the host in that version. A project has a version too, which
// grows with each commit after which it holds more hosts at some instant; where a limit
// on hosts is set, a commit names it, and the same holds for it and the project's claims.
//
// A decision is made on a state, which never changes, outside all locks that others wait
// for. Two gates, at which the projects take turns, let in one decision that claims time
// after the other, and so many of all kinds that one processor stays free. What was decided
// is entered under mu where it still holds, and is decided again where not.
//
// Locks, taken in this order: one per idempotency key, held while a request that
// came with it is booked; one per reservation, held while that reservation changes
// here; the gates, left before anything is stored; one per host and one per project with a limit, in the order of their names, held
// while time on the host, or for the project, is being claimed here; reading, held while
// the records are read; mu, over what is in memory, held for as long as it takes to look
// or to enter something, never while deciding, storing or reading; and those of Records. All but mu are waited for no longer than a request
// lasts. A new claim enters the calendar before it is stored, an old one leaves
// after, so that whatever happens in between errs towards "taken".
type Desk struct {
	options  Options
	woken    chan struct{}    // something may be due
	news     chan struct{}    // something is another than before
	keys     locks[[2]string] // project and key
	claiming locks[string]    // host, or project with a limit
	reading  turn             // held while the records are read
	follows  job.Shared[struct{}]
	slots    turn        // for events that are carried out
	changes  *turns.Gate // for decisions that claim time, one after the other
	deciding *turns.Gate // for all decisions
	newest   atomic.Pointer[state]
	working  work

	adoptions atomic.Int64 // how often memory has learned something from the records
	stale     atomic.Int64

	mu         memoryLock
	roster     *roster
	calendar   *calendar.Calendar
	live       map[string]*entry
	shelves    shelves // the same
	held       map[string]Held
	configured int // how often the rules were replaced
	agenda     agenda
	pruned     span.Instant // the calendar has forgotten what ended by then

	known    map[string]int64      // versions by host
	projects map[string]int64      // versions by project; asked for where a limit is set
	attempts map[*attempt]struct{} // in flight or in doubt
	tail     tail
	left     graveyard
}

// Requests and events take turns at a reservation: a start or an end waits for one request at
// most, however many there are.
const byRequest, byEvent = "request", "event"

// entry is a live reservation.
type entry struct {
	changing *turns.Gate // held while the reservation changes here

	// Guarded by Desk.mu. While an attempt is in flight r is what was stored before;
	// of a new reservation, what shall be.
	r       reservation.Reservation
	shelved *reservation.Reservation // r, as the shelves have it
	attempt *attempt
	over    bool // it left the desk
	// endRetried is when this replica first tried its end again after a failure.
	endRetried span.Instant
}

// Open gives a desk with the hosts of s and the live reservations of the records.
// It fails when stored reservations contradict each other.
func Open(ctx context.Context, o Options, s *inventory.Snapshot) (*Desk, error) {
	d := &Desk{
		options:  o,
		woken:    make(chan struct{}, 1),
		news:     make(chan struct{}, 1),
		reading:  newTurn(),
		slots:    newSlots(max(1, o.Parallel)),
		roster:   &roster{},
		calendar: calendar.New(nil, o.Now()),
		live:     make(map[string]*entry),
		shelves:  newShelves(),
		changes:  turns.New(1, 0),
		deciding: turns.New(o.Deciding, 0),
		held:     make(map[string]Held),
		known:    make(map[string]int64),
		projects: make(map[string]int64),
		attempts: make(map[*attempt]struct{}),
	}
	d.follows = job.Shared[struct{}]{Limit: followLimit, Read: func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.poll(ctx, Recall{})
	}}
	d.Observe(s)
	all, err := o.Records.Recall(ctx, Recall{All: true, Projects: d.projectVersion})
	if err != nil {
		return nil, fmt.Errorf("load reservations: %w", err)
	}
	var hosts []string
	for _, r := range all.Reservations {
		hosts = append(hosts, r.HostNames()...)
	}
	d.admit(hosts)
	for _, r := range all.Reservations {
		if err := d.calendar.Restore(d.calendarClaims(&r, r.Claims)...); err != nil {
			return nil, fmt.Errorf("load reservation %s of project %s: %w", r.ID, r.ProjectID, err)
		}
		d.keep(&entry{r: r, changing: turns.New(1, 0)})
	}
	for _, h := range all.Hosts {
		d.known[h.Host] = h.Version
	}
	for _, p := range all.Projects {
		d.projects[p.Project] = p.Version
	}
	d.tail.begin(all.Log)
	return d, nil
}

// Observe takes over a newer inventory.
func (d *Desk) Observe(s *inventory.Snapshot) {
	hosts := lineUp(s)
	for {
		d.mu.RLock()
		before := d.roster
		d.mu.RUnlock()
		next, added := before.with(hosts)
		if d.takeOver(before, next, added) {
			return
		}
	}
}

// takeOver replaces the roster, and reports false where it has become another meanwhile.
func (d *Desk) takeOver(before, next *roster, added []resource.Vector) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.roster != before {
		return false
	}
	for _, capacity := range added {
		d.calendar.AddHost(capacity)
	}
	for number := range next.names {
		if h := next.host(number); h != nil {
			d.calendar.SetCapacity(number, h.Capacity)
		}
	}
	d.roster = next
	return true
}

// admit adds hosts that are promised but not there; mu is held.
func (d *Desk) admit(names []string) {
	next, added := d.roster.admit(names)
	for range added {
		d.calendar.AddHost(resource.Vector{})
	}
	d.roster = next
}

// Configure puts other rules in force, for what is decided from now on.
func (d *Desk) Configure(l Limits, defaults Defaults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.options.Limits, d.options.Defaults = l, defaults
	d.configured++
}

// Offer returns what Book would do now, without doing it.
func (d *Desk) Offer(ctx context.Context, by Caller, req reservation.Request) (Plan, error) {
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return Plan{}, err
	}
	defer d.deciding.Leave(by.ProjectID)
	return NewPlan(d.view(by, by.ProjectID), req)
}

// InTurn runs do when the project's turn comes, as if it were a decision: large answers are
// made there, so that they leave a processor for everybody else.
func (d *Desk) InTurn(ctx context.Context, project string, do func()) error {
	if err := d.deciding.Enter(ctx, project); err != nil {
		return err
	}
	defer d.deciding.Leave(project)
	do()
	return nil
}

// Prune forgets the time that is over. What a live reservation claims stays: its end
// may be late, or the clock be set back.
func (d *Desk) Prune() {
	d.mu.Lock()
	defer d.mu.Unlock()
	over := d.options.Now()
	if first, ok := d.shelves.byRelease.first(); ok {
		over = min(over, first-1)
	}
	d.pruned = max(d.pruned, over)
	d.calendar.Prune(over)
	d.left.age()
	if len(d.agenda) > 2*len(d.live)+agendaSlack {
		d.agenda = newAgenda(d.live)
	}
}

// agendaSlack is how many appointments may be out of date before the agenda is
// written anew.
const agendaSlack = 1000

// Stale is how often a commit was refused because the records had moved on.
func (d *Desk) Stale() int64 { return d.stale.Load() }

func (d *Desk) elapsed() time.Duration {
	if d.options.Elapsed == nil {
		return time.Duration(d.options.Now()) * time.Second
	}
	return d.options.Elapsed()
}

// keep enters a reservation among the live ones; its claims are in the calendar.
func (d *Desk) keep(e *entry) {
	d.live[e.r.ID] = e
	d.shelve(e)
	d.setHeld(e.r.ProjectID, d.held[e.r.ProjectID].with(&e.r))
	d.agenda.enter(&e.r)
}

// replace puts a reservation's new state in place and enters its next event where
// that is another one than before; mu is held.
func (d *Desk) replace(e *entry, r reservation.Reservation) {
	before, had := nextDue(&e.r)
	d.shelves.remove(e.shelved)
	if !sameClaims(e.r.Claims, r.Claims) {
		d.setHeld(r.ProjectID, d.held[r.ProjectID].without(&e.r).with(&r))
	}
	e.r = r
	d.shelve(e)
	if after, has := nextDue(&e.r); has && (!had || after != before) {
		d.agenda.enter(&e.r)
	}
}

// forget takes a reservation out of the live ones; its claims are out of the
// calendar.
func (d *Desk) forget(e *entry) {
	d.setHeld(e.r.ProjectID, d.held[e.r.ProjectID].without(&e.r))
	delete(d.live, e.r.ID)
	d.shelves.remove(e.shelved)
	e.over = true
}

// shelve enters the state of an entry into the shelves.
func (d *Desk) shelve(e *entry) {
	r := e.r
	e.shelved = &r
	d.shelves.add(e.shelved)
}

// release takes claims out of the calendar. Those that are over it may have
// forgotten; the others are there by the desk's own invariant, and it would rather
// stop than promise twice.
func (d *Desk) release(claims []calendar.Claim) {
	for _, c := range claims {
		if err := d.calendar.Remove(c); err != nil && c.Span.End > d.pruned {
			panic(fmt.Sprintf("booking: the calendar lost a claim: %v", err))
		}
	}
}

// retake enters the claims of a reservation for which there is room.
func (d *Desk) retake(r *reservation.Reservation) { d.restore(d.calendarClaims(r, r.Claims)) }

// restore enters claims that the calendar held a moment ago, or has just been made
// room for.
func (d *Desk) restore(claims []calendar.Claim) {
	if err := d.calendar.Restore(claims...); err != nil {
		panic(fmt.Sprintf("booking: what was held is taken: %v", err))
	}
}

// calendarClaims returns claims of r as the calendar has them.
func (d *Desk) calendarClaims(r *reservation.Reservation, claims []reservation.Claim) []calendar.Claim {
	return d.roster.claims(r, claims)
}
