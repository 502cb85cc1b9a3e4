// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/blazartest"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A user of Horizon with Blazar's dashboard, who is no admin, makes, sees, extends and deletes
// leases, and sees the calendar of the hosts.
//
//make:test-blazar-clients
func TestBlazarsDashboardUsesAlmanac(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_HORIZON") == "" {
		t.Skip("make test-blazar-clients runs it")
	}
	horizon := labtest.Horizon(t)
	b := blazartest.StartInCatalog(t, labtest.Keystone(t).Region) // where the dashboard looks
	for _, host := range []string{"host-01", "host-02"} {
		b.Admin.Does("host create", host)
	}
	page := labtest.StartBrowser(t)
	page.Visit(horizon + "/auth/login/?next=/project/leases/")
	page.Fill("#id_username", labtest.Demo.Name)
	page.Fill("#id_password", labtest.Demo.Password)
	page.Picture("sign-in")
	page.Click("#loginBtn")
	page.Await("#leases__action_create")

	create := func(name string, fill func()) {
		t.Helper()
		page.Click("#leases__action_create")
		page.Fill("#id_name", name)
		fill()
		page.Picture("create-" + name)
		page.Click("#create_lease_modal input[type=submit]")
		page.Await(rowOf(name))
	}
	create("hosts", func() { // the dates stay blank
		page.Fill("#id_min_hosts", "")
		page.Fill("#id_max_hosts", "")
	})
	create("instances", func() { // without affinity, as the form proposes
		page.Choose("#id_resource_type", "instance")
		page.Fill("#id_amount", "2")
		page.Fill("#id_memory_mb", "512")
	})
	b.Demo.Has(b.Demo.Reservations(b.Demo.Shows("lease show hosts"))[0], blazartest.Table{"resource_type": "physical:host", "min": 1.0, "max": 1.0})
	b.Demo.Has(b.Demo.Reservations(b.Demo.Shows("lease show instances"))[0], blazartest.Table{"amount": 2.0, "memory_mb": 512.0, "affinity": nil})
	page.Picture("leases")

	page.Click("#leases__action_calendar")
	page.Await(".apexcharts-rangebar-area")
	if text := page.Text("body"); !strings.Contains(text, "host-01") || !strings.Contains(text, "host-02") {
		t.Errorf("the calendar does not have the hosts:\n%s", text)
	}
	built.Eventually(t, "the calendar does not have both leases from now on for a day", func() bool {
		now, leases := page.Edges(".apexcharts-xaxis-annotations line"), 0
		for _, bar := range page.Edges(".apexcharts-rangebar-area") {
			if len(now) == 1 && math.Abs(bar[0]-now[0][0]) < 6 && bar[1]-bar[0] > 60 { // an hour has 5 pixels
				leases++
			}
		}
		return leases == 2
	})
	page.Picture("calendar")

	before := b.Demo.Shows("lease show hosts")
	lease := horizon + "/project/leases/" + before["id"].(string) + "/"
	page.Visit(lease)
	page.Await(".detail dl")
	if text, hint := page.Text("body"), b.Demo.Reservations(before)[0]["id"].(string); !strings.Contains(text, hint) || !strings.Contains(text, "before_end_lease") {
		t.Errorf("the lease does not have its reservation %s and its events:\n%s", hint, text)
	}
	page.Picture("lease")
	page.Visit(lease + "update") // dashboard 16 hides the link to it, by a mistake
	page.Fill("#id_end_time", "+1h")
	page.Picture("extend")
	page.Click("input[type=submit]")
	page.Await(rowOf("hosts"))
	if after := b.Demo.Shows("lease show hosts"); after["end_date"] == before["end_date"] {
		t.Errorf("the lease is not longer: %v", after)
	}
	page.Picture("extended")

	for _, name := range []string{"instances", "hosts"} {
		page.Click(rowOf(name) + " .multi_select_column label")
	}
	page.Click("#leases__action_delete")
	page.Picture("delete")
	page.Click(".modal-footer .btn-danger")
	built.Eventually(t, "the leases stay", func() bool { return len(b.Demo.Lists("lease list")) == 0 })
	page.Visit(horizon + "/project/leases/")
	page.Await("#leases .empty")
	page.Picture("empty")
}

// rowOf selects the row of a lease in the dashboard's table.
func rowOf(lease string) string { return "#leases tr[data-display='" + lease + "']" }
