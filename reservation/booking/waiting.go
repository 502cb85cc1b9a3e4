// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Waiting books what waits for room. A change that frees room books what waits for it in the same commit, at most mostServed of the
// waiting reservations that it may make room for. Waiting looks at the others, and at all of them when hosts or limits change.
type Waiting struct{ *decider }

// mostServed is for how many waiting reservations one decision searches for room, which others wait for.
const mostServed = 64

// waitingTurn is in whose name room is given to what waits, at the gates. It is no project.
const waitingTurn = "waiting"

// freed is what has become free since what waits was looked at.
type freed struct {
	all      bool
	within   span.Span
	projects map[string]bool
	made     map[string]bool // waiting reservations by id, since which room may have become free unseen
}

// openings is what has become free since what waits was looked at.
type openings struct {
	since freed
	heard chan struct{} // receives a value when there may be room for what waits
}

// note notes what has become free while some wait.
func (o *openings) note(waiting line, f freed) {
	if waiting.count() > 0 || len(f.made) > 0 {
		o.since = o.since.and(f)
		job.Poke(o.heard)
	}
}

// take returns what was noted, and forgets it.
func (o *openings) take() (f freed) {
	f, o.since = o.since, freed{}
	return f
}

// and returns what has become free in two ways.
func (f freed) and(more freed) freed {
	f.all = f.all || more.all
	switch {
	case f.within.Empty():
		f.within = more.within
	case !more.within.Empty():
		f.within = span.Span{Start: min(f.within.Start, more.within.Start), End: max(f.within.End, more.within.End)}
	}
	f.projects, f.made = union(f.projects, more.projects), union(f.made, more.made)
	return f
}

func union(a, b map[string]bool) map[string]bool {
	if a == nil {
		return b
	}
	for one := range b {
		a[one] = true
	}
	return a
}

// freedIn returns what a change of an entry frees that memory learns of; e is nil for a new reservation, r if it is gone.
func freedIn(e *entry, r *reservation.Reservation, now span.Instant) (f freed) {
	if r != nil && r.Status == reservation.Waiting && (e == nil || e.attempt != nil && e.attempt.before.ID == "") {
		f.made = map[string]bool{r.ID: true}
	}
	if e == nil || len(e.r.Claims) == 0 || r != nil && r.Status.Live() && holdsSame(&e.r, r) {
		return f
	}
	return f.and(freedBy(&e.r, r, now))
}

// freedBy returns what a change of a reservation frees: at most its claims from now on.
func freedBy(before, after *reservation.Reservation, now span.Instant) (f freed) {
	for _, c := range before.Claims {
		kept := func(k reservation.Claim) bool {
			return k.Host == c.Host && k.Span.Covers(c.Span) && k.Slices >= c.Slices && (k.Slices == 0) == (c.Slices == 0)
		}
		if after != nil && after.Status.Live() && after.Resources.Equal(before.Resources) && slices.ContainsFunc(after.Claims, kept) {
			continue
		}
		c.Span.Start = max(c.Span.Start, now)
		if !c.Span.Empty() {
			f = f.and(freed{within: c.Span})
		}
	}
	if !f.within.Empty() {
		f.projects = map[string]bool{before.ProjectID: true}
	}
	return f
}

// plan returns f in the form of the decision.
func (f freed) plan() planning.Freed {
	if f.all {
		return planning.Freed{}
	}
	p := planning.Freed{Within: f.within}
	for project := range f.projects {
		p.Projects = append(p.Projects, project)
	}
	return p
}

// among yields what of the line there may be room for, from a place on.
func (f freed) among(l line, from int) iter.Seq[*reservation.Reservation] {
	return func(yield func(*reservation.Reservation) bool) {
		for r := range l.all() {
			if from--; from >= 0 || !f.all && f.within.Empty() && !f.made[r.ID] {
				continue
			}
			if !yield(r) {
				return
			}
		}
	}
}

// bookFreed decides on what waits for room that changes free, which are decided on v and not entered. It returns the attempts to store
// that together with the changes, whose entries it locks.
func (d *decider) bookFreed(v *view, requestID string, changes []*attempt) ([]*attempt, error) {
	if v.state.live.waiting.count() == 0 || d.options.Enforcement != nil {
		return nil, nil
	}
	var f freed
	after := v.View
	var before, next []*reservation.Reservation
	for _, a := range changes {
		f = f.and(freedBy(&a.before, &a.next, v.Now))
		if !holdsSame(&a.before, &a.next) || !a.next.Status.Live() {
			before, next = append(before, &a.before), append(next, &a.next)
		}
	}
	if f.within.Empty() {
		return nil, nil
	}
	after = after.Exchanged(before, next)
	after.HeldBy = func(project string) planning.Held {
		held := d.heldBy(v, project)
		for _, a := range changes {
			if a.next.ProjectID != project {
				continue
			}
			if held = held.Without(&a.before); a.next.Status.Live() {
				held = held.With(&a.next)
			}
		}
		return held
	}
	booked, _ := planning.BookWaiting(after, v.state.live.waiting.all(), f.plan(), d.settled, mostServed)
	return d.attemptsOn(reservation.Cause{Action: reservation.ActionBook, RequestID: requestID}, booked)
}

// enterAndBook is enterChanges with what bookFreed adds to the changes. It returns all attempts, and those that bookFreed has added, whose entries
// it has locked.
func (d *decider) enterAndBook(v *view, requestID string, changes []*attempt) (all, booked []*attempt, err error) {
	booked, err = d.bookFreed(v, requestID, changes)
	if err != nil {
		return nil, nil, err
	}
	all = append(changes, booked...)
	if err := d.enterChanges(v, all...); err != nil {
		leave(booked)
		return nil, nil, err
	}
	return all, booked, nil
}

// settled reports whether nothing changes a reservation that the state of a decision has.
func (d *decider) settled(r *reservation.Reservation) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e := d.live[r.ID]
	return e != nil && e.attempt == nil && e.changing.Empty() && e.r.Version == r.Version
}

// Room receives a value when there may be room for what waits.
func (d *Waiting) Room() <-chan struct{} { return d.openings.heard }

// BookAll looks at everything that waits, whatever has become free. Time alone may make room: a start comes nearer than the farthest allowed.
func (d *Waiting) BookAll(ctx context.Context) error {
	d.mu.Lock()
	d.openings.note(d.liveIndex.waiting, freed{all: true})
	d.mu.Unlock()
	return d.BookFreed(ctx)
}

// BookFreed books what waits for what has become free since the last call.
func (d *Waiting) BookFreed(ctx context.Context) error {
	d.mu.Lock()
	f := d.openings.take()
	d.mu.Unlock()
	if err := d.book(ctx, f); err != nil {
		d.mu.Lock()
		d.openings.note(d.liveIndex.waiting, f)
		d.mu.Unlock()
		return fmt.Errorf("book what waits for room: %w", err)
	}
	return nil
}

// book goes through the line, some of it in each turn.
func (d *Waiting) book(ctx context.Context, f freed) error {
	if d.options.Enforcement != nil || !f.all && f.within.Empty() && len(f.made) == 0 {
		return nil
	}
	stale := 0
	for from := 0; from >= 0; {
		next, attempts, err := d.bookSome(ctx, f, from)
		switch {
		case err == nil:
			from, stale = next, 0
			continue
		case !errors.Is(err, reservation.ErrStale):
			return err
		}
		if stale++; stale == tries {
			return inDemand(err)
		}
		q := d.concerning(attempts)
		if !d.limited() {
			q.Project = ""
		}
		if err := d.poll(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// bookSome looks at a part of the line from a place on, and returns the next place; -1 at the end.
func (d *Waiting) bookSome(ctx context.Context, f freed, from int) (next int, attempts []*attempt, err error) {
	attempts, err = decide(ctx, d.decider, waitingTurn, (*turns.Gate).Enter, func() ([]*attempt, error) {
		v := d.view(Caller{SeesHidden: true}, "")
		v.HeldBy = func(project string) planning.Held { return d.heldBy(&v, project) }
		booked, looked := planning.BookWaiting(v.View, f.among(v.state.live.waiting, from), f.plan(), d.settled, mostServed)
		next = -1
		if looked >= 0 {
			next = from + looked - len(booked)
		}
		attempts, err := d.attemptsOn(reservation.Cause{Action: reservation.ActionBook}, booked)
		if err != nil || len(attempts) == 0 {
			return nil, err
		}
		if err := d.enterChanges(&v, attempts...); err != nil {
			leave(attempts)
			return nil, err
		}
		return attempts, nil
	})
	if err != nil || len(attempts) == 0 {
		return next, nil, err
	}
	defer leave(attempts)
	if err := d.commitTogether(ctx, whole{}, attempts...); err != nil {
		return from, attempts, fmt.Errorf("store the bookings: %w", err)
	}
	return next, attempts, nil
}

// mayWait fails with a Denied fault for a request that waits if the checks of package enforcement would have to allow its booking later.
func (d *decider) mayWait(req reservation.Request) error {
	if req.WaitUntil == 0 || d.options.Enforcement == nil {
		return nil
	}
	return fault.New(fault.Denied, "this cloud checks each booking with [enforcement], so that none can be made later; ask for another time")
}

// wait makes a waiting reservation for a request that was refused on v; the refusal is the error if it does not wait.
func (d *Bookings) wait(ctx context.Context, v *view, by Caller, req reservation.Request, use *KeyUse, refusal *reservation.Refusal) ([]*attempt, error) {
	plan, err := planning.NewWait(v.View, req, refusal)
	if err != nil {
		return nil, err
	}
	a, err := newAttempt(ctx, v, d.newReservation(by, plan, v.Now), by)
	if err != nil {
		return nil, err
	}
	a.key = use.key(&a.next)
	return []*attempt{a}, d.enter(v, a)
}

// Line returns the place of a waiting reservation among those that wait, from 1 on, and their number; 0 if it does not wait.
func (p *Promises) Line(id string) (place, of int) {
	s := p.state()
	return s.places()[id], s.live.waiting.count()
}

// NextRoom returns the first start after the window of a waiting reservation at which there is room now; 0 if there is none, or if there
// is room within the window.
func (d *Bookings) NextRoom(ctx context.Context, r reservation.Reservation) (span.Instant, error) {
	if err := d.deciding.Enter(ctx, r.ProjectID); err != nil {
		return 0, err
	}
	defer d.deciding.Leave(r.ProjectID)
	return planning.NextRoom(d.view(Caller{}, r.ProjectID).View, &r)
}
