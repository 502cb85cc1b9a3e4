// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Promises is the live reservations, as booking.Service has them in memory.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
	Reservation(id string) (reservation.Reservation, bool)
}

// Rules are the operator's settings for starts and ends. Times are in seconds.
type Rules struct {
	Fence fence.Rules
	// Normal is the order for others' instances that are not preemptible, from LeadTime
	// before the start on.
	Normal   Order
	LeadTime int64
	// Preemptible is the order for preemptible instances, from Eviction before the start
	// on.
	Preemptible Order
	Eviction    int64
	// Left is the order for instances that ended reservations have left, from LeadTime
	// before the start on. An instance that has not migrated by Eviction before the start is
	// shelved.
	Left Order
	// Fill allows preemptible instances on the hosts of an active reservation until its
	// owner's instances need the room.
	Fill bool
	// EndGrace is how many seconds instances that are deleted at the end may take to shut down.
	EndGrace int64
}

// EnforcerOptions are the dependencies and settings of an Enforcer.
type EnforcerOptions struct {
	Fence     FenceBackend
	Instances Instances
	Promises  Promises
	Records   booking.Recaller // for reservations that are over, or that another replica has just booked
	Snapshot  func() *inventory.Snapshot
	// Untrusted returns why the inventory is untrusted; empty if it is trusted.
	Untrusted func() string
	// Departing returns, for each of the servers that belongs to unfinished best-effort work, the
	// deadline of its suspension; 0 means that no suspension has begun. A nil function means that
	// there is no best-effort work.
	Departing func(ctx context.Context, servers ...string) (map[string]span.Instant, error)
	// Rehome replaces hosts of a reservation that are not free; see booking.Service. A nil function
	// means that the hosts stay.
	Rehome func(ctx context.Context, id string, blocked planning.Failed) (r reservation.Reservation, changed bool, err error)
	// TellLeft notifies the owner of an instance that it leaves its host; a nil function means that
	// nobody is notified.
	TellLeft func(ctx context.Context, d Departure) error

	Rules Rules
	Now   func() span.Instant
	// Elapsed is the time since some moment, on a monotonic clock.
	Elapsed func() time.Duration
	// Wait waits for d, or until ctx ends, and returns the error of ctx; nil is job.Pause.
	Wait func(ctx context.Context, d time.Duration) error
	Log  *slog.Logger
}

// Enforcer prepares hosts for reservations and carries out starts and ends in the cloud. It is safe
// for concurrent use. Several replicas may each run one, because every action can be repeated by
// any of them.
type Enforcer struct {
	EnforcerOptions
	layoutCache *layoutCache
	orders      orders
	warnings    warnings
	searches    searches
	// asking limits concurrent reads of a host's instances, preparing limits concurrent
	// preparations.
	asking, preparing chan struct{}
}

// NewEnforcer returns an Enforcer.
func NewEnforcer(o EnforcerOptions) *Enforcer {
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	return &Enforcer{
		EnforcerOptions: o,
		layoutCache:     newLayoutCache(o.Fence, o.Now),
		orders:          orders{instances: o.Instances, now: o.Now},
		asking:          make(chan struct{}, 8),
		preparing:       make(chan struct{}, 4),
	}
}

// Carry implements booking.Cloud. A warning before the end requires no work in the cloud.
func (s *Enforcer) Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
	switch event {
	case reservation.StartEvent:
		return s.start(ctx, r.ID)
	case reservation.EndEvent:
		return s.end(ctx, r)
	}
	return nil
}

// differences returns the steps from the layout to the one that the reservations need.
func (s *Enforcer) differences(layout fence.Layout, live []reservation.Reservation) []fence.Step {
	return s.differencesOn(s.Snapshot(), layout, live)
}

func (s *Enforcer) differencesOn(hosts *inventory.Snapshot, layout fence.Layout, live []reservation.Reservation) []fence.Step {
	return fence.Diff(layout, fence.Desired(withoutFreedClaims(live, layout), hosts, s.Now(), s.Rules.Fence))
}

// carry carries out a step, and marks what was read before it as out of date.
func (s *Enforcer) carry(ctx context.Context, step fence.Step) error {
	err := s.Fence.Carry(ctx, step)
	s.layoutCache.outdate(step)
	if err != nil {
		return wrapForUser(err, "%s for the reservation", step.Action)
	}
	s.Log.InfoContext(ctx, "changed the fence in OpenStack", "action", step.Action, "reservation", step.Reservation,
		"host", step.Host, "reason", step.Reason)
	return nil
}

// failureOf returns the reason why the host cannot run instances now; "" if it can.
func failureOf(hosts *inventory.Snapshot, name string) string {
	i, there := hosts.Index(name)
	if !there {
		return "it has left the cloud"
	}
	return hosts.Host(i).Failure()
}

// each runs do for 0 … n-1, with as many calls at once as there are slots.
func each(ctx context.Context, slots chan struct{}, n int, do func(i int) error) error {
	errs := make([]error, n)
	var doing sync.WaitGroup
	for i := range n {
		select {
		case <-ctx.Done():
			errs[i] = ctx.Err()
		case slots <- struct{}{}:
			doing.Go(func() {
				defer func() { <-slots }()
				errs[i] = do(i)
			})
		}
	}
	doing.Wait()
	return errors.Join(errs...)
}

// wrapForUser wraps err with a sentence for the user that names the action that failed. If err is a
// fault, it adds the fault's message.
func wrapForUser(err error, doing string, args ...any) error {
	sentence := fault.New(fault.Unavailable, doing, args...)
	sentence.Err = err
	if known, ok := errors.AsType[*fault.Error](err); ok {
		sentence.Kind, sentence.Message = known.Kind, sentence.Message+": "+known.Message
		sentence.RetryAfter = known.RetryAfter
		return sentence
	}
	sentence.Message += ": OpenStack did not answer as expected; Almanac will retry"
	return sentence
}
