package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// TestOneHostileMemberDoesNotSlowTheOthers measures ten ordinary clients of one project and a
// caller of select_destinations, in turns without and with a member of another project who
// sends the most expensive requests that the API takes, as fast as it takes them. No rate is
// limited. Both measurements meet the same machine, so that their ratio holds on a busy one.
func TestOneHostileMemberDoesNotSlowTheOthers(t *testing.T) {
	b := besideOpenStack(t, append(atTopic(t, replace, ""), "OS_DEFAULT__DEBUG=false", "OS_RESERVATION__LEAD_TIME=1m")...)
	takeTopic(t)
	hosts := b.cloud.Hosts(t)
	reserved := hosts[:len(hosts)/2]
	b.pool(reserved...)
	hostile := newHostile(b, reserved)
	var quiet, noisy neighbors
	for range 4 {
		b.work(&quiet, nil)
		b.work(&noisy, hostile)
	}
	t.Logf("without: %v", &quiet)
	t.Logf("beside:  %v", &noisy)
	t.Logf("the hostile member was answered %v", hostile.answers)
	for _, of := range []struct {
		who             string
		without, beside []time.Duration
	}{{"ordinary clients", quiet.clients, noisy.clients}, {"select_destinations", quiet.placed, noisy.placed}} {
		without, beside := percentile(of.without, 99), percentile(of.beside, 99)
		if beside >= 5*without {
			t.Errorf("%s: p99 is %v beside a hostile member and %v without: %.1f times as long, want less than 5", of.who, beside, without, beside.Seconds()/without.Seconds())
		}
	}
}

// neighbors are how long the answers to ordinary callers took.
type neighbors struct{ clients, placed []time.Duration }

func (n *neighbors) String() string {
	return fmt.Sprintf("%d requests p50 %v p99 %v; %d placements p50 %v p99 %v",
		len(n.clients), percentile(n.clients, 50), percentile(n.clients, 99), len(n.placed), percentile(n.placed, 50), percentile(n.placed, 99))
}

func percentile(took []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)*percent/100].Round(100 * time.Microsecond)
}

// work lets the ordinary callers work for some seconds, beside the hostile member if there is
// one, and adds what they measured.
func (b *beside) work(n *neighbors, h *hostile) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer stop()
	var all sync.WaitGroup
	if h != nil {
		for i := range 32 {
			all.Go(func() { h.attack(ctx, i) })
		}
		<-time.After(500 * time.Millisecond) // until its requests are on the way
	}
	var mu sync.Mutex
	measured := func(to *[]time.Duration) func(time.Duration) {
		return func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, d)
		}
	}
	for i := range uint64(10) {
		all.Go(func() { b.ordinary(ctx, i, measured(&n.clients)) })
	}
	all.Go(func() { b.placesOn(ctx, measured(&n.placed)) })
	all.Wait()
}

// ordinary does what a client does, one request after the other with some time between.
func (b *beside) ordinary(ctx context.Context, i uint64, took func(time.Duration)) {
	chance, c := rand.New(rand.NewPCG(i, uint64(time.Now().UnixNano()))), b.calls(b.demo.user)
	timed := func(what string, do func() error) {
		begun := time.Now()
		if err := do(); err != nil {
			b.t.Errorf("an ordinary client: %s: %v", what, err)
		}
		took(time.Since(begun))
		pass(ctx, time.Duration(20+chance.IntN(40))*time.Millisecond)
	}
	for ctx.Err() == nil {
		begin := time.Now().Add(time.Hour + time.Duration(chance.IntN(20*24*3600))*time.Second).Truncate(time.Second)
		var made v1.Reservation
		timed("availability", func() error {
			_, err := c.Availability(b.t.Context(), client.AvailabilityQuery{Start: begin, End: begin.Add(24 * time.Hour), Duration: 60})
			return err
		})
		timed("book", func() (err error) {
			made, err = c.CreateReservation(b.t.Context(), v1.ReservationRequest{
				Name: "ordinary", StartTime: &begin, Duration: new(v1.Duration(60)), Quantity: new(1),
			}, client.CreateOptions{})
			if answer, ok := errors.AsType[*client.Error](err); ok && answer.Refusal != nil {
				return nil // somebody else has the hosts
			}
			return err
		})
		if made.ID == "" {
			continue
		}
		timed("show", func() error { _, err := c.GetReservation(b.t.Context(), made.ID); return err })
		timed("change", func() error {
			_, err := c.ChangeReservation(b.t.Context(), made.ID, v1.ReservationChange{Name: new("renamed")})
			return err
		})
		timed("cancel", func() error { return c.DeleteReservation(b.t.Context(), made.ID) })
	}
}

// placesOn asks for a host for one instance after the other, as nova-conductor does.
func (b *beside) placesOn(ctx context.Context, took func(time.Duration)) {
	conductor, admin := labtest.NewConductor(b.t, labtest.NovaTransport(b.t)), b.cloud.REST(b.t, labtest.Admin)
	for ctx.Err() == nil {
		id, begun := uuid.NewString(), time.Now()
		if _, err := conductor.SelectDestinations(b.t.Context(), labtest.RequestSpec{MemoryMB: 64}, []string{id}, true, true); err != nil {
			b.t.Errorf("ask for a host: %v", err)
			return
		}
		took(time.Since(begun))
		admin.Must(http.MethodDelete, "placement", "/allocations/"+id, nil, nil)
	}
}
