// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Whoever asks for what needs many moves can make a decision look at no more hosts than that of a lease.
func TestTheSearchForMovesEndsWithItsEffort(t *testing.T) {
	const hour = 3600
	now := span.Instant(36_000)
	s, err := inventory.NewSnapshot([]inventory.Host{{Name: "h", Reservable: true, Power: inventory.PowerOn, Capacity: resource.Vector{VCPUs: 4}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	held := span.New(now.Add(2*hour), hour)
	v, err := NewView(now, s, []Hold{{Host: "h", Span: held}})
	if err != nil {
		t.Fatal(err)
	}
	mover := &reservation.Reservation{
		ID: "m", ProjectID: "p", Status: reservation.Pending, Span: held, Window: span.New(now, 6*hour), Version: 1,
		Terms:  reservation.Terms{Kind: reservation.Hosts, Quantity: 1, Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete, Notice: 60},
		Claims: []reservation.Claim{{Host: "h", Span: held}},
	}
	v.Movable = func(span.Span) []*reservation.Reservation { return []*reservation.Reservation{mover} }
	req := reservation.Request{Terms: reservation.Terms{Name: "r", Quantity: 1}, Start: held.Start, Duration: 600}
	if _, moved, ok := PlanWithMoves(v.bounded(1<<60), req); !ok || len(moved) != 1 {
		t.Fatalf("with effort: %v, %d moved", ok, len(moved))
	}
	spent := v.bounded(1)
	if _, moved, ok := PlanWithMoves(spent, req); ok || len(moved) > 0 {
		t.Errorf("without effort: %v, %d moved", ok, len(moved))
	}
	if spent.effort.left < -20 {
		t.Errorf("the decision has looked at %d hosts more than it may", -spent.effort.left)
	}
}
