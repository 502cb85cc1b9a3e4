// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Where Nova enforces unified limits, a resource class without a registered limit may have the limit 0
// (nova/limit/placement.py).
//
//make:test-limits
func TestServersOfReservationsOfInstancesStartUnderUnifiedLimits(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_LIMITS") == "" {
		t.Skip("`make test-limits` runs this")
	}
	b := besideOpenStack(t)
	hosts := b.cloud.Hosts(t)[:2]
	b.pool(hosts...)
	r := b.book(labtest.Demo, "--kind", "instance", "--vcpus", "1", "--memory-mb", "512", "--disk-gb", "1",
		"--quantity", "2", "--duration", "1h", "--properties", string(among(hosts...)), "web")
	b.becomes(r.ID, "active")
	b.runOn(hosts, b.settled(b.boot(b.demo, "web", r.ID, ""))...)
	if n := b.limitsOf(r.ID); n != 1 {
		t.Errorf("Keystone has %d limits for the reservation, want 1", n)
	}
	b.endsSoon(r.ID)
	b.becomes(r.ID, "ended")
	b.traceless(r.ID)
	if n := b.limitsOf(r.ID); n != 0 {
		t.Errorf("after the end, Keystone has %d limits for the reservation", n)
	}
}

// limitsOf returns the number of registered limits for the resource class of a reservation.
func (b *beside) limitsOf(id string) int {
	b.t.Helper()
	var list struct {
		Limits []struct{ ID string } `json:"registered_limits"`
	}
	b.admin.Must(http.MethodGet, "identity", "/registered_limits?resource_name="+url.QueryEscape("class:"+ownName(id)), nil, &list)
	return len(list.Limits)
}
