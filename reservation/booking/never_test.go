// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// All hosts have claims, but the refusal does not name them.
func TestWhatNoHostCouldEverHoldIsRefusedAsThat(t *testing.T) {
	hosts := named("a", "b", "c")
	hosts[1].Capacity = resource.Vector{VCPUs: 64, MemoryMB: 1024, DiskGB: 10, Custom: map[string]int64{"CUSTOM_FPGA": 2}}
	s := newScene(t, hosts)
	s.book(t, during(3, 0, 1000))
	sized := func(v resource.Vector) reservation.Request {
		req := during(1, 100, 200)
		req.Kind, req.Resources = reservation.Instances, v
		return req
	}
	many := func(quantity int, affinity calendar.Affinity) reservation.Request {
		req := cpus(8, quantity, 100, 200)
		req.Affinity = affinity
		return req
	}
	filtered := func(req reservation.Request) reservation.Request {
		req.HostProperties = `["<", "$vcpus", 64]`
		return req
	}
	for name, tc := range map[string]struct {
		req        reservation.Request
		constraint reservation.Constraint
		says       string
	}{
		"more VCPUs":                 {sized(resource.Vector{VCPUs: 1000}), reservation.HostsInPool, "no host has 1000 VCPUs; the largest has 64"},
		"more memory":                {sized(resource.Vector{MemoryMB: 16385}), reservation.HostsInPool, "no host has 16385 MB of memory; the largest has 16384"},
		"more disk":                  {sized(resource.Vector{DiskGB: 101}), reservation.HostsInPool, "no host has 101 GB of disk; the largest has 100"},
		"more of a resource class":   {sized(resource.Vector{Custom: map[string]int64{"CUSTOM_FPGA": 3}}), reservation.HostsInPool, "no host has 3 CUSTOM_FPGA; the largest has 2"},
		"never together":             {sized(resource.Vector{VCPUs: 64, MemoryMB: 2048}), reservation.HostsInPool, "no host has 64 vcpus, 2048 MB memory, 0 GB disk together"},
		"more than those that match": {filtered(sized(resource.Vector{VCPUs: 9})), reservation.HostsMatching, "no host that matches host_properties has 9 VCPUs; the largest has 8"},
		"more instances":             {many(11, ""), reservation.HostsInPool, "they can hold 10 instances of this size when nothing is promised, and 11 are asked for"},
		"more on one host":           {many(9, calendar.AffinitySame), reservation.HostsInPool, "no host can hold more than 8 instances"},
		"more on different hosts":    {many(4, calendar.AffinityDifferent), reservation.HostsInPool, "fits on 3 hosts, and 4 are asked for"},
		"more whole hosts":           {during(4, 100, 200), reservation.HostsInPool, "the pool has 3, 4 hosts asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.bookings.Offer(t.Context(), owner, tc.req)
			got := refusal(t, err)
			if got.Constraint != tc.constraint || !strings.Contains(got.Message, tc.says) {
				t.Errorf("refused by %s: %s; want %s: %s", got.Constraint, got.Message, tc.constraint, tc.says)
			}
			if got.BlockedBy != nil || got.EarliestStart != 0 {
				t.Errorf("blocked by %v until %v, want no block", got.BlockedBy, got.EarliestStart)
			}
		})
	}
	_, err := s.bookings.Offer(t.Context(), owner, many(10, ""))
	if got := refusal(t, err); got.Constraint != reservation.HostsFree || len(got.BlockedBy) != 3 || got.EarliestStart != at(1000) {
		t.Errorf("a request that fits into an empty calendar: %v, %v until %v", got, got.BlockedBy, got.EarliestStart)
	}
}

// Another reservation holds all the other hosts.
func TestAChangeBeyondWhatTheHostsCouldEverHoldIsRefusedAsThat(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	r := s.book(t, during(1, 100, 200))
	s.book(t, during(2, 100, 200))
	_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, quantity(4))
	got := refusal(t, err)
	if got.Constraint != reservation.HostsInPool || got.BlockedBy != nil || got.EarliestStart != 0 || got.LargestQuantity != 1 {
		t.Errorf("beyond the pool: %s: %s, blocked by %v until %v, largest %d", got.Constraint, got.Message, got.BlockedBy, got.EarliestStart, got.LargestQuantity)
	}
	_, err = s.bookings.OfferChange(t.Context(), owner, r.ID, quantity(3))
	if got := refusal(t, err); got.Constraint != reservation.HostsFree || len(got.BlockedBy) != 2 || got.EarliestStart != at(200) {
		t.Errorf("a change that fits later: %s: %s, blocked by %v until %v", got.Constraint, got.Message, got.BlockedBy, got.EarliestStart)
	}
}

// One host is claimed, the other one is asleep or has failed.
func TestNothingBlocksWhatWouldBeRefusedWithoutClaimsToo(t *testing.T) {
	hosts := named("a", "b")
	hosts[1].Power, hosts[1].BootSeconds = inventory.PowerSleeping, 300
	s := newScene(t, hosts)
	first := s.book(t, during(1, 0, 100))
	s.book(t, only("a", during(1, 100, 200)))
	blocked := func(err error) bool { return len(refusal(t, err).BlockedBy) > 0 }
	_, one := s.bookings.Offer(t.Context(), owner, during(1, 50, 150))
	_, two := s.bookings.Offer(t.Context(), owner, during(2, 50, 150))
	_, grown := s.bookings.OfferChange(t.Context(), owner, first.ID, quantity(2))
	if !blocked(one) || blocked(two) || blocked(grown) {
		t.Errorf("one host is blocked by %v; two by %v and %v, though one of them sleeps", refusal(t, one).BlockedBy, refusal(t, two).BlockedBy, refusal(t, grown).BlockedBy)
	}
}

// A reservation that must stay on its hosts and get more needs room on both.
func TestBothItsOwnAndOtherHostsBlockAReservationThatGrowsForLonger(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, during(1, 0, 100))
	s.passTo(t, at(1))
	s.book(t, only("a", during(1, 100, 200)))
	s.book(t, only("b", during(1, 50, 200)))
	_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, planning.Change{Quantity: new(2), End: new(at(150))})
	want := []reservation.Block{{Host: "a", Span: span.Span{Start: at(100), End: at(200)}}, {Host: "b", Span: span.Span{Start: at(50), End: at(200)}}}
	if got := refusal(t, err).BlockedBy; !slices.Equal(got, want) {
		t.Errorf("blocked by %v, want %v", got, want)
	}
}
