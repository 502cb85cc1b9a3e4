// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// office registers a service of the test's own and keeps the reported steps.
type office struct {
	*cloud
	admin keystone.Connection
	keystone.Registration
	mu    sync.Mutex
	steps []keystone.Step
}

func newOffice(t *testing.T) *office {
	c := newCloud(t)
	_, user, password := lab(t)
	name := "r-" + strings.ToLower(rand.Text())
	o := &office{cloud: c, admin: keystone.Connection{AuthURL: c.url, Username: user, Password: password, ProjectName: "admin", Timeout: patience}}
	o.Registration = keystone.Registration{
		ServiceType: "reservation", ServiceName: name, Description: "Reservations", Region: "RegionOne",
		URLs: map[string]string{"public": "http://public/v1", "internal": "http://internal/v1", "admin": "http://admin/v1"},
		User: name, Password: "first-password", Project: name, Domain: "default", Roles: []string{"admin", "service"},
		Report: func(s keystone.Step) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.steps = append(o.steps, s)
		},
	}
	t.Cleanup(func() {
		// The context of the test has ended.
		c.context = context.Background()
		for _, s := range o.services() {
			c.call(c.admin, http.MethodDelete, "/services/"+s, nil, http.StatusNoContent)
		}
	})
	return o
}

// register registers and returns the reported steps, without warnings about other services.
func (o *office) register() []keystone.Step {
	o.t.Helper()
	o.steps = nil
	if err := keystone.Register(o.t.Context(), o.admin, o.Registration); err != nil {
		o.t.Fatal(err)
	}
	return slices.DeleteFunc(o.steps, func(s keystone.Step) bool { return s.Outcome == keystone.Warning })
}

func (o *office) list(kind, query string) []object {
	o.t.Helper()
	body, _ := o.call(o.cloud.admin, http.MethodGet, "/"+kind+"?"+query, nil, http.StatusOK)
	var list []object
	for _, entry := range body[kind].([]any) {
		list = append(list, entry.(object))
	}
	return list
}

func (o *office) services() []string {
	var ids []string
	for _, s := range o.list("services", "name="+o.ServiceName) {
		ids = append(ids, s["id"].(string))
	}
	return ids
}

// state returns what Keystone has: the endpoints of each of our services, and the roles of our
// user.
func (o *office) state() []string {
	o.t.Helper()
	var lines []string
	for _, id := range o.services() {
		for _, e := range o.list("endpoints", "service_id="+id) {
			lines = append(lines, fmt.Sprint(e["interface"], " ", e["url"], " in ", e["region_id"]))
		}
	}
	for _, p := range o.list("projects", "name="+o.Project) {
		for _, u := range o.list("users", "name="+o.User) {
			path := fmt.Sprintf("/projects/%s/users/%s/roles", p["id"], u["id"])
			body, _ := o.call(o.cloud.admin, http.MethodGet, path, nil, http.StatusOK)
			for _, r := range body["roles"].([]any) {
				lines = append(lines, "role "+r.(object)["name"].(string))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (o *office) want() []string {
	return []string{
		"admin " + o.URLs["admin"] + " in RegionOne", "internal " + o.URLs["internal"] + " in RegionOne",
		"public " + o.URLs["public"] + " in RegionOne", "role admin", "role service",
	}
}

func (o *office) mustHave(want []string) {
	o.t.Helper()
	if diff := cmp.Diff(want, o.state()); diff != "" {
		o.t.Errorf("Keystone has (-want +got):\n%s", diff)
	}
}

func outcomes(steps []keystone.Step, o keystone.Outcome) (n int) {
	for _, s := range steps {
		if s.Outcome == o {
			n++
		}
	}
	return n
}

func TestRegisteringAgainAndAgainDoesNoHarm(t *testing.T) {
	o := newOffice(t)
	o.role("service")
	if steps := o.register(); outcomes(steps, keystone.Created) != 8 || len(steps) != 8 {
		t.Errorf("first: %v", steps)
	}
	o.mustHave(o.want())
	if steps := o.register(); outcomes(steps, keystone.Present) != 8 || len(steps) != 8 {
		t.Errorf("again: %v", steps)
	}
	o.mustHave(o.want())
}

func TestAnAddressThatChangedIsChangedAndNotDoubled(t *testing.T) {
	o := newOffice(t)
	o.register()
	o.URLs["internal"] = "https://elsewhere:1234/v1"
	steps := o.register()
	if outcomes(steps, keystone.Changed) != 1 || outcomes(steps, keystone.Created) != 0 {
		t.Errorf("got %v", steps)
	}
	o.mustHave(o.want())
}

func TestSeveralAtOnceRegisterOneOfEverything(t *testing.T) {
	o := newOffice(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := keystone.Register(t.Context(), o.admin, o.Registration); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := len(o.services()); got != 1 {
		t.Errorf("%d services", got)
	}
	o.mustHave(o.want())
}

func TestTheOpenstackClientSeesWhatIsRegistered(t *testing.T) {
	o := newOffice(t)
	o.register()
	identity := labtest.Keystone(t)
	catalog := identity.Openstack(t, labtest.Demo, "catalog", "show", o.ServiceName)
	list := identity.Openstack(t, labtest.Admin, "endpoint", "list", "--service", o.ServiceName, "-f", "value", "-c", "Interface", "-c", "URL")
	for name, url := range o.URLs {
		if !strings.Contains(catalog, name+": "+url) || !strings.Contains(list, name+" "+url) {
			t.Errorf("%s %s is not in the catalog\n%s\nor not among the endpoints\n%s", name, url, catalog, list)
		}
	}
}

func TestADryRunSaysWhatItWouldDoAndDoesNothing(t *testing.T) {
	o := newOffice(t)
	o.DryRun = true
	before := o.register()
	o.mustHave(nil)
	if len(o.list("projects", "name="+o.Project))+len(o.list("users", "name="+o.User))+len(o.services()) != 0 {
		t.Error("something was created")
	}
	o.DryRun = false
	if diff := cmp.Diff(before, o.register()); diff != "" {
		t.Errorf("the dry run reported other steps (-dry +done):\n%s", diff)
	}
	o.DryRun, o.URLs["admin"] = true, "http://new/v1"
	if steps := o.register(); outcomes(steps, keystone.Changed) != 1 {
		t.Errorf("got %v", steps)
	}
	o.URLs["admin"] = "http://admin/v1"
	o.mustHave(o.want())
}

func TestTheUserAloneIsRegisteredBesideAnotherService(t *testing.T) {
	o := newOffice(t)
	o.UserOnly, o.URLs = true, nil
	o.register()
	o.mustHave([]string{"role admin", "role service"})
	if services := o.services(); len(services) != 0 {
		t.Errorf("clients find %v", services)
	}
}

func TestAPasswordStaysUnlessAskedFor(t *testing.T) {
	o := newOffice(t)
	login := func(password string, want int) {
		t.Helper()
		o.call("", http.MethodPost, "/auth/tokens", object{"auth": object{
			"identity": byPassword(o.User, password), "scope": inProject(o.Project)}}, want)
	}
	o.register()
	login("first-password", http.StatusCreated)
	o.Password = "second-password"
	o.register()
	login("first-password", http.StatusCreated)
	o.ResetPassword = true
	o.register()
	login("second-password", http.StatusCreated)
	login("first-password", http.StatusUnauthorized)
}

func TestWhoMayNotRegisterIsToldSo(t *testing.T) {
	o := newOffice(t)
	weak := o.account("member")
	o.admin.Username, o.admin.Password, o.admin.ProjectName = weak.name, weak.password, weak.projectName
	err := keystone.Register(t.Context(), o.admin, o.Registration)
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), weak.name) {
		t.Errorf("got %v", err)
	}
	o.admin.Password = "not-the-password"
	err = keystone.Register(t.Context(), o.admin, o.Registration)
	if err == nil || !strings.Contains(err.Error(), "log in to Keystone") || strings.Contains(err.Error(), "not-the-password") {
		t.Errorf("got %v", err)
	}
}

func TestAnAddressEndsInV1(t *testing.T) {
	o := newOffice(t)
	o.URLs["public"] = "http://public:1234"
	if f := fault.Of(keystone.Register(t.Context(), o.admin, o.Registration)); f == nil || f.Field != "public-url" {
		t.Errorf("got %v", f)
	}
}
