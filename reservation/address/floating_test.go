// SPDX-License-Identifier: Apache-2.0

package address_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/reservation/address"
)

// anyFloating draws floating IPs that exist, at most one at an address.
func anyFloating(t *rapid.T) (there []address.Floating) {
	for _, a := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, "existing") {
		there = append(there, address.Floating{
			ID: "id of " + a, Network: rapid.SampledFrom([]string{"n", "m"}).Draw(t, "network"), Address: a,
			Project:     rapid.SampledFrom([]string{"mine", "theirs"}).Draw(t, "project"),
			Reservation: rapid.SampledFrom([]string{"", "r", "other"}).Draw(t, "reservation"), Tagged: rapid.Bool().Draw(t, "tagged"),
		})
	}
	return there
}

func anyHolder(t *rapid.T) address.Holder {
	h := address.Holder{ID: "r", Project: "mine"}
	for _, a := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, "claimed") {
		h.Claims = append(h.Claims, address.Claim{Network: "n", Address: a})
	}
	return h
}

// make returns what exists after the creations.
func made(there, create []address.Floating) []address.Floating {
	after := slices.Clone(there)
	for _, f := range create {
		i := slices.IndexFunc(after, func(o address.Floating) bool { return o.ID == f.ID })
		if i < 0 {
			f.ID = "new " + f.Address
			after, i = append(after, f), len(after)
		}
		after[i].Tagged = true
	}
	return after
}

func TestAfterAStartEachClaimExistsOrIsAnObstacle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, there := anyHolder(t), anyFloating(t)
		create, obstacles := address.Start(h, there)
		after := made(there, create)
		for _, c := range h.Claims {
			at := func(f address.Floating) bool { return f.Network == c.Network && f.Address == c.Address }
			has := slices.ContainsFunc(after, func(f address.Floating) bool {
				return at(f) && f.Reservation == "r" && f.Project == "mine" && f.Tagged
			})
			if has == slices.ContainsFunc(obstacles, at) {
				t.Errorf("%v: it exists: %v, obstacles: %v", c, has, obstacles)
			}
		}
		if len(obstacles) > 0 {
			return
		}
		if again, _ := address.Start(h, after); len(again) > 0 {
			t.Errorf("a second start creates %v", again)
		}
		left := slices.DeleteFunc(slices.Clone(after), func(f address.Floating) bool { return slices.Contains(address.End(h, after), f) })
		for _, f := range left {
			if f.Reservation == "r" {
				t.Errorf("%v is left after the end", f)
			}
			if !slices.Contains(there, f) {
				t.Errorf("%v was created and is left", f)
			}
		}
	})
}

func TestTheEndTakesWhatTheOwnerHasUnmarkedAndNothingOfOthers(t *testing.T) {
	h := address.Holder{ID: "r", Project: "mine", Claims: []address.Claim{{Network: "n", Address: "a"}, {Network: "n", Address: "b"}}}
	there := []address.Floating{
		{ID: "1", Network: "n", Address: "a", Project: "mine"},
		{ID: "2", Network: "n", Address: "b", Project: "theirs"},
		{ID: "3", Network: "n", Address: "c", Project: "mine"},
		{ID: "4", Network: "m", Address: "d", Project: "mine", Reservation: "r"},
	}
	if got := address.End(h, there); !slices.Equal(got, []address.Floating{there[0], there[3]}) {
		t.Errorf("the end removes %v", got)
	}
}
