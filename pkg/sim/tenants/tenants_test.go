// SPDX-License-Identifier: Apache-2.0

package tenants_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/sim/tenants"
)

// bookings records the reservations that tenants request, and refuses every fifth.
type bookings struct {
	asked []string
	times []time.Duration // of the reservations and of the work
	has   map[string]int  // what exists, by kind
	made  int
}

func (d *bookings) note(kind, what string, more int) string {
	d.asked = append(d.asked, kind+" "+what)
	d.has[kind] += more
	d.made++
	return fmt.Sprint(kind, d.made)
}

func (d *bookings) CreateReservation(_ context.Context, r v1.ReservationRequest, _ client.CreateOptions) (v1.Reservation, error) {
	d.times = append(d.times, time.Duration(*r.Duration)*time.Second)
	if d.made%5 == 4 {
		d.note("refusal", r.Name, 1)
		return v1.Reservation{}, &client.Error{Status: 409, Message: "there is no room"}
	}
	return v1.Reservation{ID: d.note("reservation", r.Name, 1)}, nil
}

func (d *bookings) GetReservation(_ context.Context, id string) (v1.Reservation, error) {
	return v1.Reservation{ID: id, Status: "active"}, nil
}

func (d *bookings) DeleteReservation(_ context.Context, id string) error {
	d.note("reservation", "delete "+id, -1)
	return nil
}

func (d *bookings) CreateDemoServer(_ context.Context, r v1.DemoServerRequest) (v1.DemoServer, error) {
	return v1.DemoServer{ID: d.note("server", fmt.Sprint(r.Name, r.Hints, r.Preemptible), 1)}, nil
}

func (d *bookings) DeleteDemoServer(_ context.Context, id string) error {
	d.note("server", "delete "+id, -1)
	return &client.Error{Status: 404}
}

func (d *bookings) SubmitBestEffort(_ context.Context, r v1.BestEffortRequest, _ client.CreateOptions) (v1.BestEffort, error) {
	d.times = append(d.times, time.Duration(*r.Duration)*time.Second)
	return v1.BestEffort{ID: d.note("work", r.Name, 1)}, nil
}

func (d *bookings) CancelBestEffort(_ context.Context, id string) error {
	d.note("work", "cancel "+id, -1)
	return nil
}

// live returns what tenants have asked in 1,000 requests.
func live(t *testing.T, seed uint64) *bookings { return stretched(t, seed, 0) }

// stretched is live with stretched times.
func stretched(t *testing.T, seed uint64, by int) *bookings {
	t.Helper()
	d, left := &bookings{has: map[string]int{}}, 1000
	tenants.Live(t.Context(), tenants.Options{
		Bookings: d, Servers: d, Queue: d, Seed: seed, Pace: time.Second, Stretch: by, Now: func() time.Time { return time.Unix(1_900_000_000, 0) },
		Wait: func(context.Context, time.Duration) error {
			if left--; left < 0 {
				return context.Canceled
			}
			return nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	return d
}

func TestTheSameSeedMakesTheSameRequests(t *testing.T) {
	if diff := cmp.Diff(live(t, 1).asked, live(t, 1).asked); diff != "" {
		t.Errorf("the second run differs:\n%s", diff)
	}
	if cmp.Equal(live(t, 1).asked, live(t, 2).asked) {
		t.Error("another seed makes the same requests")
	}
}

func TestTenantsGoOnAfterARefusalAndHaveABoundedNumberOfThings(t *testing.T) {
	d := live(t, 1)
	if d.has["refusal"] == 0 || len(d.asked) < 900 {
		t.Errorf("after %d refusals there were %d requests", d.has["refusal"], len(d.asked))
	}
	for kind, most := range map[string]int{"reservation": 12, "server": 24, "work": 4} {
		if n := d.has[kind]; n < 1 || n > most {
			t.Errorf("the tenants have %d of kind %s, want 1 to %d", n, kind, most)
		}
	}
}

func TestStretchedTenantsAskForTheSameButForLonger(t *testing.T) {
	short, long := live(t, 1), stretched(t, 1, 12)
	if diff := cmp.Diff(short.asked, long.asked); diff != "" {
		t.Errorf("they ask for something else:\n%s", diff)
	}
	for i, d := range short.times {
		if long.times[i] != 12*d {
			t.Fatalf("the time %v has become %v", d, long.times[i])
		}
	}
}
