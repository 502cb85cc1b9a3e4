// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// In any cloud, the plan changes nothing, and the fix has the outcomes that the plan states. It gives no
// order to instances that belong where they are, removes nothing in doubt, and otherwise leaves nothing
// that it can fix.
func TestTheFixDoesWhatThePlanSaysAndLeavesNothingToFix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawPractice(t, rt)
		before := fmt.Sprint(w.cloud.carried, w.cloud.orders)
		plan, err := w.doctor.Plan(t.Context())
		if after := fmt.Sprint(w.cloud.carried, w.cloud.orders); err != nil || after != before {
			rt.Fatalf("the plan changes the cloud: %s, error %v", after, err)
		}
		steps := len(w.cloud.carried)
		fix, err := w.doctor.Fix(t.Context(), booking.Caller{})
		if want, got := outcomes(plan), outcomes(fix); err != nil || !slices.Equal(want, got) {
			rt.Fatalf("planned %q\nfixed %q, error %v", want, got, err)
		}
		for _, g := range w.cloud.guests {
			r := w.stored[g.ReservationID()]
			if g.order != "" && (w.untrusted != "" || r.ID == "" || r.Status.Live()) {
				rt.Fatalf("instance %s gets the order %s", g.ID, g.order)
			}
		}
		if w.untrusted != "" {
			if i := slices.IndexFunc(w.cloud.carried[steps:], func(s fence.Step) bool { return !s.Adds() }); i >= 0 {
				rt.Fatalf("in doubt, the fix removes: %+v", w.cloud.carried[steps+i])
			}
			return
		}
		for range 3 { // what was ordered happens, and what was canceled leaves
			for range 2 * (w.cloud.looks + 1) {
				for _, host := range w.cloud.hosts {
					_, _ = w.cloud.On(t.Context(), host)
				}
			}
			if fix, err = w.doctor.Fix(t.Context(), booking.Caller{}); err != nil {
				rt.Fatal(err)
			}
		}
		if i := slices.IndexFunc(fix.Findings, func(f upkeep.Finding) bool { return f.Fixable }); i >= 0 {
			rt.Fatalf("after all, there is %+v", fix.Findings[i])
		}
	})
}

// outcomes returns the findings with their outcomes. What is planned counts as fixed.
func outcomes(e upkeep.Examination) (list []string) {
	for _, f := range e.Findings {
		if f.Outcome == upkeep.FixPlanned {
			f.Outcome = upkeep.FixDone
		}
		list = append(list, fmt.Sprint(f.Kind, " ", f.Subject, " ", f.Outcome))
	}
	return list
}

// drawPractice draws a cloud that was as its reservations require, until some ended and others meddled.
func drawPractice(t *testing.T, rt *rapid.T) *practice {
	var all []reservation.Reservation
	for i, host := range []string{"a", "b", "c"} {
		switch n := fmt.Sprint(i); rapid.IntRange(0, 3).Draw(rt, "reservations of "+host) {
		case 1:
			all = append(all, whole("r"+n, host))
		case 2:
			all = append(all, half("r"+n, host), half("s"+n, host))
		case 3:
			r := whole("r"+n, host)
			r.Span, r.Status = span.Span{Start: 10_000 + span.Instant(rapid.Int64Range(0, 5_000).Draw(rt, "start")), End: 30_000}, reservation.Pending
			r.Claims[0].Span = r.Span
			all = append(all, r)
		}
	}
	w := newPractice(t, all...)
	w.lay()
	for _, r := range all {
		if r.Status == reservation.Active && rapid.Bool().Draw(rt, "has an instance") {
			_, _ = w.cloud.boot("of-"+r.ID, r.ProjectID, r.ID, w.now)
		}
		switch rapid.IntRange(0, 7).Draw(rt, "fate") {
		case 0, 1, 2:
			w.set(r.ID, rapid.SampledFrom([]reservation.Status{reservation.Ending, reservation.Ended, reservation.Canceled, reservation.Failed}).Draw(rt, "status"))
		case 3:
			w.gone[r.ProjectID] = true
		case 4:
			delete(w.stored, r.ID)
		}
	}
	for range rapid.IntRange(0, 5).Draw(rt, "changes") {
		w.meddle(rt)
	}
	if rapid.IntRange(0, 3).Draw(rt, "doubt") == 0 {
		w.untrusted = "half of the hosts are missing"
	}
	return w
}

// meddle changes something in the cloud, as an admin could.
func (w *practice) meddle(rt *rapid.T) {
	layout, err := w.cloud.Layout(w.t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	host := rapid.SampledFrom(w.cloud.hosts).Draw(rt, "host")
	action := rapid.SampledFrom([]fence.Action{
		fence.AddHost, fence.RemoveHost, fence.UnmarkAggregate, fence.AddTraits, fence.RemoveTraits, fence.RemoveRooms, fence.DeleteFlavor, "boot",
	}).Draw(rt, "action")
	step := fence.Step{Action: action, Host: host}
	switch action {
	case fence.AddHost, fence.RemoveHost, fence.UnmarkAggregate:
		step.Aggregate.Name = pick(rt, slices.Collect(maps.Keys(layout.Aggregates)))
		if key := pick(rt, slices.Collect(maps.Keys(layout.Aggregates[step.Aggregate.Name].Metadata))); action == fence.UnmarkAggregate {
			step.Aggregate.Metadata = map[string]string{key: ""}
		}
	case fence.AddTraits:
		step.Traits = []string{pick(rt, layout.TraitNames)}
	case fence.RemoveTraits:
		step.Traits = []string{pick(rt, layout.Traits[host])}
	case fence.RemoveRooms:
		step.Rooms = map[string]int64{pick(rt, slices.Collect(maps.Keys(layout.Rooms[host]))): 0}
	case fence.DeleteFlavor:
		step.Flavor.ID = pick(rt, slices.Collect(maps.Keys(layout.Flavors)))
	default:
		w.cloud.put(inventory.Instance{ID: "stranger-" + host, ProjectID: "tenant-9", Host: host, Status: "ACTIVE"})
		return
	}
	if slices.Contains(step.Traits, "") {
		return
	}
	_ = w.cloud.do(step) // what Nova or Placement refuses stays
}

// pick draws one of the names; "" if there are none.
func pick(rt *rapid.T, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return rapid.SampledFrom(slices.Sorted(slices.Values(names))).Draw(rt, "name")
}

func TestTheDoctorLeavesAHostToTheEventThatRemovesIt(t *testing.T) {
	ending := whole("r1", "a")
	w := newPractice(t, ending, whole("r2", "b"))
	w.lay()
	w.set("r1", reservation.Ending)
	w.carry(fence.Step{Action: fence.AddHost, Aggregate: inventory.Aggregate{Name: fence.AggregatePrefix + "r1"}, Host: "b"})
	e, err := w.doctor.Fix(t.Context(), booking.Caller{})
	if err != nil || len(e.Findings) != 1 || e.Findings[0].Kind != upkeep.TwoOwners || e.Findings[0].Fixable || e.Findings[0].Outcome != "" {
		t.Errorf("the fix of what the end of r1 removes: %+v, error %v", e.Findings, err)
	}
}
