// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
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

// bookFreed decides on what waits for room that changes free, which are decided on v and not entered. It returns the attempts to store
// that together with the changes, whose entries it locks.
func (d *decider) bookFreed(v *view, requestID string, changes []*attempt) ([]*attempt, error) {
	if v.state.live.waiting.count() == 0 || d.options.Enforcement != nil || d.lacking() {
		return nil, nil
	}
	var f planning.Freed
	after := v.View
	var before, next []*reservation.Reservation
	for _, a := range changes {
		f = both(f, freedBy(&a.before, &a.next, v.Now))
		if !holdsSame(&a.before, &a.next) || !a.next.Status.Live() {
			before, next = append(before, &a.before), append(next, &a.next)
		}
	}
	if f.Within.Empty() {
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
	booked, _ := planning.BookWaiting(after, v.state.live.waiting.all(), f, d.settled, mostServed)
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

// lacking reports whether a reservation lacks a host, which has a right to room before what waits.
func (d *decider) lacking() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.counted.Degraded > 0
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
	d.openings.note(d.liveIndex.waiting, planning.Freed{All: true})
	d.mu.Unlock()
	return d.bookNoted(ctx)
}

// BookFreed books what waits for what has become free since the last call. While a reservation lacks a host, it leaves the room to
// that one until BookAll.
func (d *Waiting) BookFreed(ctx context.Context) error {
	if d.lacking() {
		return nil
	}
	return d.bookNoted(ctx)
}

// lastLook books a waiting reservation if there is room. It does nothing for one that does not wait.
func (d *Waiting) lastLook(ctx context.Context, id string) error {
	d.mu.RLock()
	e := d.live[id]
	waits := e != nil && e.r.Status == reservation.Waiting
	d.mu.RUnlock()
	if !waits || d.lacking() {
		return nil
	}
	return d.book(ctx, planning.Freed{Made: map[string]bool{id: true}})
}

func (d *Waiting) bookNoted(ctx context.Context) error {
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
func (d *Waiting) book(ctx context.Context, f planning.Freed) error {
	if d.options.Enforcement != nil || !f.All && f.Within.Empty() && len(f.Made) == 0 {
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
func (d *Waiting) bookSome(ctx context.Context, f planning.Freed, from int) (next int, attempts []*attempt, err error) {
	attempts, err = decide(ctx, d.decider, waitingTurn, (*turns.Gate).Enter, func() ([]*attempt, error) {
		v := d.view(Caller{SeesHidden: true}, "")
		v.HeldBy = func(project string) planning.Held { return d.heldBy(&v, project) }
		booked, looked := planning.BookWaiting(v.View, v.state.live.waiting.from(from), f, d.settled, mostServed)
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
