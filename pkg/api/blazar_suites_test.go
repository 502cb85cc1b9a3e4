// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
	blazarhosts "github.com/gophercloud/gophercloud/v2/openstack/reservation/v1/hosts"
)

// TestTheRequestsOfTheTempestPlugin sends the requests of the API part of blazar-tempest-plugin, except
// those that read the name of a hypervisor from Nova.
func TestTheRequestsOfTheTempestPlugin(t *testing.T) {
	const lease = `{"name":"l","start_date":"2050-12-26 %s:00","end_date":"2050-12-26 %s:00","events":[],"reservations":[]}`
	between := func(start, end string) string {
		return strings.Replace(strings.Replace(lease, "%s", start, 1), "%s", end, 1)
	}
	onHost := func(start, end string) string {
		return strings.Replace(between(start, end), `"reservations":[]`,
			`"reservations":[{"resource_type":"physical:host","min":"1","max":"1","hypervisor_properties":"[]","resource_properties":""}]`, 1)
	}
	text := func(message string) map[string]any { return map[string]any{"error_message": message} }

	t.Run("leases", func(t *testing.T) {
		c := start(t, setup{hosts: computes("cmp-1"), enrolled: true})
		carryOut(t, c.admin, []step{
			{"end before start", "POST", "/v1/leases", between("14", "13"), 400, text("End date must be later than start date.")},
			{"bogus start", "POST", "/v1/leases", `{"name":"l","start_date":"bogus","end_date":"2050-12-26 13:00","events":[],"reservations":[]}`, 400,
				text("bogus is an invalid date. Required format: %Y-%m-%d %H:%M")},
			{"no end", "POST", "/v1/leases", `{"name":"l","start_date":"2050-12-26 13:00","events":[],"reservations":[]}`, 400, text("Missing parameter end_date")},
			{"no reservations", "POST", "/v1/leases", between("13", "14"), 201, nil},
		})
		id := part(t, c.admin.get("/v1/leases"), "leases.0.id").(string)
		carryOut(t, c.admin, []step{
			{"one lease", "GET", "/v1/leases", "", 200, map[string]any{"leases.#": 1}},
			{"", "DELETE", "/v1/leases/" + id, "", 204, nil},
			{"none", "GET", "/v1/leases", "", 200, map[string]any{"leases.#": 0}},
		})
	})
	t.Run("hosts", func(t *testing.T) {
		c := start(t, setup{hosts: computes("cmp-1"), enrolled: true})
		carryOut(t, c.admin, []step{
			{"a key of 65 characters", "POST", "/v1/os-hosts", `{"name":"cmp-1.example.org","` + strings.Repeat("k", 65) + `":"x"}`, 400, text("Extra capability key too long")},
			{"", "POST", "/v1/os-hosts", `{"name":"cmp-1.example.org"}`, 201, nil},
			{"one host", "GET", "/v1/os-hosts", "", 200, map[string]any{"hosts.#": 1}},
		})
		id := part(t, c.admin.get("/v1/os-hosts"), "hosts.0.id").(string)
		carryOut(t, c.admin, []step{
			{"", "DELETE", "/v1/os-hosts/" + id, "", 204, nil},
			{"none", "GET", "/v1/os-hosts", "", 200, map[string]any{"hosts.#": 0}},
		})
	})
	t.Run("allocations", func(t *testing.T) {
		c := start(t, setup{hosts: computes("cmp-1"), enrolled: true})
		carryOut(t, c.admin, []step{{"", "POST", "/v1/os-hosts", `{"name":"cmp-1.example.org"}`, 201, nil}})
		first := c.admin.post("/v1/leases", onHost("10", "11"))
		second := c.admin.post("/v1/leases", onHost("12", "13"))
		if first.status != 201 || second.status != 201 {
			t.Fatalf("two leases one after the other: %v, %v", first, second)
		}
		one, two := part(t, first, "lease.id").(string), part(t, second, "lease.id").(string)
		carryOut(t, c.admin, []step{
			{"both", "GET", "/v1/os-hosts/allocations", "", 200, map[string]any{"allocations.#": 1, "allocations.0.reservations.#": 2}},
			{"the second", "GET", "/v1/os-hosts/allocations?lease_id=" + two, "", 200, map[string]any{
				"allocations.#": 1, "allocations.0.reservations.#": 1, "allocations.0.reservations.0.lease_id": two}},
			{"", "DELETE", "/v1/leases/" + one, "", 204, nil},
			{"", "DELETE", "/v1/leases/" + two, "", 204, nil},
			{"", "DELETE", "/v1/os-hosts/1", "", 204, nil},
		})
	})
}

func TestGophercloudManagesHosts(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2"), enrolled: true})
	client := &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{TokenID: c.admin.token}, Endpoint: c.url + "/v1/"}
	list := func() []blazarhosts.Host {
		t.Helper()
		pages, err := blazarhosts.List(client, blazarhosts.ListOpts{}).AllPages(t.Context())
		must(t, err)
		all, err := blazarhosts.ExtractHosts(pages)
		must(t, err)
		return all
	}
	if all := list(); len(all) > 0 {
		t.Fatalf("at first there are %v", all)
	}
	made, err := blazarhosts.Create(t.Context(), client, blazarhosts.CreateOpts{Name: "cmp-1.example.org", ExtraCapabilities: map[string]any{"gpu": "a100", "rack": 4}}).Extract()
	must(t, err)
	expected := blazarhosts.Host{
		ID: "1", HypervisorHostname: "cmp-1.example.org", HypervisorType: "QEMU", HypervisorVersion: 9002000, ServiceName: "cmp-1", VCPUs: 8, MemoryMB: 32768, LocalGB: 100,
		AvailabilityZone: "az1", Reservable: true, CreatedAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), ExtraCapabilities: map[string]any{"gpu": "a100", "rack": "4"},
	}
	if d := cmp.Diff(expected, *made); d != "" {
		t.Errorf("created (-want +got):\n%s", d)
	}
	c.wait(60)
	changed, err := blazarhosts.Update(t.Context(), client, made.ID, blazarhosts.UpdateOpts{ExtraCapabilities: map[string]any{"gpu": nil, "rack": "b12"}}).Extract()
	must(t, err)
	expected.ExtraCapabilities, expected.UpdatedAt = map[string]any{"rack": "b12"}, new(time.Date(2026, 11, 20, 12, 1, 0, 0, time.UTC))
	if d := cmp.Diff(expected, *changed); d != "" {
		t.Errorf("changed (-want +got):\n%s", d)
	}
	got, err := blazarhosts.Get(t.Context(), client, made.ID).Extract()
	must(t, err)
	if d := cmp.Diff([]blazarhosts.Host{expected, expected}, append(list(), *got)); d != "" {
		t.Errorf("listed, and got by its id (-want +got):\n%s", d)
	}
	must(t, blazarhosts.Delete(t.Context(), client, made.ID).ExtractErr())
	if _, err := blazarhosts.Get(t.Context(), client, made.ID).Extract(); !gophercloud.ResponseCodeIs(err, 404) {
		t.Errorf("after its removal: %v", err)
	}
}
