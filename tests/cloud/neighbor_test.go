// SPDX-License-Identifier: Apache-2.0

package cloud

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
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// The test measures ten ordinary clients of one project and a caller of select_destinations, in
// turns without and with a member of another project who sends the API's most expensive
// requests as fast as possible, without a rate limit. Both measurements run on the same
// machine, so that their ratio also holds on a busy one.
func TestOneHostileMemberDoesNotSlowTheOthers(t *testing.T) {
	b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), "OS_DEFAULT__DEBUG=false", "OS_RESERVATION__LEAD_TIME=1m")...)
	built.TakeTopic(t)
	hosts := b.cloud.Hosts(t)
	reserved := hosts[:len(hosts)/2]
	b.pool(reserved...)
	ordinary, hostile := newNeighbors(b), newHostile(b, reserved)
	var quiet, noisy answerTimes
	for range 3 {
		ordinary.work(&quiet, nil)
		ordinary.work(&noisy, hostile)
	}
	t.Logf("without: %v", &quiet)
	t.Logf("beside:  %v", &noisy)
	t.Logf("the hostile member got the answers %v", hostile.answers)
	for _, of := range []struct {
		who             string
		percent         int
		without, beside []time.Duration
	}{
		{"ordinary clients", 99, quiet.clients, noisy.clients},
		{"select_destinations", 90, quiet.placed, noisy.placed}, // only some dozens, so the slowest one is chance
	} {
		without, beside := percentile(of.without, of.percent), percentile(of.beside, of.percent)
		if beside >= 5*without {
			t.Errorf("%s: p%d is %v beside a hostile member and %v without, want less than 5 times as long", of.who, of.percent, beside, without)
		}
	}
}

// answerTimes holds the durations of the answers to ordinary callers.
type answerTimes struct{ clients, placed []time.Duration }

func (n *answerTimes) String() string {
	return fmt.Sprintf("%d requests p50 %v p99 %v; %d placements p50 %v p90 %v",
		len(n.clients), percentile(n.clients, 50), percentile(n.clients, 99), len(n.placed), percentile(n.placed, 50), percentile(n.placed, 90))
}

// percentile returns 0 for an empty list.
func percentile(took []time.Duration, percent int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)*percent/100].Round(100 * time.Microsecond)
}

// neighbors is ten ordinary clients and a conductor, with an admin who removes its allocations.
type neighbors struct {
	t         *testing.T
	clients   []*client.Client
	conductor *labtest.Conductor
	admin     *labtest.REST
}

func newNeighbors(b *beside) *neighbors {
	n := &neighbors{t: b.t, conductor: labtest.NewConductor(b.t, labtest.NovaTransport(b.t)), admin: b.cloud.REST(b.t, labtest.Admin)}
	for range 10 {
		n.clients = append(n.clients, b.calls(b.demo.user))
	}
	return n
}

// work lets the ordinary callers work for some seconds, beside the hostile member unless h is
// nil, and adds their measurements.
func (n *neighbors) work(to *answerTimes, h *hostile) {
	n.t.Helper()
	ctx, stop := context.WithTimeout(n.t.Context(), 5*time.Second)
	defer stop()
	var all sync.WaitGroup
	if h != nil {
		for i := range 32 {
			all.Go(func() { h.attack(ctx, i) })
		}
		<-time.After(500 * time.Millisecond) // until its requests are under way
	}
	var mu sync.Mutex
	measured := func(to *[]time.Duration) func(time.Duration) {
		return func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, d)
		}
	}
	for _, c := range n.clients {
		all.Go(func() { n.ordinary(ctx, c, measured(&to.clients)) })
	}
	all.Go(func() { n.place(ctx, measured(&to.placed)) })
	all.Wait()
}

// ordinary makes a client's calls one after the other, with pauses.
func (n *neighbors) ordinary(ctx context.Context, c *client.Client, took func(time.Duration)) {
	timed := func(what string, do func() error) {
		begun := time.Now()
		if err := do(); err != nil {
			n.t.Errorf("an ordinary client: %s: %v", what, err)
		}
		took(time.Since(begun))
		chaos.Pass(ctx, time.Duration(20+rand.IntN(40))*time.Millisecond)
	}
	for ctx.Err() == nil {
		begin := time.Now().Add(time.Hour + time.Duration(rand.IntN(20*24*3600))*time.Second).Truncate(time.Second)
		var made v1.Reservation
		timed("availability", func() error {
			_, err := c.Availability(n.t.Context(), client.AvailabilityQuery{Quantity: 1, Start: begin, End: begin.Add(24 * time.Hour), Duration: 60})
			return err
		})
		timed("book", func() (err error) {
			made, err = c.CreateReservation(n.t.Context(), v1.ReservationRequest{
				Name: "ordinary", StartTime: &begin, Duration: new(v1.Duration(60)), Quantity: new(1),
			}, client.CreateOptions{})
			if answer, ok := errors.AsType[*client.Error](err); ok && answer.Refusal != nil {
				return nil // another client has the hosts
			}
			return err
		})
		if made.ID == "" {
			continue
		}
		timed("show", func() error { _, err := c.GetReservation(n.t.Context(), made.ID); return err })
		timed("change", func() error {
			_, err := c.ChangeReservation(n.t.Context(), made.ID, v1.ReservationChange{Name: new("renamed")})
			return err
		})
		timed("cancel", func() error { return c.DeleteReservation(n.t.Context(), made.ID) })
	}
}

// place requests a host for one instance after the other, as nova-conductor does.
func (n *neighbors) place(ctx context.Context, took func(time.Duration)) {
	for ctx.Err() == nil {
		id, begun := uuid.NewString(), time.Now()
		if _, err := n.conductor.SelectDestinations(n.t.Context(), labtest.RequestSpec{MemoryMB: 64}, []string{id}, true, true); err != nil {
			n.t.Errorf("request a host: %v", err)
			return
		}
		took(time.Since(begun))
		if status := n.admin.Do(http.MethodDelete, "placement", "/allocations/"+id, nil, nil); status != http.StatusNoContent {
			n.t.Errorf("delete the allocation: status %d", status)
		}
	}
}
