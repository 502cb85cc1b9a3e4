// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func TestWhatTheDoctorMendedIsNoFinding(t *testing.T) {
	d := &countedDoctor{Doctor: upkeep.Doctor{Now: func() span.Instant { return 100 }}}
	finding := func(kind upkeep.FindingKind, outcome upkeep.Outcome) upkeep.Finding {
		return upkeep.Finding{Kind: kind, Outcome: outcome}
	}
	seen := upkeep.Examination{Findings: []upkeep.Finding{
		finding(upkeep.Stranger, ""), finding(upkeep.Stranger, upkeep.FixFailed), finding(upkeep.Missing, upkeep.FixDone),
	}}
	if _, err := d.counted(seen, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.counted(upkeep.Examination{}, errors.New("Nova is away")); err == nil {
		t.Error("the error is lost")
	}
	if diff := cmp.Diff(map[upkeep.FindingKind]int{upkeep.Stranger: 2}, d.found); diff != "" || d.at != 100 {
		t.Errorf("at %d (-want +got):\n%s", d.at, diff)
	}
}
