// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// It runs among the tests of the cloud, one after the other, because these remove Almanac from the
// same catalog.
func TestBootstrapPutsAlmanacIntoTheCatalogWhereTheCommandLineFindsIt(t *testing.T) {
	g := startGuarded(t)
	region := "region-" + rand.Text()
	defer g.leave(region)
	admin := append(g.keystone.Environment(labtest.Admin), g.settings...)
	for _, want := range []string{"created: public endpoint", "there already: public endpoint"} {
		out, failed := almanacd(t, g.folder, admin, "bootstrap", "keystone", "--public-url", g.url+"/v1", "--region", region)
		if failed || !strings.Contains(out, want) {
			t.Fatalf("bootstrap, want %q:\n%s", want, out)
		}
	}
	endpoints := g.keystone.Openstack(t, labtest.Admin, "endpoint", "list", "--service", "almanac", "--region", region, "-f", "csv", "-c", "Interface", "-c", "URL", "--quote", "none")
	if want := g.url + "/v1"; strings.Count(endpoints, want) != 3 {
		t.Errorf("the endpoints are\n%s", endpoints)
	}
	if catalog := g.keystone.Openstack(t, labtest.Demo, "catalog", "show", "almanac"); !strings.Contains(catalog, g.url+"/v1") {
		t.Errorf("the catalog is\n%s", catalog)
	}

	environment := g.keystone.Environment(labtest.Demo)
	_, stderr, exit := almanac(t, g.folder, environment, "host", "list", "--os-region-name", region, "--os-interface", "internal")
	wantExit(t, "by the catalog", stderr, exit, 0)
	_, stderr, exit = almanac(t, g.folder, environment, "host", "list", "--os-region-name", "nowhere")
	wantExit(t, "another region", stderr, exit, 1, "of region nowhere", "reservation")
	g.byApplicationCredential(region)

	_, stderr, exit = g.as(labtest.Demo, "readiness")
	wantExit(t, "readiness for a member", stderr, exit, 4, "readiness:get")
	out, stderr, exit := g.as(labtest.Admin, "readiness")
	wantExit(t, "readiness for an admin", stderr, exit, 0)
	if !strings.Contains(out, "database") {
		t.Errorf("readiness:\n%s", out)
	}
}

// leave removes the endpoints of a region from the catalog.
func (g *guarded) leave(region string) {
	g.t.Helper()
	ids := strings.Fields(g.keystone.Openstack(g.t, labtest.Admin, "endpoint", "list", "--region", region, "-f", "value", "-c", "ID"))
	if len(ids) > 0 {
		g.keystone.Openstack(g.t, labtest.Admin, append([]string{"endpoint", "delete"}, ids...)...)
		g.keystone.Openstack(g.t, labtest.Admin, "region", "delete", region)
	}
}

// byApplicationCredential logs in as programs do: with an application credential in
// clouds.yaml.
func (g *guarded) byApplicationCredential(region string) {
	g.t.Helper()
	var made struct{ ID, Secret string }
	text := g.keystone.Openstack(g.t, labtest.Demo, "application", "credential", "create", region, "-f", "json")
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.ID == "" || made.Secret == "" {
		g.t.Fatalf("%v:\n%s", err, text)
	}
	file := fmt.Sprintf("clouds:\n  robot:\n    auth_type: v3applicationcredential\n    region_name: %s\n    auth:\n"+
		"      auth_url: %s\n      application_credential_id: %s\n      application_credential_secret: %s\n",
		region, g.keystone.AuthURL, made.ID, made.Secret)
	if err := os.WriteFile(filepath.Join(g.folder, "clouds.yaml"), []byte(file), 0o600); err != nil {
		g.t.Fatal(err)
	}
	out, stderr, exit := almanac(g.t, g.folder, nil, "--os-cloud", "robot", "reservation", "create", "nightly", "--start", "+1d", "--duration", "1h", "-f", "json")
	wantExit(g.t, "an application credential books", stderr, exit, 0)
	var booked v1.Reservation
	if err := json.Unmarshal([]byte(out), &booked); err != nil || booked.ProjectID == "" {
		g.t.Fatalf("%v:\n%s", err, out)
	}
	list, _, _ := g.as(labtest.Demo, "reservation", "list", "-f", "value", "-c", "ID")
	if strings.TrimSpace(list) != booked.ID {
		g.t.Errorf("its project sees %q, want %s", list, booked.ID)
	}
	g.keystone.Openstack(g.t, labtest.Demo, "application", "credential", "delete", made.ID)
	_, stderr, exit = almanac(g.t, g.folder, nil, "--os-cloud", "robot", "reservation", "list")
	wantExit(g.t, "a deleted application credential", stderr, exit, 4, "cloud robot")
}
