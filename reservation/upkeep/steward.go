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
)

// Promises are the live reservations, as the booking desk knows them.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
	Reservation(id string) (reservation.Reservation, bool)
}

// Records finds reservations of which the desk does not know: those that are over,
// and those that another replica has just booked.
type Records interface {
	Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error)
}

// Rules are what the operator has settled about starts and ends. Times are in seconds.
type Rules struct {
	Fence fence.Rules
	// Normal is what becomes of the instances of others that are not preemptible,
	// from LeadTime before the start on: AwaitGuest or MigrateGuest.
	Normal   Order
	LeadTime int64
	// Preemptible is what becomes of those that are, from Eviction before the start
	// on: DeleteGuest, ShelveGuest, MigrateGuest or AwaitGuest.
	Preemptible Order
	Eviction    int64
	// Left is what becomes of the instances that reservations which are over have left, from
	// LeadTime before the start on: MigrateGuest, ShelveGuest, DeleteGuest or AwaitGuest. From
	// Eviction before it on, one that has not migrated is shelved.
	Left Order
	// Fill lets preemptible ones be on the hosts of a reservation while it runs: they make
	// room when its owner's instances come.
	Fill bool
	// EndGrace is how long instances that are deleted at the end have for a clean
	// shutdown.
	EndGrace int64
}

// StewardOptions are what a Steward works on.
type StewardOptions struct {
	Ground   Ground
	Guests   Guests
	Promises Promises
	Records  Records
	Snapshot func() *inventory.Snapshot
	// Doubt says why the inventory is not to be trusted now; empty where it is.
	Doubt func() string
	// Departing gives, of those of the servers that best-effort work has, until when they
	// are left to it, which suspends them; 0 is not known yet. Nil is none.
	Departing func(ctx context.Context, servers ...string) (map[string]span.Instant, error)
	// Rehome gives a reservation other hosts for those on which its start is blocked, see
	// booking.Desk; nil leaves it where it is.
	Rehome func(ctx context.Context, id string, blocked booking.Failed) (r reservation.Reservation, changed bool, err error)
	// TellLeft tells the owner of an instance that it leaves its host; nil tells nobody.
	TellLeft func(ctx context.Context, d Departure) error

	Rules Rules
	Now   func() span.Instant
	// Elapsed is the time since some moment, on a clock that nobody sets.
	Elapsed func() time.Duration
	// Wait waits for d, or until ctx ends, whose error it returns; nil is job.Pause.
	Wait func(ctx context.Context, d time.Duration) error
	Log  *slog.Logger
}

// Steward does on the cloud what starts and ends call for, and has their hosts ready
// in time. It is safe for concurrent use. Any number of replicas may have one: all
// that it does may be done again, by whichever.
type Steward struct {
	StewardOptions
	looks    *looks
	errands  errands
	warnings warnings
	// How many hosts are asked for their guests at once, and how many things are done
	// ahead of time.
	asking, preparing chan struct{}
}

// NewSteward gives a Steward.
func NewSteward(o StewardOptions) *Steward {
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	return &Steward{
		StewardOptions: o,
		looks:          newLooks(o.Ground, o.Now),
		errands:        errands{guests: o.Guests, now: o.Now},
		asking:         make(chan struct{}, 8),
		preparing:      make(chan struct{}, 4),
	}
}

// Carry implements booking.Cloud. A warning before the end takes nothing on the cloud.
func (s *Steward) Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
	switch event {
	case reservation.StartEvent:
		return s.start(ctx, r.ID)
	case reservation.EndEvent:
		return s.end(ctx, r)
	}
	return nil
}

// always is all time: also of what is late.
var always = span.Span{Start: -span.Forever, End: span.Forever}

// differences are the steps that are missing from layout to what the reservations
// ask for.
func (s *Steward) differences(layout fence.Layout, live []reservation.Reservation) []fence.Step {
	return s.differencesOn(s.Snapshot(), layout, live)
}

func (s *Steward) differencesOn(hosts *inventory.Snapshot, layout fence.Layout, live []reservation.Reservation) []fence.Step {
	return fence.Diff(layout, fence.Desired(withoutGivenBack(live, layout), hosts, s.Now(), s.Rules.Fence))
}

// carry does a step, after which what was seen before is no longer so.
func (s *Steward) carry(ctx context.Context, step fence.Step) error {
	err := s.Ground.Carry(ctx, step)
	s.looks.outdate(step)
	if err != nil {
		return told(err, "%s for the reservation", step.Action)
	}
	s.Log.InfoContext(ctx, "the layout on the cloud has changed", "action", step.Action, "reservation", step.Reservation,
		"host", step.Host, "reason", step.Reason)
	return nil
}

// unfit says why the host can serve nobody now; empty where it can.
func unfit(hosts *inventory.Snapshot, name string) string {
	i, there := hosts.Index(name)
	if !there {
		return "it has left the cloud"
	}
	return hosts.Host(i).Failure()
}

// each does do for 0 … n-1, as many at once as there are slots.
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

// told says what was being done when err came, with a sentence for the owner where
// err has none.
func told(err error, doing string, args ...any) error {
	sentence := fault.New(fault.Unavailable, doing, args...)
	sentence.Err = err
	if known, ok := errors.AsType[*fault.Error](err); ok {
		sentence.Kind, sentence.Message = known.Kind, sentence.Message+": "+known.Message
		sentence.RetryAfter = known.RetryAfter
		return sentence
	}
	sentence.Message += ": the cloud did not answer as it should; it is tried again"
	return sentence
}
