// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

func TestServersBelongToTheReservationOfTheirFlavorOrOfTheirHost(t *testing.T) {
	p := newBlazar().lease("whole", "ACTIVE", 100, 4000).hostsOf("r1", "1-1", "1").
		lease("slices", "ACTIVE", 100, 4000).instances("r2", "2", "3").
		lease("later", "PENDING", 4000, 5000).hostsOf("r3", "1-1", "1").plan(t, nil)
	server := func(id, project, host, flavor string) inventory.Instance {
		return inventory.Instance{ID: id, ProjectID: project, Host: host, Flavor: inventory.Flavor{Name: flavor}}
	}
	ours := server("ours", "project", "a", "m1")
	ours.Reservation = "native"
	guests, findings := takeover.Guests(p.Leases, []inventory.Instance{
		server("on its host", "project", "a", "m1"),
		server("by its flavor", "project", "b", "reservation:r2"),
		server("shelved", "project", "", "reservation:r2"),
		server("beside", "project", "b", "m1"), // the host is not theirs alone
		server("elsewhere", "project", "c", "reservation:another"),
		server("a stranger", "other", "a", "m1"),
		ours,
	})
	want := map[string]string{"on its host": "r1", "by its flavor": "r2", "shelved": "r2"}
	if d := cmp.Diff(want, guests); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if kinds := said(takeover.Plan{Findings: findings}); !slices.Equal(kinds, []string{"stranger whole"}) {
		t.Errorf("%v", findings)
	}
}
