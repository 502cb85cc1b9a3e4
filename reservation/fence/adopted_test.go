// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// summaries returns what the steps about Blazar's aggregate of r1 do.
func summaries(t *testing.T, blazars inventory.Aggregate, live ...reservation.Reservation) (list []string) {
	t.Helper()
	actual := desired(t, start, fence.Rules{}, live...)
	actual.Aggregates["r1"] = blazars
	for _, step := range fence.Diff(actual, desired(t, start, fence.Rules{}, live...)) {
		if step.Reservation != "r1" {
			t.Errorf("%s belongs to %q", step.Summary(), step.Reservation)
		}
		list = append(list, step.Summary())
	}
	return list
}

func TestAnAdoptedAggregateStaysAsLongAsItsReservationLives(t *testing.T) {
	adopted := inventory.Aggregate{ID: 7, Name: "r1", Zone: "blazar_r1", Hosts: []string{"a", "b"}, Metadata: map[string]string{"almanac:reservation": "r1", "blazar:owner": "p"}}
	if got := summaries(t, adopted, booked("r1", "a", "b")); len(got) > 0 {
		t.Errorf("while it is live: %v", got)
	}
	pending := booked("r1", "a", "b")
	pending.Span = span.New(start.Add(30*24*3600), 3600)
	if got := summaries(t, inventory.Aggregate{ID: 7, Name: "r1", Metadata: adopted.Metadata}, pending); len(got) > 0 {
		t.Errorf("long before its start: %v", got)
	}
	gone := []string{"remove host a from aggregate r1", "remove host b from aggregate r1", "delete aggregate r1"}
	if got := summaries(t, adopted, booked("r2", "c")); !slices.Equal(got, gone) {
		t.Errorf("when it is over: %v", got)
	}
}

func TestTheStepsThatTakeAnAdoptedAggregateAwayAreKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		step fence.Step
		want bool
	}{
		"adopted":         {fence.Step{Action: fence.RemoveHost, Reservation: "r1", Aggregate: inventory.Aggregate{Name: "r1"}}, true},
		"Almanac's own":   {fence.Step{Action: fence.RemoveHost, Reservation: "r1", Aggregate: inventory.Aggregate{Name: "almanac-reservation-r1"}}, false},
		"no aggregate":    {fence.Step{Action: fence.RemoveTraits, Reservation: "", Host: "a"}, false},
		"only adds to it": {fence.Step{Action: fence.AddHost, Reservation: "r1", Aggregate: inventory.Aggregate{Name: "r1"}}, false},
	} {
		if got := tc.step.TakesAdopted(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatIsAdoptedGoesBackToBlazar(t *testing.T) {
	actual := desired(t, start, fence.Rules{}, shared("r1", 2, "a"))
	actual.Aggregates["r1"] = inventory.Aggregate{ID: 7, Name: "r1", Hosts: []string{"a"}, Metadata: map[string]string{"almanac:reservation": "r1", "blazar:owner": "p"}}
	actual.Flavors["r1"].ExtraSpecs["resources:CUSTOM_RESERVATION_R1"] = "1"
	var about []string
	for _, step := range fence.Withdraw(actual) {
		if step.Aggregate.Name == "r1" || step.Flavor.ID == "r1" {
			about = append(about, string(step.Action))
			if step.Flavor.ExtraSpecs["resources:CUSTOM_RESERVATION_R1"] != "" || step.Flavor.ID != "" && step.Flavor.ExtraSpecs["almanac:reservation"] == "" {
				t.Errorf("the extra specs %v are deleted", step.Flavor.ExtraSpecs)
			}
		}
	}
	if want := []string{"delete metadata", "delete extra specs"}; !slices.Equal(about, want) {
		t.Errorf("%v", about)
	}
}
