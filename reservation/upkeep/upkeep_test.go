// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// bookings is a booking service that counts the calls of upkeep.
type bookings struct {
	carried atomic.Int32 // a test reads it between two steps
	pruned  int
	woken   chan struct{}
	next    span.Instant // 0 if nothing is due
	fail    error
}

func (d *bookings) CarryOut(context.Context) ([]booking.Happening, map[string]error) {
	d.carried.Add(1)
	if d.fail != nil {
		return nil, map[string]error{"r-3": d.fail, "r-2": fmt.Errorf("carry out end of reservation r-2: %w", d.fail)}
	}
	return []booking.Happening{{
		Reservation: reservation.Reservation{ID: "r-1", ProjectID: "p", Status: reservation.Active},
		Event:       reservation.Event{Type: reservation.StartEvent, Time: 100, Done: 103},
	}}, nil
}

func (d *bookings) Prune()                 { d.pruned++ }
func (d *bookings) Woken() <-chan struct{} { return d.woken }

func (d *bookings) NextDue() (at span.Instant, ok bool) { return d.next, d.next != 0 }

type keys struct {
	before span.Instant
	lease  job.Lease
}

func (k *keys) PurgeKeys(_ context.Context, lease job.Lease, before span.Instant) (int, error) {
	k.lease, k.before = lease, before
	return 0, nil
}

// replica counts how often it reads the records.
type replica struct {
	followed, resynced int
	gone               []string // the gone replicas among "one" and "two"
}

func (r *replica) Follow(context.Context) error {
	r.followed++
	return nil
}

func (r *replica) Resync(context.Context) error {
	r.resynced++
	return nil
}

func (r *replica) TakeOver(_ context.Context, gone func(string) bool) error {
	r.gone = nil
	for _, name := range []string{"one", "two"} {
		if gone(name) {
			r.gone = append(r.gone, name)
		}
	}
	return nil
}

// shared is the common state of replicas: every lease is free, unless another replica has all.
type shared struct {
	there []string
	taken bool
}

func (s *shared) Present(context.Context, time.Duration) ([]string, error) { return s.there, nil }

func (s *shared) Take(_ context.Context, name string, _ time.Duration) (job.Lease, bool, error) {
	return job.Lease{Name: name, Epoch: 7}, !s.taken, nil
}

func TestWhatIsDueIsLookedForEveryPollAndWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d, k, r := &bookings{woken: make(chan struct{}, 1)}, &keys{}, &replica{}
		changed, others := make(chan struct{}, 1), &shared{there: []string{"one"}}
		var log bytes.Buffer
		seen := 0
		for _, j := range upkeep.Jobs(upkeep.Options{
			Booking: d, Keys: k, Replica: r, Presence: others, Leases: others, Changed: changed, Seen: func(n int) { seen = n },
			Poll: 10 * time.Second, KeyTTL: time.Hour,
			Now: func() span.Instant { return 10_000 }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}) {
			go j.Run(ctx, slog.New(slog.DiscardHandler))
		}
		time.Sleep(25 * time.Second) // on the bubble's clock: steps at 0, 10 and 20 s
		synctest.Wait()
		if d.carried.Load() != 3 || d.pruned != 1 || k.before != 10_000-3600 {
			t.Errorf("carried out %d times, pruned %d times, purged keys before %d", d.carried.Load(), d.pruned, k.before)
		}
		if r.followed != 3 || r.resynced != 1 || k.lease.Epoch != 7 {
			t.Errorf("followed %d times, compared all %d times, purged keys under %+v", r.followed, r.resynced, k.lease)
		}
		if len(r.gone) != 1 || r.gone[0] != "two" {
			t.Errorf("%v count as gone, want only two", r.gone)
		}
		if seen != 1 {
			t.Errorf("%d replicas were seen, want 1", seen)
		}
		changed <- struct{}{}
		synctest.Wait()
		if r.followed != 4 {
			t.Errorf("followed %d times after another replica has told of a change", r.followed)
		}
		d.woken <- struct{}{}
		synctest.Wait()
		if d.carried.Load() != 4 {
			t.Errorf("carried out %d times after a wake-up", d.carried.Load())
		}
		cancel()
		synctest.Wait()
		for _, want := range []string{"event=start", "reservation=r-1", "status=active", "late_seconds=3"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not contain %s:\n%s", want, log.String())
			}
		}
	})
}

func TestAnEventBeginsAtItsTimeAlsoBetweenTwoPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := &bookings{next: span.At(time.Now()) + 4}
		others := &shared{}
		for _, j := range upkeep.Jobs(upkeep.Options{
			Booking: d, Promises: allLive{}, Keys: &keys{}, Replica: &replica{}, Presence: others, Leases: others, Poll: time.Minute,
			Until: func(at span.Instant) time.Duration { return time.Until(at.Time()) }, Log: slog.New(slog.DiscardHandler),
		}) {
			if j.Name == "events" {
				go j.Run(ctx, slog.New(slog.DiscardHandler))
			}
		}
		time.Sleep(4*time.Second - time.Millisecond)
		synctest.Wait()
		before := d.carried.Load()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if before != 1 || d.carried.Load() != 2 {
			t.Errorf("looked for due events %d times before the time of one, and %d times at it; want 1 and 2", before, d.carried.Load())
		}
		cancel()
		synctest.Wait()
	})
}

func TestAFailedEventIsReported(t *testing.T) {
	d := &bookings{fail: errors.New("disk full")}
	for _, j := range upkeep.Jobs(upkeep.Options{Booking: d, Keys: &keys{}, Replica: &replica{}, Presence: &shared{}, Leases: &shared{}, Now: func() span.Instant { return 0 }, Log: slog.New(slog.DiscardHandler)}) {
		if j.Name != "events" {
			continue
		}
		if err := j.Step(t.Context()); !errors.Is(err, d.fail) || !strings.HasPrefix(err.Error(), "carry out end of reservation r-2") {
			t.Errorf("error %v, want the cause and the reservation", err)
		}
	}
}

// outbox has changes at places 1, 2, … and records which were sent.
type outbox struct {
	waiting []int64
	sent    []int64
}

func (o *outbox) Unsent(_ context.Context, limit int) ([]reservation.Change, error) {
	var changes []reservation.Change
	for _, place := range o.waiting[:min(limit, len(o.waiting))] {
		changes = append(changes, reservation.Change{Place: place})
	}
	return changes, nil
}

func (o *outbox) MarkSent(_ context.Context, _ job.Lease, places []int64) error {
	o.sent = append(o.sent, places...)
	o.waiting = slices.DeleteFunc(o.waiting, func(p int64) bool { return slices.Contains(places, p) })
	return nil
}

// notifier receives changes and fails at one place.
type notifier struct {
	heard   []int64
	failsAt int64
}

func (n *notifier) Notify(_ context.Context, c reservation.Change) error {
	if c.Place == n.failsAt {
		return errors.New("the broker is away")
	}
	n.heard = append(n.heard, c.Place)
	return nil
}

func TestNotificationsAreSentInOrderUntilOneFailsAndThenFromThatOneOn(t *testing.T) {
	o, n := &outbox{}, &notifier{failsAt: 130}
	for place := range int64(250) {
		o.waiting = append(o.waiting, place+1)
	}
	send := upkeep.Notifications(&shared{}, o, n)
	if err := send.Step(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	if len(n.heard) != 129 || len(o.sent) != 129 {
		t.Errorf("%d changes received and %d marked as sent before the failure, want 129", len(n.heard), len(o.sent))
	}
	n.failsAt = 0
	if err := send.Step(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.IsSorted(n.heard) || len(n.heard) != 250 || len(o.waiting) != 0 {
		t.Errorf("received %d changes, in order: %v; %d still wait", len(n.heard), slices.IsSorted(n.heard), len(o.waiting))
	}
}

func TestAReplicaWithoutTheLeaseSendsNothing(t *testing.T) {
	o, n := &outbox{waiting: []int64{1}}, &notifier{}
	if err := upkeep.Notifications(&shared{taken: true}, o, n).Step(t.Context()); err != nil || len(n.heard) > 0 {
		t.Errorf("the replica sent %v: %v", n.heard, err)
	}
}
