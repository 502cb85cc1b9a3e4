// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/rand"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// gophercloudAcceptance is the package of gophercloud's own tests of the reservation service, in the
// version of go.mod.
const gophercloudAcceptance = "github.com/gophercloud/gophercloud/v2/internal/acceptance/openstack/reservation/v1"

//make:test-blazar-gophercloud
func TestGophercloudsOwnTestsPass(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, "OS_BLAZAR__POOL=enrolled")
	clients := b.cloud.Clients(t, labtest.Admin)
	openstack := func(command ...string) string {
		t.Helper()
		said := clients.Run(append([]string{"openstack"}, command...)...)
		if said.Exit != 0 {
			t.Errorf("%q: exit code %d\n%s", command, said.Exit, said.Err)
		}
		return said.Out
	}
	for _, ending := range []string{"/v1", "/v1/", ""} { // of the URL in the catalog
		region := "region-" + rand.Text() // with Nova and this almanacd
		openstack("region", "create", region)
		openstack("endpoint", "create", "--region", region, "almanac", "public", b.URL+ending)
		openstack("endpoint", "create", "--region", region, "nova", "public", b.cloud.Compute)
		b.testGophercloud(region)
		openstack(append([]string{"endpoint", "delete"}, strings.Fields(openstack("endpoint", "list", "--region", region, "-f", "value", "-c", "ID"))...)...)
		openstack("region", "delete", region)
	}
}

// testGophercloud runs gophercloud's tests in a region of the catalog.
func (b *beside) testGophercloud(region string) {
	b.t.Helper()
	tests := exec.CommandContext(b.t.Context(), "go", "test", "-count=1", "-v", "-tags", "fixtures acceptance", gophercloudAcceptance)
	tests.Env = append(tests.Environ(), b.cloud.Environment(labtest.Admin)...)
	tests.Env = append(tests.Env, "CGO_ENABLED=0", "OS_REGION_NAME="+region, "OS_DOMAIN_ID=default", "OS_BRANCH=master")
	out, err := tests.CombinedOutput()
	if err != nil {
		b.t.Errorf("gophercloud's tests: %v\n%s", err, out)
	}
	results := regexp.MustCompile(`(?m)^--- (\w+): (\w+)`).FindAllSubmatch(out, -1)
	for _, result := range results {
		b.t.Logf("%s %s", result[2], result[1])
		if string(result[1]) != "PASS" {
			b.t.Errorf("%s: %s", result[2], result[1])
		}
	}
	if len(results) < 4 {
		b.t.Errorf("%d of gophercloud's tests ran, want at least 4:\n%s", len(results), out)
	}
}
