// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

func hosts(first, last int) []int {
	var list []int
	for h := first; h <= last; h++ {
		list = append(list, h)
	}
	return list
}

func claims(w span.Span, hosts []int) []calendar.Claim {
	var list []calendar.Claim
	for _, h := range hosts {
		list = append(list, calendar.Claim{Host: h, Span: w})
	}
	return list
}

func add(t *testing.T, c *calendar.Calendar, start, end span.Instant, hosts []int) {
	t.Helper()
	if err := c.Add(claims(span.Span{Start: start, End: end}, hosts)...); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c *calendar.Calendar, start, end span.Instant, hosts []int) {
	t.Helper()
	if err := c.Remove(claims(span.Span{Start: start, End: end}, hosts)...); err != nil {
		t.Fatal(err)
	}
}

// figure1 returns Figure 1 of paper 003 with t0 … t10 = 0, 10, 20, 30, 45, 55, 75, 85, 100, 110, 130.
func figure1(t *testing.T) (*calendar.Calendar, calendar.Query) {
	c := calendar.New(make([]resource.Vector, 12), 0)
	add(t, c, 0, 30, hosts(0, 3))
	add(t, c, 0, 10, hosts(4, 6))
	add(t, c, 100, 130, hosts(2, 7))
	return c, calendar.Query{Now: 0, Ready: 20, Duration: 25, Deadline: 110, Quantity: 4}
}

func wantSlots(t *testing.T, c *calendar.Calendar, want ...calendar.Slot) {
	t.Helper()
	if diff := cmp.Diff(want, c.Slots()); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}

func candidates(c *calendar.Calendar, q calendar.Query) []calendar.Candidate {
	var list []calendar.Candidate
	for candidate := range c.Candidates(q) {
		list = append(list, candidate)
	}
	return list
}

func TestA003_1_TheListOfFigure1(t *testing.T) {
	c, _ := figure1(t)
	wantSlots(t, c,
		calendar.Slot{Time: 0, Busy: hosts(0, 6)}, calendar.Slot{Time: 10, Busy: hosts(0, 3)},
		calendar.Slot{Time: 30, Busy: []int{}}, calendar.Slot{Time: 100, Busy: hosts(2, 7)},
		calendar.Slot{Time: 130, Busy: []int{}})
}

func TestA003_2_FeasibleStartsAndTheirRectangles(t *testing.T) {
	c, q := figure1(t)
	want := []calendar.Candidate{
		{Start: 20, Begin: 10, End: 100, Free: 8},
		{Start: 30, Begin: 30, End: 100, Free: 12},
		{Start: 75, Begin: 30, End: 100, Free: 12},
		{Start: 85, Begin: 30, End: 130, Free: 6},
	}
	if diff := cmp.Diff(want, candidates(c, q)); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}

func TestA003_3_WhatEachPolicyChooses(t *testing.T) {
	c, q := figure1(t)
	for policy, want := range map[calendar.Policy]span.Instant{
		calendar.PolicyFirstFit: 20, calendar.PolicyPEBestFit: 85, calendar.PolicyPEWorstFit: 30, calendar.PolicyDurationBestFit: 30,
		calendar.PolicyDurationWorstFit: 85, calendar.PolicyPEDurationBestFit: 85, calendar.PolicyPEDurationWorstFit: 30,
	} {
		if got, ok := c.Find(q, policy); !ok || got != want {
			t.Errorf("%s: start %d (found: %v), want %d", policy, got, ok, want)
		}
	}
	for start, want := range map[span.Instant][]int{20: hosts(4, 11), 30: hosts(0, 11), 85: {0, 1, 8, 9, 10, 11}} {
		var got []int
		for h := range c.FreeAt(q, start).All() {
			got = append(got, h)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hosts free at %d (-want +got):\n%s", start, diff)
		}
	}
}

func TestA003_4_AddThenEarlyRelease(t *testing.T) {
	c, _ := figure1(t)
	add(t, c, 30, 55, hosts(0, 3))
	wantSlots(t, c,
		calendar.Slot{Time: 0, Busy: hosts(0, 6)}, calendar.Slot{Time: 10, Busy: hosts(0, 3)},
		calendar.Slot{Time: 55, Busy: []int{}}, calendar.Slot{Time: 100, Busy: hosts(2, 7)},
		calendar.Slot{Time: 130, Busy: []int{}})
	remove(t, c, 0, 10, hosts(4, 6))
	wantSlots(t, c,
		calendar.Slot{Time: 0, Busy: hosts(0, 3)}, calendar.Slot{Time: 55, Busy: []int{}},
		calendar.Slot{Time: 100, Busy: hosts(2, 7)}, calendar.Slot{Time: 130, Busy: []int{}})
}

func TestA003_5_MoreHostsThanThereAre(t *testing.T) {
	c, q := figure1(t)
	q.Quantity = 13
	for _, policy := range calendar.PaperPolicies {
		if start, ok := c.Find(q, policy); ok {
			t.Errorf("%s: 13 of 12 hosts at %d", policy, start)
		}
	}
	q.Quantity = 9
	var starts []span.Instant
	for _, candidate := range candidates(c, q) {
		starts = append(starts, candidate.Start)
	}
	if diff := cmp.Diff([]span.Instant{30, 75}, starts); diff != "" {
		t.Errorf("starts for 9 hosts (-want +got):\n%s", diff)
	}
	for _, policy := range calendar.PaperPolicies {
		if start, ok := c.Find(q, policy); !ok || start != 30 {
			t.Errorf("%s: 9 hosts at %d (found: %v), want 30", policy, start, ok)
		}
	}
}

func TestA003_6_TheEmptyList(t *testing.T) {
	c := calendar.New(make([]resource.Vector, 12), 0)
	start, ok := c.Find(calendar.Query{Ready: 5, Duration: 10, Deadline: 20, Quantity: 3}, calendar.PolicyFirstFit)
	if !ok || start != 5 {
		t.Errorf("start %d (found: %v), want 5", start, ok)
	}
	add(t, c, 5, 15, hosts(0, 2))
	remove(t, c, 5, 15, hosts(0, 2))
	wantSlots(t, c)
}

func TestA003_7_TouchingClaimsOfTwoHosts(t *testing.T) {
	c := calendar.New(make([]resource.Vector, 12), 0)
	add(t, c, 50, 60, []int{0})
	add(t, c, 40, 50, []int{1})
	wantSlots(t, c,
		calendar.Slot{Time: 40, Busy: []int{1}}, calendar.Slot{Time: 50, Busy: []int{0}},
		calendar.Slot{Time: 60, Busy: []int{}})
}

func TestA003_8_AnImmediateDeadlineHasOneCandidate(t *testing.T) {
	c, q := figure1(t)
	q.Deadline = q.Ready + 25
	if got := candidates(c, q); len(got) != 1 || got[0].Start != q.Ready {
		t.Errorf("candidates %v, want one at %d", got, q.Ready)
	}
	for _, policy := range calendar.PaperPolicies {
		if start, ok := c.Find(q, policy); !ok || start != q.Ready {
			t.Errorf("%s: start %d (found: %v), want %d", policy, start, ok, q.Ready)
		}
	}
}
