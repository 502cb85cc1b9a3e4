// SPDX-License-Identifier: Apache-2.0

// Package dispatch places instances. When the pipeline has chosen hosts for a request, their room
// counts as used for the next request at once. Then dispatch claims the room in Placement and, if
// the plan requires it, has preemptible instances evicted.
package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// maxChoices is how often room is claimed for a request: again whenever other requests have claimed
// the room on the hosts chosen before.
const maxChoices = 10

// Planner chooses hosts; *scheduler.Pipeline implements it.
type Planner interface {
	Draft(s *inventory.States, r *placing.Request, now span.Instant, draw func(n int) int) *scheduler.Draft
}

// Decisions stores decisions. Keep never waits.
type Decisions interface {
	Keep(d placing.Decision)
}

// Options are the dependencies and settings of a Dispatcher.
type Options struct {
	Board      *inventory.LiveState
	Planner    Planner
	Placement  claiming.Placement
	Looker     eviction.Looker
	Evictor    *eviction.Evictor
	MaxWaiting int                             // requests that wait for victims at once, where their migrations need workers too; 0 means any number
	Reread     func(ctx context.Context) error // reads all hosts into the live state; nil means no such reading
	Decisions  Decisions
	Now        func() time.Time
	Draw       func(n int) int                                  // returns one of 0 … n-1; several goroutines call it at once
	Wait       func(ctx context.Context, d time.Duration) error // between two attempts; nil waits by the clock
	Log        *slog.Logger
}

// Dispatcher places instances. It is safe for concurrent use.
type Dispatcher struct {
	Options
	reads   job.Shared[struct{}] // of all hosts
	pending pendingEvictions
	slots   chan struct{} // holds one for each request of MaxWaiting; nil if any number may wait
}

// New returns a Dispatcher.
func New(o Options) *Dispatcher {
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	d := &Dispatcher{Options: o}
	d.reads.Limit = readTimeout
	d.reads.Read = func(ctx context.Context) (struct{}, error) { return struct{}{}, d.Reread(ctx) }
	if o.MaxWaiting > 0 {
		d.slots = make(chan struct{}, o.MaxWaiting)
	}
	return d
}

// task is one request while it is placed.
type task struct {
	dispatcher  *Dispatcher
	request     placing.Request
	decision    placing.Decision
	planned     *scheduler.Draft // of the choice that is being made; nil at its beginning and end
	refusals    map[string]int   // of Placement, by host
	looks       int              // at the hosts that may have more room than the live state shows
	reread      bool             // all hosts
	unconfirmed claiming.Unconfirmed
	excluded    map[string]string // instances that are not evicted for this request, with their hosts
	// ended is closed when the next of the evictions ends that were in progress for other requests
	// when hosts were last chosen; nil if there were none. until is the end of all waits for such
	// evictions.
	ended <-chan struct{}
	until time.Time
}

// choice is a plan: the hosts of the instances, and the instances that are evicted for them.
type choice struct {
	Placed
	states  *inventory.States // of the plan
	picks   []scheduler.Pick
	victims []eviction.Victim
	hold    *inventory.Hold
}

// Place chooses hosts for the instances of a request and claims their room: for all instances or
// for none. A rebuild claims nothing.
//
// It fails with a Conflict fault, whose message states for the tenant why there is no room. It
// fails with an Unavailable fault if Placement does not answer before ctx ends, or within some
// attempts; the Ledger then releases what Placement may have granted.
func (d *Dispatcher) Place(ctx context.Context, r *placing.Request) (Placed, error) {
	begun := d.Now()
	t := task{
		dispatcher: d, request: *r, refusals: map[string]int{}, excluded: map[string]string{},
		decision: placing.Decision{RequestID: r.ID, ProjectID: r.ProjectID, Instances: r.Instances},
	}
	ctx, end := tracing.Step(ctx, "place", slog.String("request_id", r.ID), slog.String("project", r.ProjectID), slog.Int("instances", len(r.Instances)))
	placed, err := t.place(ctx)
	end(err)
	decision := t.decision
	decision.HandledBy, decision.At, decision.Took = placing.Replaced, span.At(begun), d.Now().Sub(begun).Microseconds()
	if err != nil {
		decision.Placements, decision.Reason = nil, forTenant(fault.Of(err))
	}
	d.Decisions.Keep(decision)
	return placed, err
}

// Return releases what Place has claimed. It is called if the answer could not be sent to the
// caller.
func (d *Dispatcher) Return(p Placed) {
	d.Evictor.Ledger.Schedule(claiming.Unconfirmed{Claims: p.claims})
}

// place chooses hosts and claims them, again and again until a claim succeeds or maxChoices is reached.
// It reads the hosts again whose claim failed. Claims of an earlier try of the same instances are taken
// over or released.
func (t *task) place(ctx context.Context) (p Placed, err error) {
	if t.request.Rebuild {
		return t.keepHosts()
	}
	if t.unconfirmed, err = t.dispatcher.Evictor.Ledger.Adopt(ctx, t.request.Instances); err != nil {
		return Placed{}, err
	}
	for left := maxChoices; left > 0; {
		var c choice
		t.ended = t.dispatcher.pending.next()
		if c, err = t.choose(ctx); err != nil {
			if t.confirm(ctx, err) {
				continue
			}
			if t.awaitEviction(ctx, err) {
				continue
			}
			break
		}
		left--
		if err = t.claim(ctx, c); err == nil {
			t.unconfirmed.Claims = nil
			t.dispatcher.Evictor.Ledger.Schedule(t.unconfirmed)
			return c.Placed, nil
		}
		failure, stay := errors.AsType[eviction.Failure](err)
		if !stay && !crowded(err) || ctx.Err() != nil {
			break
		}
		t.lookAt(ctx, c.hosts(err), err)
		if stay {
			maps.Copy(t.excluded, failure.Hosts())
		}
	}
	t.dispatcher.Evictor.Ledger.Schedule(t.unconfirmed)
	return Placed{}, t.explained(err)
}

// claim claims the room of a choice in Placement, and evicts its victims. In any case it ends the
// hold on the room.
func (t *task) claim(ctx context.Context, c choice) (err error) {
	ctx, end := tracing.Step(ctx, "claim", slog.Int("victims", len(c.victims)))
	defer func() { end(err) }()
	defer c.hold.Confirm() // does nothing after another end
	d := t.dispatcher
	if len(c.victims) == 0 {
		transaction := claiming.Transaction{Placement: d.Placement, Wait: d.Wait, Claims: c.claims, Unconfirmed: &t.unconfirmed}
		err := transaction.Run(ctx)
		if err != nil {
			t.unconfirmed.EndHold(c.hold)
		}
		return err
	}
	defer d.pending.end()
	release, ok := d.slot()
	if !ok {
		c.hold.Undo()
		return &fault.Error{Kind: fault.Unavailable, Message: "too many others wait for instances to make room; try again later"}
	}
	defer release()
	return d.Evictor.Evict(ctx, eviction.Request{
		ID: t.request.ID, Preemptors: c.claims, Victims: c.victims, Hold: c.hold, Unconfirmed: &t.unconfirmed,
		Refused: func(host string) bool { return t.refusals[host] > 0 },
	})
}
