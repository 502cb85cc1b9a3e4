// SPDX-License-Identifier: Apache-2.0

package nova_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
)

// cell answers as a Nova with one cell. For each list request, away states whether the database
// of the cell is away; the last state stays. While the database is away, Nova knows
// the names of the cell's hosts. It shows the servers with status UNKNOWN if the query has no
// parameter except all_tenants, and omits them otherwise (nova/api/openstack/compute/servers.py,
// _is_cell_down_supported).
func cell(away ...bool) func(r *http.Request) string {
	return func(r *http.Request) string {
		gone := away[0]
		if len(away) > 1 {
			away = away[1:]
		}
		services := strings.HasSuffix(r.URL.Path, "/os-services")
		switch {
		case services && gone:
			return `{"services": [{"binary": "nova-compute", "host": "a", "status": "UNKNOWN"}]}`
		case services:
			return `{"services": [{"id": "1", "host": "a", "zone": "nova", "state": "up", "status": "enabled"}]}`
		case gone && r.URL.RawQuery == "all_tenants=True":
			return `{"servers": [{"id": "1", "status": "UNKNOWN", "tenant_id": "p", "created": "2026-11-22T00:00:00Z", "links": []}]}`
		case gone:
			return `{"servers": []}`
		}
		return `{"servers": [` + fmt.Sprintf(whole, `""`, `{}`, `{}`) + `]}`
	}
}

func TestACellThatIsAwayIsNoEmptyCell(t *testing.T) {
	check := func(what string, n int, err error) {
		t.Helper()
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "a cell of nova does not answer") || n != 0 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	c, _ := reader(t, cell(true))
	services, err := c.Services(t.Context())
	check("services", len(services), err)
	for _, q := range []nova.ServerQuery{{}, {Project: "p"}, {Host: "a"}} {
		for _, away := range [][]bool{{true}, {false, true}, {true, true, false}} {
			c, _ := reader(t, cell(away...))
			servers, err := c.Servers(t.Context(), q)
			check(fmt.Sprintf("servers of %+v, with the cell away at %v", q, away), len(servers), err)
		}
	}
	c, _ = reader(t, cell(true))
	changes, err := c.Servers(t.Context(), nova.ServerQuery{ChangedSince: 1})
	check("changes", len(changes), err)
}

func TestACellThatAnswersTellsItsServers(t *testing.T) {
	for _, q := range []nova.ServerQuery{{}, {Project: "p"}, {Host: "a"}, {ChangedSince: 1}} {
		c, _ := reader(t, cell(false))
		if servers, err := c.Servers(t.Context(), q); err != nil || len(servers) != 1 {
			t.Errorf("%+v: %d servers, %v", q, len(servers), err)
		}
	}
}
