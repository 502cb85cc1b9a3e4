package booking

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// Caller is on whose behalf the desk acts.
type Caller struct {
	ProjectID, UserID string
	// Admin may see and change every project's reservations and use hidden properties.
	Admin bool
}

// Options are the desk's rules and what it needs from outside.
type Options struct {
	Records  Records
	Keys     Keys
	Reader   reservation.Reader
	Limits   Limits
	Defaults Defaults
	LeadTime int64 // seconds before a start in which its hosts should be empty
	Now      func() span.Instant
	NewID    func() string
}

// Desk books reservations. It is safe for concurrent use.
//
// Four locks, taken in this order: one per idempotency key, held while a request
// that came with it is booked; one per reservation, held while that reservation
// changes; mu, over what is in memory, never held while storing; and those of
// Records. A new claim enters the calendar before it is stored, an old one leaves
// after, so that whatever happens in between errs towards "taken".
type Desk struct {
	options Options
	woken   chan struct{}
	keys    keyLocks

	mu       sync.RWMutex
	roster   *roster
	calendar *calendar.Calendar
	live     map[string]*entry
	held     map[string]Held
	agenda   agenda
	pruned   span.Instant // the calendar has forgotten what ended by then
}

// entry is a live reservation.
type entry struct {
	changing sync.Mutex // held while the reservation changes
	r        reservation.Reservation
	over     bool // it left the desk
}

// Open gives a desk with the hosts of s and the live reservations of the records.
// It fails when stored reservations contradict each other.
func Open(ctx context.Context, o Options, s *inventory.Snapshot) (*Desk, error) {
	d := &Desk{
		options:  o,
		woken:    make(chan struct{}, 1),
		keys:     keyLocks{inUse: make(map[[2]string]*keyLock)},
		roster:   &roster{},
		calendar: calendar.New(nil, o.Now()),
		live:     make(map[string]*entry),
		held:     make(map[string]Held),
	}
	d.Observe(s)
	live, err := o.Records.Live(ctx)
	if err != nil {
		return nil, fmt.Errorf("load reservations: %w", err)
	}
	for _, r := range live {
		d.roster.admit(r.HostNames(), d.calendar)
		if err := d.calendar.Restore(d.calendarClaims(&r, r.Claims)...); err != nil {
			return nil, fmt.Errorf("load reservation %s of project %s: %w", r.ID, r.ProjectID, err)
		}
		d.keep(&entry{r: r})
	}
	return d, nil
}

// Observe takes over a newer inventory.
func (d *Desk) Observe(s *inventory.Snapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, added := d.roster.with(s)
	for _, capacity := range added {
		d.calendar.AddHost(capacity)
	}
	for number := range next.names {
		if h := next.host(number); h != nil {
			d.calendar.SetCapacity(number, h.Capacity)
		}
	}
	d.roster = next
}

// Offer gives what Book would do now, without doing it.
func (d *Desk) Offer(by Caller, req reservation.Request) (Plan, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return NewPlan(d.view(by, by.ProjectID), req)
}

// KeyUse is an idempotency key that came with a request, and a hash of its body.
type KeyUse struct {
	Key, BodyHash string
}

// Book makes a reservation and stores it. With a key that the project has used
// for the same body it gives the reservation made then; for another body it fails
// with an Unprocessable fault.
func (d *Desk) Book(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (reservation.Reservation, error) {
	if use != nil {
		defer d.keys.lock(by.ProjectID, use.Key)()
	}
	if made, ok, err := d.madeBefore(ctx, by, use); ok || err != nil {
		return made, err
	}
	e, err := d.hold(by, req)
	if err != nil {
		return reservation.Reservation{}, err
	}
	defer e.changing.Unlock()
	var key *reservation.Key
	if use != nil {
		key = &reservation.Key{ProjectID: by.ProjectID, Key: use.Key, BodyHash: use.BodyHash, ReservationID: e.r.ID, Created: e.r.Created}
	}
	if err := d.options.Records.Create(ctx, e.r, key); err != nil {
		d.drop(e, e.r.Claims)
		if errors.Is(err, reservation.ErrKeyUsed) {
			made, ok, err := d.madeBefore(ctx, by, use)
			if err == nil && !ok {
				err = fault.New(fault.Conflict, "the Idempotency-Key %q was forgotten this moment; send the request again", use.Key)
			}
			return made, err
		}
		return reservation.Reservation{}, fmt.Errorf("store the reservation: %w", err)
	}
	d.wake()
	return e.r, nil
}

// madeBefore gives the reservation that the key made; ok is false where it is new.
func (d *Desk) madeBefore(ctx context.Context, by Caller, use *KeyUse) (r reservation.Reservation, ok bool, err error) {
	if use == nil {
		return r, false, nil
	}
	before, ok, err := d.options.Keys.Key(ctx, by.ProjectID, use.Key)
	if err != nil || !ok {
		return r, false, err
	}
	if before.BodyHash != use.BodyHash {
		return r, false, fault.New(fault.Unprocessable, "the Idempotency-Key %q was used for another request; use a new key", use.Key)
	}
	r, err = d.options.Reader.Get(ctx, before.ReservationID)
	return r, err == nil, err
}

// hold plans the request and enters its claims; the entry comes locked.
func (d *Desk) hold(by Caller, req reservation.Request) (*entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.view(by, by.ProjectID)
	plan, err := NewPlan(v, req)
	if err != nil {
		return nil, err
	}
	e := &entry{r: reservation.Reservation{
		ID: d.options.NewID(), ProjectID: by.ProjectID, UserID: by.UserID,
		Terms: plan.Terms, Status: reservation.Pending, Span: plan.Span, Claims: plan.Claims,
		DelayedByBoot: plan.DelayedByBoot, Created: v.Now, Updated: v.Now, Version: 1,
	}}
	e.r.Events = append([]reservation.Event{happened(reservation.CreatedEvent, v.Now, "")}, lifecycle.Schedule(&e.r)...)
	if err := d.calendar.Add(d.calendarClaims(&e.r, e.r.Claims)...); err != nil {
		return nil, fmt.Errorf("hold the hosts of the plan: %w", err)
	}
	e.changing.Lock()
	d.keep(e)
	return e, nil
}

// happened is an event that is done as it is entered.
func happened(t reservation.EventType, at span.Instant, detail string) reservation.Event {
	return reservation.Event{Type: t, Time: at, State: reservation.Done, Done: at, Detail: detail}
}

// view is what a decision for project depends on; mu is held.
func (d *Desk) view(by Caller, project string) View {
	return View{
		Now: d.options.Now(), Calendar: d.calendar, Held: d.held[project],
		Limits: d.options.Limits, Defaults: d.options.Defaults, LeadTime: d.options.LeadTime,
		SeesHidden: by.Admin, roster: d.roster,
	}
}

// keep enters a reservation among the live ones; its claims are in the calendar.
func (d *Desk) keep(e *entry) {
	d.live[e.r.ID] = e
	d.count(&e.r, 1)
	d.agenda.enter(&e.r)
}

func (d *Desk) count(r *reservation.Reservation, sign int) {
	held := d.held[r.ProjectID]
	held.add(r, sign)
	if held == (Held{}) {
		delete(d.held, r.ProjectID)
		return
	}
	d.held[r.ProjectID] = held
}

// drop takes a reservation and its claims out of memory. The entry's changing
// lock is held.
func (d *Desk) drop(e *entry, claims []reservation.Claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release(d.calendarClaims(&e.r, claims))
	d.count(&e.r, -1)
	delete(d.live, e.r.ID)
	e.over = true
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

// calendarClaims gives claims of r as the calendar has them.
func (d *Desk) calendarClaims(r *reservation.Reservation, claims []reservation.Claim) []calendar.Claim {
	list := make([]calendar.Claim, len(claims))
	for i, c := range claims {
		list[i] = calendar.Claim{Host: d.roster.numbers[c.Host], Span: c.Span}
		if r.Kind == reservation.Instances {
			list[i].Slice = r.Resources.Scale(int64(c.Slices))
		}
	}
	return list
}
