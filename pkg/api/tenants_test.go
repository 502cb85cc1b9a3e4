// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestAnotherProjectsReservationIsNotFound(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "ours", "duration": 3600}`)
	path, before := "/v1/reservations/"+r.ID, c.stored()
	for name, a := range map[string]answer{
		"show":           c.other.get(path),
		"change":         c.other.patch(path, `{"name": "theirs"}`),
		"change dry run": c.other.patch(path+"?dry_run=true", `{"name": "theirs"}`),
		"delete":         c.other.delete(path),
	} {
		foreign := wantError(t, a, http.StatusNotFound)
		unknown := wantError(t, c.other.get("/v1/reservations/nothing"), http.StatusNotFound)
		if want := "there is no reservation " + r.ID; foreign.Message != want || unknown.Message != "there is no reservation nothing" {
			t.Errorf("%s: %q differs from the message for a reservation that does not exist", name, foreign.Message)
		}
	}
	if diff := cmp.Diff(before, c.stored()); diff != "" {
		t.Errorf("the stored reservations changed:\n%s", diff)
	}
	if got := c.other.names("/v1/reservations?"); !cmp.Equal(got, [][]string{{}}) {
		t.Errorf("the other project lists %v", got)
	}
	if e := wantError(t, c.other.get("/v1/reservations?marker="+r.ID), http.StatusBadRequest); e.Field != "marker" {
		t.Errorf("a foreign marker is wrong in %q", e.Field)
	}
}

func TestAnAdminMayDoEverythingToEveryReservation(t *testing.T) {
	c := start(t, setup{})
	r := c.other.book(`{"name": "theirs", "duration": 3600}`)
	path := "/v1/reservations/" + r.ID
	want[v1.Reservation](t, c.admin.get(path), http.StatusOK)
	if got := want[v1.Reservation](t, c.admin.patch(path, `{"name": "changed"}`), http.StatusOK); got.ProjectID != "other" || got.UserID != "other-user" {
		t.Errorf("it belongs to %s of %s now", got.UserID, got.ProjectID)
	}
	if a := c.admin.delete(path); a.status != http.StatusNoContent {
		t.Errorf("got %v", a)
	}
}

func TestATenantLearnsTheHostsWhenTheReservationBegins(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 3600}`, at(600)))
	path := "/v1/reservations/" + r.ID
	seen := func(p caller) []string {
		shown := want[v1.Reservation](t, p.get(path), http.StatusOK)
		listed := want[v1.Reservations](t, p.get("/v1/reservations?project_id=demo"), http.StatusOK)
		if !cmp.Equal(shown.Hosts, listed.Reservations[0].Hosts) {
			t.Errorf("shown %v, listed %v", shown.Hosts, listed.Reservations[0].Hosts)
		}
		return shown.Hosts
	}
	if len(r.Hosts) > 0 || len(seen(c.demo)) > 0 {
		t.Error("the tenant sees hosts before the start")
	}
	if got := want[v1.Reservation](t, c.demo.patch(path, `{"name": "renamed"}`), http.StatusOK); len(got.Hosts) > 0 {
		t.Error("a change shows the hosts before the start")
	}
	both := []string{"A", "B"}
	if got := seen(c.admin); !cmp.Equal(got, both) {
		t.Errorf("the admin sees %v before the start", got)
	}
	c.wait(600)
	if got := seen(c.demo); !cmp.Equal(got, both) {
		t.Errorf("the tenant sees %v after the start", got)
	}
}

func TestTheCalendarNamesToTenantsTheirOwnReservations(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "begun", "duration": 3600, "host_properties": ["=", "$name", "A"]}`)
	c.other.book(`{"name": "theirs", "duration": 3600, "host_properties": ["=", "$name", "B"]}`)
	c.wait(0)
	c.demo.book(fmt.Sprintf(`{"name": "ahead", "start_time": %q, "duration": 60, "host_properties": ["=", "$name", "C"]}`, at(600)))
	for name, test := range map[string]struct {
		who  caller
		want []string
	}{
		"tenant":         {c.demo, []string{"begun", "", "ahead"}},
		"another tenant": {c.other, []string{"", "theirs", ""}},
		"admin":          {c.admin, []string{"begun", "theirs", "ahead"}},
	} {
		var names []string
		for _, host := range want[v1.Calendar](t, test.who.get("/v1/calendar"), http.StatusOK).Hosts {
			claim := host.Claims[0]
			names = append(names, claim.Name)
			if named := claim.Name != ""; named != (claim.ReservationID != "") || named != (claim.ProjectID != "") {
				t.Errorf("%s sees half of %+v", name, claim)
			}
		}
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSomeCallsAreForAdmins(t *testing.T) {
	c := start(t, setup{})
	for _, call := range [][3]string{
		{"PATCH", "/v1/hosts/A", `{"reservable": false}`},
		{"PATCH", "/v1/hosts/nothing", `{}`},
		{"PATCH", "/v1/properties/vcpus", `{"hidden": true}`},
		{"POST", "/v1/scheduler/filter", `{"hosts": ["A"]}`},
		{"POST", "/v1/scheduler/weigh", `{"hosts": ["A"]}`},
	} {
		wantError(t, c.demo.send(call[0], call[1], call[2]), http.StatusForbidden)
	}
	if h := want[v1.Host](t, c.demo.get("/v1/hosts/A"), http.StatusOK); !h.Reservable {
		t.Error("a tenant took a host out of the pool")
	}
}

func TestWhoDoesNotSayWhoTheyAreGetsNothing(t *testing.T) {
	c := start(t, setup{})
	for _, path := range []string{
		"/v1/reservations", "/v1/reservations/x", "/v1/availability?duration=1", "/v1/hosts", "/v1/hosts/A", "/v1/properties", "/v1/calendar",
	} {
		a := c.nobody.get(path)
		wantError(t, a, http.StatusUnauthorized)
		if got := a.header.Get("WWW-Authenticate"); got != `Keystone uri="http://keystone.test/v3"` {
			t.Errorf("%s: WWW-Authenticate is %q", path, got)
		}
	}
	wantError(t, c.nobody.post("/v1/reservations", `{"name": "r", "duration": 60}`), http.StatusUnauthorized)
	if len(c.stored()) > 0 {
		t.Error("a reservation was made")
	}
}

func TestWithoutKeystoneEverybodyIsTheConfiguredCaller(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Authenticator = api.Fixed{ProjectID: "lab", UserID: "me", Roles: []string{"admin"}}
	}})
	for _, p := range []caller{c.nobody, c.other} {
		if r := p.book(`{"name": "r", "duration": 60}`); r.ProjectID != "lab" || r.UserID != "me" || len(r.Hosts) != 1 {
			t.Errorf("got %+v", r)
		}
	}
}

func TestACallerWithoutAProjectDoesNotGetEveryones(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "r", "duration": 60}`)
	a := c.nobody.send("GET", "/v1/reservations", "", "X-Auth-Token", "/member")
	wantError(t, a, http.StatusForbidden)
}

func TestAHiddenPropertyIsForAdmins(t *testing.T) {
	rich, plain := machine("A"), machine("B")
	rich.Properties = map[string]inventory.Value{"owner": inventory.StringValue("physics"), "rack": inventory.NumberValue(1)}
	c := start(t, setup{hosts: []inventory.Host{rich, plain}})
	if p := want[v1.Property](t, c.admin.patch("/v1/properties/$owner", `{"hidden": true}`), http.StatusOK); !p.Hidden || p.Name != "owner" {
		t.Errorf("got %+v", p)
	}
	body := `{"name": "r", "duration": 60, "host_properties": ["=", "$owner", "physics"]}`
	refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", body), http.StatusConflict)
	if refused.Refusal.Constraint != "host_properties" || refused.Refusal.Matched != 0 || refused.Error.Message != "no host has a property $owner" {
		t.Errorf("a tenant may use it: %+v", refused)
	}
	if listed := properties(c.demo); slices.Contains(listed, "owner") || !slices.Contains(listed, "rack") {
		t.Errorf("a tenant is listed %v", listed)
	}
	for _, h := range want[v1.HostList](t, c.demo.get("/v1/hosts"), http.StatusOK).Hosts {
		if _, shown := h.Properties["owner"]; shown {
			t.Errorf("a tenant sees it on %s", h.Name)
		}
	}
	if got := want[v1.Host](t, c.admin.get("/v1/hosts/A"), http.StatusOK); got.Properties["owner"] != "physics" || !slices.Contains(properties(c.admin), "owner") {
		t.Errorf("an admin does not see it: %+v", got)
	}
	c.admin.book(body)

	want[v1.Property](t, c.admin.patch("/v1/properties/owner", `{"hidden": false}`), http.StatusOK)
	if !slices.Contains(properties(c.demo), "owner") {
		t.Error("the property is not shown again")
	}
}

// properties lists the names of the catalog.
func properties(p caller) (names []string) {
	p.cloud.t.Helper()
	for _, property := range want[v1.Properties](p.cloud.t, p.get("/v1/properties"), http.StatusOK).Properties {
		names = append(names, property.Name)
	}
	return names
}
