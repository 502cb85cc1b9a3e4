// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

func TestEveryFieldOfTheEnergyHistoryIsStored(t *testing.T) {
	entry := energy.Entry{ID: 1, At: 2, Host: "a", Kind: energy.EntryOrder, By: "b", Operation: "c", Text: "d"}
	row := entryRow(entry, "token")
	row.ID = entry.ID
	if d := cmp.Diff(entry, row.entry()); d != "" || row.Token != "token" {
		t.Errorf("entry with token %q (-before +after):\n%s", row.Token, d)
	}
	demand := energy.Demand{At: 1, InUse: 2, Reserved: 3}
	if d := cmp.Diff(demand, rowOfDemand(demand).demand()); d != "" {
		t.Errorf("demand (-before +after):\n%s", d)
	}
}
