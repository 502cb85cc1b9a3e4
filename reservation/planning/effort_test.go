// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"errors"
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// crowded returns a view of a hundred hosts, where room appears often but never suffices for the lease of as many
// reservations as one may have, all of instances of different sizes.
func crowded(t *testing.T) (View, reservation.LeaseRequest) {
	t.Helper()
	const now, hour = span.Instant(2_000_000_000), 3600
	size := resource.Vector{VCPUs: 64, MemoryMB: 640_000, DiskGB: 10_000}
	var hosts []inventory.Host
	var held []Hold
	for i := range 100 {
		name := fmt.Sprintf("h%03d", i)
		rack := map[string]inventory.Value{"rack": inventory.StringValue(fmt.Sprint(i % 10))}
		hosts = append(hosts, inventory.Host{Name: name, Capacity: size, Reservable: true, Power: inventory.PowerOn, Properties: rack})
		for j := range int64(30) {
			part := resource.Vector{VCPUs: 20 + (int64(i)+j)%7, MemoryMB: 1, DiskGB: 1}
			held = append(held, Hold{name, span.New(now.Add(int64(i)*60+j*2*hour), 2*hour), part})
		}
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewView(now, s, held)
	if err != nil {
		t.Fatal(err)
	}
	req := reservation.LeaseRequest{Name: "l", Start: now.Add(60), End: now.Add(50 * hour), Duration: 3 * hour}
	for i := range int64(MostMembers) {
		m := reservation.MemberRequest{Membership: reservation.Membership{Min: 25, Max: 30}}
		m.Kind, m.Resources = reservation.Instances, resource.Vector{VCPUs: 8 + i, MemoryMB: 1, DiskGB: 1}
		req.Members = append(req.Members, m)
	}
	return v, req
}

// A decision on a lease ends, and so does the explanation of its refusal, soon after the searches have looked at as many
// hosts as they may.
//
//make:test-drawn
func TestWhatALeaseCostsIsBounded(t *testing.T) {
	v, req := crowded(t)
	first := v.bounded(1 << 60)
	if _, err := leasePlanAt(first, req, span.New(req.Start, req.Duration)); err == nil {
		t.Fatal("there is room for the lease")
	}
	const most = 200_000
	// A start that was begun is tried to the end, and so is each reservation alone before.
	slack := 1<<60 - first.effort.left + mostStarts*MostMembers*100
	for what, do := range map[string]func(v View) error{
		"a decision":     func(v View) error { _, err := NewLeasePlan(v, req); return err },
		"an explanation": func(v View) error { _, err := NewLeasePlan(first, req); return ExplainLease(v, req, err) },
	} {
		spending := v.bounded(most)
		refusal, refused := errors.AsType[*reservation.Refusal](do(spending))
		if !refused {
			t.Fatalf("%s: no refusal", what)
		}
		if spent := most - spending.effort.left; spent < most || spent > most+slack {
			t.Errorf("%s looked at %d hosts, want %d and at most %d more", what, spent, most, slack)
		}
		if what == "an explanation" && refusal.LargestQuantity != 0 {
			t.Errorf("%d is named as the largest quantity, though not all were tried", refusal.LargestQuantity)
		}
	}
}

// Searches of one decision share what they know of a filter, and nothing else.
func TestSearchesOfOneDecisionFindWhatOthersFind(t *testing.T) {
	v, req := crowded(t)
	shared := v.bounded(mostLooked)
	for _, filter := range []string{"", `["=", "$name", "h001"]`, `[">=", "$vcpus", 64]`, `["<", "$free_ram_mb", 5]`, ""} {
		for _, ahead := range []bool{true, false} {
			m := req.Members[0]
			m.HostProperties = filter
			try := leaseTry{LeaseRequest: req, span: span.New(req.Start, req.Duration)}
			alone, err := try.searchFor(v, m)
			if err != nil {
				t.Fatal(filter, err)
			}
			other, err := try.searchFor(shared, m)
			if err != nil {
				t.Fatal(filter, err)
			}
			rest := alone.matching(ahead)
			rest.Subtract(other.matching(ahead))
			if a, b := alone.matching(ahead).Count(), other.matching(ahead).Count(); a != b || !rest.Empty() {
				t.Errorf("%s: %d hosts match, and %d for a search that shares the filter", filter, a, b)
			}
		}
	}
}
