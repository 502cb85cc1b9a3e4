// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

func TestEachHostOfThePoolIsInOneState(t *testing.T) {
	host := func(name string, change func(*inventory.Host)) inventory.Host {
		h := inventory.Host{Name: name, Reservable: true}
		change(&h)
		return h
	}
	nothing := func(*inventory.Host) {}
	guests := func(h *inventory.Host) { h.InstanceCount = 1 }
	down := func(h *inventory.Host) { h.Problem = "its nova-compute is down" }
	hosts, err := inventory.NewSnapshot([]inventory.Host{
		host("free", nothing), host("later", nothing), host("asleep", func(h *inventory.Host) { h.Power = inventory.PowerSleeping }),
		host("occupied", guests), host("down", down), host("promised", guests), host("promised and down", down), host("overdue", nothing),
		host("outside", func(h *inventory.Host) { h.Reservable = false }),
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(host string, start, end span.Instant) reservation.Claim {
		return reservation.Claim{Host: host, Span: span.Span{Start: start, End: end}}
	}
	got := poolHosts(hosts, []reservation.Claim{
		claim("later", 101, 200), claim("promised", 100, 200), claim("promised and down", 50, 200), claim("overdue", 50, 90), claim("outside", 50, 200),
	}, 100)
	if diff := cmp.Diff(map[string]int{"free": 3, "occupied": 1, "failed": 1, "promised": 3}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAStartIsLateUntilItIsCarriedOut(t *testing.T) {
	with := func(events ...reservation.Event) *reservation.Reservation {
		return &reservation.Reservation{Events: events}
	}
	start := func(at span.Instant, state reservation.EventState) reservation.Event {
		return reservation.Event{Type: reservation.StartEvent, Time: at, State: state}
	}
	end := reservation.Event{Type: reservation.EndEvent, Time: 10, State: reservation.EventDue}
	count, seconds := lateStarts(slices.Values([]*reservation.Reservation{
		with(start(90, reservation.EventDue)), with(start(70, reservation.EventDue)), with(start(100, reservation.EventDue)), with(start(50, reservation.EventDone), end), with(),
	}), 100)
	if count != 2 || seconds != 30 {
		t.Errorf("%d are late, the first for %d s; want 2, 30 s", count, seconds)
	}
}
