// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// decider is what decisions of all kinds share. A decision is made on an immutable state, outside all locks
// that others wait for. Two gates, at which the projects take turns, admit decisions: one admits
// decisions that claim time, one at a time; the other admits as many decisions of a project as leave one
// processor free, and one more of another project. A decision is entered under mu if it still holds, and is
// made again if not.
type decider struct {
	*memory
	*Following
	*writer
	changes  *turns.Gate // for decisions that claim time, one at a time
	deciding *turns.Gate // for all decisions
}

// decide runs try, which makes a decision and adds its claims to memory. It repeats this as long as
// the decision is overtaken by other replicas' commits, by a change of the inventory, or by the end
// of a reservation.
func decide[T any](
	ctx context.Context, d *decider, project string, enter func(*turns.Gate, context.Context, string) error, try func() (T, error),
) (decided T, err error) {
	ctx, end := tracing.Step(ctx, "decide")
	defer func() { endDecision(ctx, end, err) }()
	if err := enter(d.changes, ctx, project); err != nil {
		return decided, err
	}
	defer d.changes.Leave(project)
	once := func() (decided T, err error) {
		if err := enter(d.deciding, ctx, project); err != nil {
			return decided, err
		}
		defer d.deciding.Leave(project)
		return try()
	}
	for range tries {
		if decided, err = once(); !errors.Is(err, errOvertaken) {
			return decided, err
		}
	}
	return decided, inDemand(errOvertaken)
}

// endDecision ends the step of a decision. A refusal is a result.
func endDecision(ctx context.Context, end tracing.End, err error) {
	if refused, ok := errors.AsType[*reservation.Refusal](err); ok {
		tracing.Note(ctx, slog.String("refused_by", string(refused.Constraint)))
		err = nil
	}
	end(err)
}

// errOvertaken is the error of a decision if memory has changed since the state on which it was
// made, so that it no longer holds.
var errOvertaken = errors.New("memory has changed since the decision was made")

// newReservation returns a new reservation by a plan.
func (d *decider) newReservation(by Caller, p planning.Plan, now span.Instant) reservation.Reservation {
	r := reservation.Reservation{
		ID: d.options.NewID(), ProjectID: by.ProjectID, UserID: by.UserID,
		Terms: p.Terms, Status: reservation.Pending, Span: p.Span, Window: p.Window, Claims: p.Claims, Addresses: p.Addresses,
		DelayedByBoot: p.DelayedByBoot, Created: now, Updated: now, Version: 1,
	}
	r.Events = []reservation.Event{planning.Happened(reservation.CreatedEvent, now, p.Fallback.Text)}
	if p.WaitsUntil != 0 {
		r.Status, r.Hold = reservation.Waiting, p.Hold
	}
	if expires := max(p.HeldUntil, p.WaitsUntil); expires != 0 {
		r.Events = append(r.Events, reservation.Event{Type: reservation.ExpireEvent, Time: expires, State: reservation.EventDue})
	}
	r.Events = lifecycle.Schedule(&r)
	return r
}

// newAttempt returns the attempt to store a new reservation, whose entry it locks.
func newAttempt(ctx context.Context, v *view, r reservation.Reservation, by Caller) (*attempt, error) {
	changing := turns.New(1, 0)
	if err := changing.Enter(ctx, byRequest); err != nil {
		return nil, err
	}
	return &attempt{
		entry: &entry{r: r, changing: changing}, next: r, held: v.Hosts.Claims(&r, r.Claims),
		cause: reservation.Cause{Action: reservation.ActionCreate, UserID: by.UserID, RequestID: by.RequestID},
	}, nil
}

// enter adds the claims of new reservations of one project to the calendar, all or none. v is the
// view on which they were decided.
func (d *decider) enter(v *view, attempts ...*attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	var claims []calendar.Claim
	for _, a := range attempts {
		claims = append(claims, a.held...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outdated(v, attempts[0].next.ProjectID) || d.calendar.Add(claims...) != nil {
		return errOvertaken
	}
	for _, a := range attempts {
		d.addLive(a.entry)
	}
	d.begin(attempts...)
	return nil
}

// enterChanges begins changes of one project's reservations that were decided on v, all or none.
// Until they are stored, the calendar contains, at each instant, the larger of the old and the new
// claims of all of them together.
func (d *decider) enterChanges(v *view, attempts ...*attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var moved []*attempt
	var before, after []calendar.Claim
	claiming := slices.ContainsFunc(attempts, func(a *attempt) bool { return a.next.Status.Live() && !holdsSame(&a.before, &a.next) })
	for _, a := range attempts {
		if a.entry.over || a.entry.attempt != nil || a.entry.r.Version != a.before.Version {
			return errOvertaken
		}
		if !claiming || holdsSame(&a.before, &a.next) {
			continue
		}
		if !a.next.Status.Live() { // others may get what it leaves
			moved = append(moved, a)
			before = append(before, d.calendarClaims(&a.before, a.before.Claims)...)
			continue
		}
		if d.outdated(v, a.next.ProjectID) || !d.unchanged(v, hostsAnew(a.before, a.next)) {
			return errOvertaken
		}
		moved = append(moved, a)
		before = append(before, d.calendarClaims(&a.before, a.before.Claims)...)
		after = append(after, d.calendarClaims(&a.next, a.next.Claims)...)
	}
	if len(moved) > 0 {
		held := planning.Envelope(before, after)
		d.release(before)
		// A host may have become smaller since it was promised; Restore holds the claims anyway.
		if err := d.calendar.Restore(held...); err != nil {
			d.restore(before)
			return fmt.Errorf("hold the hosts of the change: %w", err)
		}
		for _, a := range moved {
			a.held = []calendar.Claim{}
		}
		// One that is over afterwards may become known to be stored before the others: it names no host.
		moved[slices.IndexFunc(moved, func(a *attempt) bool { return a.next.Status.Live() })].held = held
	}
	d.begin(attempts...)
	return nil
}

// unchanged reports whether the calendar has the same claims on the hosts as v. The caller holds
// mu.
func (d *decider) unchanged(v *view, hosts []string) bool {
	for _, host := range hosts {
		if number, _ := d.hosts.Number(host); !d.calendar.Unchanged(v.state.calendar, number) {
			return false
		}
	}
	return true
}

// concerning selects the records on which the decision on attempts, the first of them the caller's, depends.
func (d *decider) concerning(attempts []*attempt) (q Recall) {
	for i, a := range attempts {
		if q.Hosts = append(q.Hosts, d.versioned(&a.next)...); i == 0 {
			q.Project = a.next.ProjectID
		}
		if a.before.ID != "" {
			q.IDs = append(q.IDs, a.next.ID)
		}
	}
	return q
}

func inDemand(err error) error {
	return &fault.Error{
		Kind: fault.Unavailable, Message: "the hosts asked for are in great demand; try again in a moment",
		RetryAfter: time.Second, Err: err,
	}
}

// tries is how often a decision is made again because the commit of another replica came first.
// Each time one of these commits was stored.
const tries = 20
