// SPDX-License-Identifier: Apache-2.0

package keystone_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// deregister removes the registration and returns the reported steps.
func (o *office) deregister() []keystone.Step {
	o.t.Helper()
	o.steps = nil
	if err := keystone.Deregister(o.t.Context(), o.admin, o.Registration); err != nil {
		o.t.Fatal(err)
	}
	return o.steps
}

func TestWhatWasRegisteredIsRemovedWithoutATrace(t *testing.T) {
	o := newOffice(t)
	o.register()
	o.DryRun = true
	announced := o.deregister()
	o.mustHave(o.want())
	o.DryRun = false
	if diff := cmp.Diff(announced, o.deregister()); diff != "" {
		t.Errorf("the dry run reported other steps (-dry +done):\n%s", diff)
	}
	o.mustHave(nil)
	if outcomes(announced, keystone.Removed) != 5 || len(o.list("users", "name="+o.User))+len(o.services()) != 0 {
		t.Errorf("removed %v; users and services left: %v, %v", announced, o.list("users", "name="+o.User), o.services())
	}
	if len(o.list("projects", "name="+o.Project)) != 1 {
		t.Error("the project, which others use, was removed")
	}
	if steps := o.deregister(); len(steps) != 0 {
		t.Errorf("again: %v", steps)
	}
}

func TestOnlyTheEndpointsOfTheRegionAreRemoved(t *testing.T) {
	o := newOffice(t)
	o.register()
	service := o.services()[0]
	o.call(o.cloud.admin, http.MethodPost, "/regions", object{"region": object{"id": o.ServiceName}}, http.StatusCreated)
	o.call(o.cloud.admin, http.MethodPost, "/endpoints", object{"endpoint": object{
		"service_id": service, "interface": "public", "url": "http://other/v1", "region_id": o.ServiceName,
	}}, http.StatusCreated)
	o.deregister()
	if got := o.services(); !slices.Equal(got, []string{service}) {
		t.Errorf("the service went though another region has it: %v", got)
	}
	if got := o.state(); !slices.Equal(got, []string{"public http://other/v1 in " + o.ServiceName}) {
		t.Errorf("left: %v", got)
	}
}

func TestAUserWhoWasThereBeforeStays(t *testing.T) {
	o := newOffice(t)
	o.call(o.cloud.admin, http.MethodPost, "/users", object{"user": object{
		"name": o.User, "domain_id": "default", "password": "own-password",
	}}, http.StatusCreated)
	o.register()
	if steps := o.deregister(); outcomes(steps, keystone.Warning) != 1 {
		t.Errorf("got %v", steps)
	}
	if len(o.list("users", "name="+o.User)) != 1 {
		t.Error("a user that bootstrap did not create was removed")
	}
}
