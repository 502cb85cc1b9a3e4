// Package dispatch carries placements out: what the pipeline has chosen counts at once
// for the next, is claimed in Placement, and is taken back where nobody is told of it.
// Preemptible instances that make room give up what is taken of theirs in the same
// transaction of Placement, and get it back in one where they do not leave.
package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Planner chooses hosts; *scheduler.Pipeline is one.
type Planner interface {
	Plan(s *inventory.States, r *placing.Request, now span.Instant, draw func(n int) int) scheduler.Plan
}

// Claims are those in Placement; *placement.Client has them.
type Claims interface {
	// Claim gives all consumers what their claims say, or none. It fails with a
	// *placing.NoRoom, placing.ErrTaken, placing.ErrOvertaken or placing.ErrUnsent where
	// they are not granted. After any other Unavailable fault nobody knows whether they
	// were, or will be.
	Claim(ctx context.Context, claims []placing.Claim) error
	// AllocationsOf gives what a consumer has; without a Generation where it has nothing.
	AllocationsOf(ctx context.Context, consumer string) (placing.Claim, error)
	// Release gives consumers back what they had before, but for those whose
	// allocations are no longer those of their claim.
	Release(ctx context.Context, claims []placing.Claim) error
}

// Looker reads hosts anew and corrects the board.
type Looker interface {
	Look(ctx context.Context, hosts []string) error
}

// Decisions keeps what was decided. Keep never waits.
type Decisions interface {
	Keep(d placing.Decision)
}

// Servers are those that make room; Nova has them.
type Servers interface {
	// Server gives an instance as it is now, but for what it Holds. It fails with a NotFound
	// fault where there is none.
	Server(ctx context.Context, id string) (inventory.Instance, error)
	// Warn tells the owner of an instance that it has to go, or not any more.
	Warn(ctx context.Context, w Warning) error
	// Leave tells an instance to leave i.Host, and does not wait until it has. Told again
	// where its Status is another, it does the next step; what is under way is left alone.
	// It fails with a Conflict fault where Nova refuses it.
	Leave(ctx context.Context, i inventory.Instance) error
}

// Warning is what the owner of an instance is told before it has to go.
type Warning struct {
	Instance inventory.Instance
	At       time.Time // when it has to go; the zero time is not any more
	Was      time.Time // with a zero At: the time that is taken back, and no other; the zero time is any
	Request  string    // id of the API request for which it makes room
}

// Evictions keeps the evictions under way, so that another replica undoes what one has
// left undone that is gone. They take an id that nothing else has.
type Evictions interface {
	BeginEviction(ctx context.Context, e Eviction) error
	// EndEviction forgets one. It fails with a Conflict fault where another replica has
	// taken it over.
	EndEviction(ctx context.Context, id string) error
	// TakeEvictions takes over those of replicas that are gone.
	TakeEvictions(ctx context.Context) ([]Eviction, error)
}

// Eviction is what Placement is asked for in one transaction: instances get what they
// claim of what victims have. With NoticeFor it is only the notice before that.
type Eviction struct {
	ID        string          `json:"id"`
	NoticeFor time.Time       `json:"notice_for,omitzero"` // when the victims have to go; their claims say only who they are
	Newcomers []placing.Claim `json:"newcomers"`
	Victims   []Victim        `json:"victims"`
}

// Victim is an instance that makes room on a host. Its Claim leaves it what nobody takes.
type Victim struct {
	Host  string        `json:"host"`
	Claim placing.Claim `json:"claim"`
}

// Options are what a Dispatcher works with.
type Options struct {
	Board   *inventory.LiveState
	Planner Planner
	Claims  Claims
	Looker  Looker
	// Servers make room where a plan has victims; nil only where none has.
	Servers Servers
	// Evictions keeps what is under way, under ids of NewID; nil does not.
	Evictions Evictions
	NewID     func() string
	// Notice is how long before they have to go the owners of victims are told.
	Notice time.Duration
	// EvictionTimeout is how long after the notice victims have to be gone.
	EvictionTimeout time.Duration
	// LeaveFirst has the victims leave with what they have in Placement, which is claimed
	// only when they are gone: a migration takes it along.
	LeaveFirst bool
	// MostMoves is how many requests at once have victims that LeaveFirst; others are
	// refused, since who moves the victims asks for hosts in the same way. 0 is any number.
	MostMoves int
	// Reread reads all hosts anew, for the board; nil does not.
	Reread    func(ctx context.Context) error
	Decisions Decisions
	Now       func() time.Time
	// Draw gives one of 0 … n-1; it is called by several goroutines at once.
	Draw func(n int) int
	// Wait passes the time between two attempts; nil waits by the clock.
	Wait func(ctx context.Context, d time.Duration) error
	Log  *slog.Logger
}

// Dispatcher places instances. It is safe for concurrent use.
type Dispatcher struct {
	Options
	leftovers  leftovers
	debts      debts
	readings   readings
	stubborn   stubborn
	departures departures
	moves      chan struct{} // holds one for each request of MostMoves; nil where any number may
	evicted    struct{ gone, stayed atomic.Int64 }
}

// New gives a Dispatcher. Its Sweep has to be called again and again.
func New(o Options) *Dispatcher {
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	d := &Dispatcher{Options: o}
	d.leftovers.turn = make(chan struct{}, 1)
	d.leftovers.turn <- struct{}{}
	d.readings.turn = make(chan struct{}, 1)
	if o.LeaveFirst && o.MostMoves > 0 {
		d.moves = make(chan struct{}, o.MostMoves)
	}
	return d
}

// Evicted counts the instances that were told to make room and have gone, and those that
// were chosen to and stayed.
func (d *Dispatcher) Evicted() (gone, stayed int64) {
	return d.evicted.gone.Load(), d.evicted.stayed.Load()
}

// Placed is where the instances of a request go.
type Placed struct {
	// Selections are, for each instance in its order, the host that it has and then the
	// alternates.
	Selections [][]Selection
	claims     []placing.Claim
}

// Selection is a host for an instance, as Nova has it (nova/objects/selection.py).
type Selection struct {
	Host *inventory.HostState
	// Allocations are what the instance has of the host, or takes of it where it is an
	// alternate; nil where nothing is claimed, as for a rebuild.
	Allocations placing.Allocations
}

// AllocationRequest gives the Allocations as Nova has them in a Selection: JSON, of
// version 1.36 of Placement, or "null".
func (s Selection) AllocationRequest() (string, error) {
	if s.Allocations == nil {
		return "null", nil
	}
	type object = map[string]any
	allocations, providers := object{}, []string{}
	for provider, amounts := range s.Allocations {
		allocations[provider] = object{"resources": amounts}
		providers = append(providers, provider)
	}
	slices.Sort(providers)
	text, err := json.Marshal(object{"allocations": allocations, "mappings": object{"": providers}})
	if err != nil {
		return "", fmt.Errorf("write the allocation request: %w", err)
	}
	return string(text), nil
}

// Place chooses hosts for the instances of a request and claims them: all or none. A
// rebuild claims nothing.
//
// It fails with a Conflict fault whose message tells the tenant why there is no place,
// and with an Unavailable one where Placement has not answered before ctx ends, or after
// some attempts. What it may have claimed by then Sweep releases.
func (d *Dispatcher) Place(ctx context.Context, r *placing.Request) (Placed, error) {
	begun := d.Now()
	t := task{
		Dispatcher: d, request: *r, refusals: map[string]int{},
		decision: placing.Decision{RequestID: r.ID, ProjectID: r.ProjectID, Instances: r.Instances},
	}
	placed, err := t.place(ctx)
	decision := t.decision
	decision.Way, decision.At, decision.Took = placing.Replaced, span.At(begun), d.Now().Sub(begun).Microseconds()
	if err != nil {
		decision.Placements, decision.Reason = nil, forTenant(fault.Of(err))
	}
	d.Decisions.Keep(decision)
	return placed, err
}

// forTenant gives why there is no place as the tenant may read it: a service's own words
// are not for him.
func forTenant(f *fault.Error) string {
	switch f.Kind {
	case fault.Conflict:
		return f.Message
	case fault.Unavailable:
		if f.Message == stayed {
			return stayed
		}
		return "Placement did not grant it in time; try again later"
	}
	return "the scheduler has failed; ask the operator"
}

// Return takes back what Place has given: who asked could not be told.
func (d *Dispatcher) Return(p Placed) { d.leave(p.claims) }
