// Package dispatch places instances. The hosts that the pipeline chooses for a request count
// as used for the next one at once; then they are claimed in Placement, together with the
// eviction of preemptible instances where the plan needs their room.
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
)

// maxChoices is how often hosts are chosen for a request, again whenever others have claimed
// the room on those before.
const maxChoices = 10

// Planner chooses hosts; *scheduler.Pipeline is one.
type Planner interface {
	Plan(s *inventory.States, r *placing.Request, now span.Instant, draw func(n int) int) scheduler.Plan
}

// Decisions keeps decisions. Keep never waits.
type Decisions interface {
	Keep(d placing.Decision)
}

// Evictor evicts preemptible instances; *eviction.Evictor is one.
type Evictor interface {
	// Evict claims the room of victims for a request and evicts them.
	Evict(ctx context.Context, r eviction.Request) error
	// Unevictable returns the instances that cannot be evicted for any request now, with their
	// hosts, in a map of the caller's own.
	Unevictable() map[string]string
	// Duration returns how long an eviction takes at most.
	Duration() time.Duration
}

// Options are what a Dispatcher works with.
type Options struct {
	Board      *inventory.LiveState
	Planner    Planner
	Placement  claiming.Placement
	Looker     eviction.Looker
	Evictor    Evictor
	Ledger     *eviction.Ledger
	MaxWaiting int                             // requests that wait for victims at once, where their migrations need workers too; 0 is any number
	Reread     func(ctx context.Context) error // all hosts, for the board; nil does not
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
	slots   chan struct{} // holds one for each request of MaxWaiting; nil where any number may wait
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
	refusals    map[string]int // of Placement, by host
	looked      bool           // at the hosts that may have more room than the board shows
	reread      bool           // all hosts
	unconfirmed claiming.Unconfirmed
	excluded    map[string]string // instances that are not evicted for this request, with their hosts
	// ended is closed when an eviction for another request has ended that was under way when
	// hosts were chosen last; nil where none was. until bounds all waits for such evictions.
	ended <-chan struct{}
	until time.Time
}

// choice is where the pipeline puts the instances, and which others are evicted for them.
type choice struct {
	Placed
	victims []eviction.Victim
	hold    *inventory.Hold
}

// Place chooses hosts for the instances of a request and claims them: all or none. A
// rebuild claims nothing.
//
// It fails with a Conflict fault whose message tells the tenant why there is no place,
// and with an Unavailable one where Placement has not answered before ctx ends, or after
// some attempts. The Ledger releases what Placement may have granted then.
func (d *Dispatcher) Place(ctx context.Context, r *placing.Request) (Placed, error) {
	begun := d.Now()
	t := task{
		dispatcher: d, request: *r, refusals: map[string]int{}, excluded: map[string]string{},
		decision: placing.Decision{RequestID: r.ID, ProjectID: r.ProjectID, Instances: r.Instances},
	}
	placed, err := t.place(ctx)
	decision := t.decision
	decision.HandledBy, decision.At, decision.Took = placing.Replaced, span.At(begun), d.Now().Sub(begun).Microseconds()
	if err != nil {
		decision.Placements, decision.Reason = nil, forTenant(fault.Of(err))
	}
	d.Decisions.Keep(decision)
	return placed, err
}

// Return releases what Place has claimed, as its caller could not be told.
func (d *Dispatcher) Return(p Placed) { d.Ledger.Schedule(claiming.Unconfirmed{Claims: p.claims}) }

func (t *task) place(ctx context.Context) (p Placed, err error) {
	if t.request.Rebuild {
		return t.keepHosts()
	}
	if t.unconfirmed, err = t.dispatcher.Ledger.Adopt(ctx, t.request.Instances); err != nil {
		return Placed{}, err
	}
	for left := maxChoices; left > 0; left-- {
		var c choice
		t.ended = t.dispatcher.pending.next()
		if c, err = t.choose(ctx); err != nil {
			if t.confirm(ctx, err) {
				continue
			}
			if t.awaitEviction(ctx, err) {
				left++
				continue
			}
			break
		}
		if err = t.claim(ctx, c); err == nil {
			t.unconfirmed.Claims = nil
			t.dispatcher.Ledger.Schedule(t.unconfirmed)
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
	t.dispatcher.Ledger.Schedule(t.unconfirmed)
	return Placed{}, t.explained(err)
}

// claim claims what was chosen, and evicts its victims. It ends the hold, whatever happens.
func (t *task) claim(ctx context.Context, c choice) error {
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
