// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

func TestWhatBlazarHasLeftOfForgottenReservationsIsListed(t *testing.T) {
	b := newBlazar().lease("l", "PENDING", 2000, 3000).hostsOf("r-1", "1-1", "1")
	findings := takeover.Leftovers(b.Database,
		[]inventory.Aggregate{{Name: "r-1", Zone: "blazar_r-1"}, {Name: "gone-1", Zone: "blazar_gone-1"}, {Name: "gone-2", Metadata: map[string]string{"blazar:owner": "p"}}, {Name: "freepool"}, {Name: "ssd", Zone: "nova"}},
		[]inventory.Flavor{{ID: "r-1", Name: "reservation:r-1"}, {ID: "gone-1", Name: "reservation:gone-1"}, {ID: "m1", Name: "m1"}, {ID: "ours", Name: "reservation:ours", ExtraSpecs: map[string]string{"almanac:reservation": "ours"}}},
		[]string{"CUSTOM_RESERVATION_R_1", "CUSTOM_RESERVATION_GONE_1"})
	var remedies []string
	for _, f := range findings {
		remedies = append(remedies, f.Remedy)
	}
	want := []string{"openstack aggregate delete gone-1", "openstack aggregate delete gone-2", "openstack flavor delete gone-1", "openstack resource class delete CUSTOM_RESERVATION_GONE_1"}
	if d := cmp.Diff(want, remedies); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
