// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// blazarPlugin lists the tests of blazar-tempest-plugin; the first module must be imported before
// them.
var blazarPlugin = []string{
	"tempest.scenario.manager",
	"blazar_tempest_plugin.tests.scenario.test_reservation_concurrency", "blazar_tempest_plugin.tests.scenario.test_host_reservation",
	"blazar_tempest_plugin.tests.scenario.test_instance_reservation", "blazar_tempest_plugin.tests.scenario.test_flavor_reservation",
}

// What passes of Blazar's Tempest plugin (Debian's blazar-tempest-plugin) against Blazar itself
// passes against Almanac in the same cloud, of one host. ALMANAC_TEST_BLAZAR_FILTERS has the
// enabled_filters of the lab's Nova, without Blazar's.
//
//make:test-blazar-tempest
func TestTempestSaysOfAlmanacWhatItSaysOfBlazar(t *testing.T) {
	enabled := os.Getenv("ALMANAC_TEST_BLAZAR_FILTERS")
	if enabled == "" {
		t.Skip("`make test-blazar-tempest` runs this")
	}
	cloud := labtest.OpenStack(t)
	var ofBlazar, ofAlmanac map[string]string
	t.Run("Blazar", func(t *testing.T) {
		address, _ := labtest.Blazar(t)
		ofBlazar = blazarTempest(t, cloud, address)
		leaveBlazar(t, cloud)
	})
	t.Run("Almanac", func(t *testing.T) {
		t.Setenv("OS_FILTER_SCHEDULER__ENABLED_FILTERS", enabled)
		b := placing(t, built.Replace, "OS_BLAZAR__POOL=enrolled", "OS_BLAZAR__MIRROR_AGGREGATES=true", "OS_RESERVATION__FENCE=pool", "OS_LIMITS__MAX_START_AHEAD=0")
		b.bootstrap("keystone", "--public-url", b.URL+"/v1")
		ofAlmanac = blazarTempest(t, cloud, b.URL+"/v1")
	})
	names := map[string]string{}
	maps.Copy(names, ofBlazar)
	maps.Copy(names, ofAlmanac)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t.Logf("%-75s Blazar %-7s Almanac %s", name, cmp.Or(ofBlazar[name], "-"), cmp.Or(ofAlmanac[name], "-"))
		if ofBlazar[name] == "ok" && ofAlmanac[name] != "ok" {
			t.Errorf("%s passes against Blazar, and not against Almanac", name)
		}
	}
	if len(names) != 30 {
		t.Errorf("the plugin has %d tests, want its 22 requests and 8 scenarios", len(names))
	}
}

// blazarTempest returns the results of the plugin for the service at an address that ends in /v1.
func blazarTempest(t *testing.T, cloud labtest.LabCloud, address string) map[string]string {
	t.Helper()
	admin := cloud.REST(t, labtest.Admin)
	atPort80(t, map[string]string{"/reservation/": strings.TrimSuffix(address, "/v1"), "/compute/": strings.TrimSuffix(admin.Endpoint("compute"), "/v2.1")})
	var images struct{ Images []struct{ ID string } }
	admin.Must("GET", "image", "/v2/images?name=tiny", nil, &images)
	with := tempestSettings{Image: images.Images[0].ID, Plugin: true}
	said := runTempest(t, cloud, with, `((?:leases|hosts|allocations): .+)`, "blazar_tempest_plugin.tests.api.test_blazar_api")
	maps.Copy(said, runTempest(t, cloud, with, `blazar_tempest_plugin\.tests\.scenario\.([\w.]+)(?:\[\w+\])?`, blazarPlugin...))
	return said
}

// atPort80 serves on port 80 the services that the plugin's API tests want there, by the first part
// of their paths.
func atPort80(t *testing.T, addresses map[string]string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for prefix, address := range addresses {
		target, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle(prefix, http.StripPrefix(strings.TrimSuffix(prefix, "/"), httputil.NewSingleHostReverseProxy(target)))
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// leaveBlazar removes what the plugin leaves in Blazar, and stops it.
func leaveBlazar(t *testing.T, cloud labtest.LabCloud) {
	t.Helper()
	admin := cloud.REST(t, labtest.Admin)
	for _, path := range []string{"/leases", "/os-hosts"} { // a host goes after its leases
		var found map[string][]struct{ ID string }
		admin.Must("GET", "reservation", path, nil, &found)
		for _, one := range slices.Concat(found["leases"], found["hosts"]) {
			if status := admin.Do("DELETE", "reservation", path+"/"+one.ID, nil, nil); status >= http.StatusBadRequest {
				t.Logf("Blazar keeps %s/%s: status %d", path, one.ID, status)
			}
		}
	}
	labtest.StopBlazar(t)
}
