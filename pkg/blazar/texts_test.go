// SPDX-License-Identifier: Apache-2.0

package blazar_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/reservation"
)

func TestTheTextOfARefusalEndsWithTheEarliestStart(t *testing.T) {
	r := &reservation.Refusal{Constraint: reservation.HostsFree, Message: "not enough hosts available: 2 of 3", EarliestStart: 1_800_000_000}
	if got, want := blazar.Refused(r, ""), "Not enough hosts available: 2 of 3; the earliest start is 2027-01-15T08:00:00Z"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	r.EarliestStart = 0
	if got, want := blazar.Refused(r, ""), "Not enough hosts available: 2 of 3"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}
