// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

func defaults(t *testing.T) *policy.Enforcer {
	t.Helper()
	e, err := policy.Load(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func of(project string, roles ...string) policy.Credentials {
	return policy.Credentials{UserID: "u", ProjectID: project, Roles: roles, IsAdminProject: true}
}

func ofSystem(roles ...string) policy.Credentials {
	return policy.Credentials{UserID: "u", System: true, Roles: roles, IsAdminProject: true}
}

// The rules that act on the caller's own project, by their effect.
var (
	reading = []string{
		"reservations:list", "reservations:get", "availability:get", "offers:create", "hosts:list", "hosts:get", "properties:list", "calendar:get", "decisions:get",
		"events:get", "limits:get", "usage:get",
		"besteffort:list", "besteffort:get", "blazar:leases:get",
		"blazar:floatingips:get", "blazar:oshosts:get", "blazar:oshosts:get_allocations", "blazar:oshosts:get_resource_properties",
	}
	writing = []string{"reservations:update", "reservations:delete", "besteffort:delete", "blazar:leases:put", "blazar:leases:delete", "webhooks:list", "webhooks:get", "webhooks:delete"}
	making  = []string{"reservations:create", "besteffort:create", "blazar:leases:post", "webhooks:create"}
	overall = []string{
		"reservations:list_all", "reservations:get_all_projects", "reservations:get_hosts", "hosts:get_instances", "properties:get_hidden",
		"decisions:get_all_projects", "decisions:get_hosts", "images:list", "preemptible:list", "preemptible:get_cost",
		"energy:get", "energy:get_plan", "energy:list_hosts", "energy:get_host", "energy:get_audit", "packing:plan", "packing:list_runs", "packing:get_run",
		"besteffort:list_all", "besteffort:get_all_projects", "besteffort:get_hosts", "limits:get_all_projects", "usage:get_all_projects",
	}
	ruling = []string{
		"reservations:update_all_projects", "reservations:delete_all_projects", "reservations:maintain", "hosts:update", "properties:update", "doctor:get", "doctor:fix",
		"demo:list", "demo:create", "demo:delete",
		"energy:update", "energy:approve", "energy:order", "packing:apply", "packing:stop",
		"besteffort:delete_all_projects", "webhooks:create_all_projects", "webhooks:list_all", "webhooks:get_all_projects", "webhooks:delete_all_projects",
		"blazar:floatingips:post", "blazar:floatingips:delete", "blazar:oshosts:post", "blazar:oshosts:put", "blazar:oshosts:delete", "blazar:oshosts:update_resource_properties",
	}
	service = []string{"scheduler:filter", "scheduler:weigh", "readiness:get"}
)

func TestWhatEachPersonaMayDo(t *testing.T) {
	project := []string{"feed:get"}
	everything := slices.Concat(reading, writing, overall, ruling, service)
	for name, c := range map[string]struct {
		by   policy.Credentials
		want []string
	}{
		"no role": {of("p"), nil},
		"reader":  {of("p", "reader"), slices.Concat(reading, project)},
		"member":  {of("p", "member"), slices.Concat(reading, writing, project, making)},
		"admin":   {of("p", "admin"), slices.Concat(everything, project, making)},
		"service": {of("p", "service"), service},
		"admin of another project than the admin project": {
			policy.Credentials{ProjectID: "p", Roles: []string{"admin"}}, slices.Concat(reading, writing, project, making)},
		"reader of the system": {ofSystem("reader"), slices.Concat(reading, overall, []string{"readiness:get"})},
		"admin of the system":  {ofSystem("admin"), everything},
		"admin of a domain":    {policy.Credentials{DomainID: "d", Roles: []string{"admin"}, IsAdminProject: true}, nil},
		"admin of nothing":     {policy.Credentials{Roles: []string{"admin"}, IsAdminProject: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := defaults(t)
			var got []string
			for _, r := range policy.Defaults() {
				if len(r.Operations) == 0 {
					continue // a base rule
				}
				if e.Check(r.Name, c.by, map[string]string{policy.ProjectID: c.by.ProjectID}) == nil {
					got = append(got, r.Name)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("allowed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneProjectIsNotAnother(t *testing.T) {
	e := defaults(t)
	for _, rule := range slices.Concat(reading, writing, []string{"reservations:create", "feed:get"}) {
		if err := e.Check(rule, of("a", "member"), map[string]string{policy.ProjectID: "b"}); !fault.Is(err, fault.Denied) {
			t.Errorf("%s: a member of project a acts on project b: %v", rule, err)
		}
		if err := e.Check(rule, of("", "member"), map[string]string{policy.ProjectID: ""}); !fault.Is(err, fault.Denied) {
			t.Errorf("%s: nobody's member acts on nobody's project: %v", rule, err)
		}
	}
}

func TestADenialNamesTheRuleAndWhatItAsksFor(t *testing.T) {
	err := defaults(t).Check("reservations:create", of("p", "reader", "auditor"), map[string]string{policy.ProjectID: "p"})
	want := `policy does not allow reservations:create with the roles auditor, reader; it requires "rule:project_member_or_admin"`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestADenialForTheScopeSaysWhichTokenToGet(t *testing.T) {
	err := defaults(t).Check("reservations:create", ofSystem("admin"), nil)
	want := "policy does not allow reservations:create with a token for the system; get one for a project"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestARuleThatIsNotThereAllowsNobody(t *testing.T) {
	err := defaults(t).Check("hosts:destroy", of("p", "admin"), nil)
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "hosts:destroy") {
		t.Errorf("got %v", err)
	}
}

func TestAnExplanationShowsEveryRuleOnTheWay(t *testing.T) {
	got := defaults(t).Explain("reservations:create", of("p", "member"), map[string]string{policy.ProjectID: "p"})
	want := []policy.Step{
		{Rule: "reservations:create", Check: "rule:project_member_or_admin", Allowed: true},
		{Rule: "project_member_or_admin", Check: "rule:project_member_api or rule:context_is_admin", Allowed: true},
		{Rule: "project_member_api", Check: "role:member and project_id:%(project_id)s", Allowed: true},
		{Rule: "context_is_admin", Check: "role:admin and is_admin_project:True"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
