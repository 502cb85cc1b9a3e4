// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// It runs among the tests of the cloud, one after the other, because these remove Almanac from the
// same catalog.
func TestBootstrapPutsAlmanacIntoTheCatalogWhereTheCommandLineFindsIt(t *testing.T) {
	g := built.StartGuarded(t)
	region := "region-" + rand.Text()
	defer leaveRegion(g, region)
	admin := append(g.Keystone.Environment(labtest.Admin), g.Settings...)
	for _, want := range []string{"created: public endpoint", "there already: public endpoint"} {
		out, failed := built.Almanacd(t, g.Folder, admin, "bootstrap", "keystone", "--public-url", g.URL+"/v1", "--region", region)
		if failed || !strings.Contains(out, want) {
			t.Fatalf("bootstrap, want %q:\n%s", want, out)
		}
	}
	endpoints := g.Keystone.Openstack(t, labtest.Admin, "endpoint", "list", "--service", "almanac", "--region", region, "-f", "csv", "-c", "Interface", "-c", "URL", "--quote", "none")
	if want := g.URL + "/v1"; strings.Count(endpoints, want) != 3 {
		t.Errorf("the endpoints are\n%s", endpoints)
	}
	if catalog := g.Keystone.Openstack(t, labtest.Demo, "catalog", "show", "almanac"); !strings.Contains(catalog, g.URL+"/v1") {
		t.Errorf("the catalog is\n%s", catalog)
	}

	environment := g.Keystone.Environment(labtest.Demo)
	_, stderr, exit := built.Almanac(t, g.Folder, environment, "host", "list", "--os-region-name", region, "--os-interface", "internal")
	built.WantExit(t, "by the catalog", stderr, exit, 0)
	_, stderr, exit = built.Almanac(t, g.Folder, environment, "host", "list", "--os-region-name", "nowhere")
	built.WantExit(t, "another region", stderr, exit, 1, "of region nowhere", "reservation")
	byApplicationCredential(g, region)

	_, stderr, exit = g.As(labtest.Demo, "readiness")
	built.WantExit(t, "readiness for a member", stderr, exit, 4, "readiness:get")
	out, stderr, exit := g.As(labtest.Admin, "readiness")
	built.WantExit(t, "readiness for an admin", stderr, exit, 0)
	if !strings.Contains(out, "database") {
		t.Errorf("readiness:\n%s", out)
	}
}

// leaveRegion removes the endpoints of a region from the catalog.
func leaveRegion(g *built.Guarded, region string) {
	g.T.Helper()
	ids := strings.Fields(g.Keystone.Openstack(g.T, labtest.Admin, "endpoint", "list", "--region", region, "-f", "value", "-c", "ID"))
	if len(ids) > 0 {
		g.Keystone.Openstack(g.T, labtest.Admin, append([]string{"endpoint", "delete"}, ids...)...)
		g.Keystone.Openstack(g.T, labtest.Admin, "region", "delete", region)
	}
}

// byApplicationCredential logs in as programs do: with an application credential in
// clouds.yaml.
func byApplicationCredential(g *built.Guarded, region string) {
	g.T.Helper()
	var made struct{ ID, Secret string }
	text := g.Keystone.Openstack(g.T, labtest.Demo, "application", "credential", "create", region, "-f", "json")
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.ID == "" || made.Secret == "" {
		g.T.Fatalf("%v:\n%s", err, text)
	}
	file := fmt.Sprintf("clouds:\n  robot:\n    auth_type: v3applicationcredential\n    region_name: %s\n    auth:\n"+
		"      auth_url: %s\n      application_credential_id: %s\n      application_credential_secret: %s\n",
		region, g.Keystone.AuthURL, made.ID, made.Secret)
	if err := os.WriteFile(filepath.Join(g.Folder, "clouds.yaml"), []byte(file), 0o600); err != nil {
		g.T.Fatal(err)
	}
	out, stderr, exit := built.Almanac(g.T, g.Folder, nil, "--os-cloud", "robot", "reservation", "create", "nightly", "--start", "+1d", "--duration", "1h", "-f", "json")
	built.WantExit(g.T, "an application credential books", stderr, exit, 0)
	var booked v1.Reservation
	if err := json.Unmarshal([]byte(out), &booked); err != nil || booked.ProjectID == "" {
		g.T.Fatalf("%v:\n%s", err, out)
	}
	list, _, _ := g.As(labtest.Demo, "reservation", "list", "-f", "value", "-c", "ID")
	if strings.TrimSpace(list) != booked.ID {
		g.T.Errorf("its project sees %q, want %s", list, booked.ID)
	}
	g.Keystone.Openstack(g.T, labtest.Demo, "application", "credential", "delete", made.ID)
	_, stderr, exit = built.Almanac(g.T, g.Folder, nil, "--os-cloud", "robot", "reservation", "list")
	built.WantExit(g.T, "a deleted application credential", stderr, exit, 4, "cloud robot")
}
