// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
)

func TestAHostWithInstancesIsReservedIfOnlyItHasTheImageInTime(t *testing.T) {
	f := oneChannel()
	pool(f, "a", "A", 1000)
	hosts := named("a", "b")
	hosts[0].InstanceCount = 1
	s := newScene(t, hosts, looking(f))
	if _, err := s.bookings.Offer(t.Context(), owner, withImage("A", during(1, 30, 100))); err != nil {
		t.Errorf("refused: %v", err)
	}
	if _, err := s.bookings.Offer(t.Context(), owner, withImage("A", only("a", during(1, 30, 100)))); err != nil {
		t.Errorf("a by its name is refused: %v", err)
	}
}

func TestAScarceHostIsReservedIfItsOneTransferIsAllThatFits(t *testing.T) {
	hosts := named("a", "b", "c")
	for i, n := range []int64{1, 2, 1} {
		hosts[i].Capacity = resource.Vector{VCPUs: n}
	}
	s := newScene(t, hosts, looking(oneChannel()))
	req := withImage("A", cpus(1, 2, 60, 100))
	if _, err := s.bookings.Offer(t.Context(), owner, req); err != nil {
		t.Errorf("refused: %v", err)
	}
	if _, err := s.bookings.Offer(t.Context(), owner, only("b", req)); err != nil {
		t.Errorf("b by its name is refused: %v", err)
	}
}

func TestTheFirstStartAtWhichAHostWithTheImageIsFreeIsFound(t *testing.T) {
	f := oneChannel()
	pool(f, "b", "A", 1000)
	s := newScene(t, named("a", "b"), looking(f))
	s.book(t, only("b", during(1, 1, 10)))
	_, err := s.bookings.Offer(t.Context(), owner, withImage("A", during(1, 1, 21)))
	if r := refusal(t, err); r.EarliestStart != at(10) {
		t.Errorf("the earliest start is %d, want 10", r.EarliestStart-base)
	}
	if _, err := s.bookings.Offer(t.Context(), owner, withImage("A", during(1, 10, 30))); err != nil {
		t.Errorf("at 10: %v", err)
	}
	req := withImage("A", during(1, 1, 500))
	req.Duration = 20
	plan, err := s.bookings.Offer(t.Context(), owner, req)
	if err != nil || plan.Span.Start != at(10) {
		t.Errorf("first-fit in a window starts at %d, %v; want 10", plan.Span.Start-base, err)
	}
	req.End = at(40) // in this window there is no other
	if plan, err := s.bookings.Offer(t.Context(), owner, req); err != nil {
		t.Errorf("a window that contains the start 10: %v (%v)", err, plan.Span)
	}
}

func TestTheLargestQuantityCountsTransfers(t *testing.T) {
	s := newScene(t, named("a", "b"), looking(oneChannel()))
	s.book(t, only("a", during(1, 40, 60)))
	req := withImage("A", during(2, 40, 60))
	_, err := s.bookings.Offer(t.Context(), owner, req)
	if r := refusal(t, err); r.LargestQuantity != 0 {
		t.Errorf("a transfer takes 48 s, and the start is 40 s ahead; the refusal (%s) names %d as the largest quantity", r.Constraint, r.LargestQuantity)
	}
}

// Three hosts are needed, there is time for two transfers, and two hosts with instances have the image:
// one of them is enough.
func TestNoMoreHostsWithInstancesAreReservedThanTheTransfersRequire(t *testing.T) {
	f := oneChannel()
	hosts := named("a", "b", "c", "d", "e")
	for i := range hosts[:2] {
		hosts[i].InstanceCount = 1
		pool(f, hosts[i].Name, "A", 1000)
	}
	s := newScene(t, hosts, looking(f))
	plan, err := s.bookings.Offer(t.Context(), owner, withImage("A", during(3, 100, 200)))
	if got := hostsOf(plan); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "c", "d"}) {
		t.Errorf("got %v, %v; want a, c and d", got, err)
	}
}
