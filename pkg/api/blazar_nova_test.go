// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// callersNova stands for Nova: it has the flavor small, and creates a limited number of groups.
type callersNova struct {
	mu     sync.Mutex
	t      *testing.T
	tokens []string
	groups map[string]string // name and policy, by id
	quota  int
}

func (n *callersNova) FlavorAs(_ context.Context, token, id string) (inventory.Flavor, string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tokens = append(n.tokens, token)
	if id != "7" {
		return inventory.Flavor{}, "", fault.New(fault.NotFound, "nova answered 404")
	}
	return inventory.Flavor{
		ID: "7", Name: "small", Resources: resource.Vector{VCPUs: 2, MemoryMB: 512}, ExtraSpecs: map[string]string{"hw:x": "1"},
	}, `{"id":"7","vcpus":2}`, nil
}

func (n *callersNova) CreateGroupAs(_ context.Context, token, name, policy string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tokens = append(n.tokens, token)
	if len(n.groups) == n.quota {
		return "", fault.New(fault.Denied, "Quota exceeded, too many server groups.")
	}
	id := fmt.Sprintf("9c1a7a52-0000-4000-8000-%012d", len(n.tokens))
	n.groups[id] = name + " " + policy
	return id, nil
}

func (n *callersNova) DeleteGroup(_ context.Context, id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.groups, id)
	return nil
}

func startWithNova(t *testing.T, quota int) (*cloud, *callersNova) {
	n := &callersNova{t: t, groups: map[string]string{}, quota: quota}
	var id atomic.Int64
	return start(t, setup{adjust: func(o *api.Options) {
		o.Blazar.Nova, o.NewID = n, func() string { return fmt.Sprintf("6f1a7a52-0000-4000-8000-%012d", id.Add(1)) }
	}}), n
}

// leaseWith is a body for a lease of an hour with these reservations.
func leaseWith(reservations ...string) string {
	return fmt.Sprintf(`{"name": "l", "start_date": "2026-11-20 12:10", "end_date": "2026-11-20 13:10", "reservations": [%s]}`, strings.Join(reservations, ","))
}

func someInstances(amount int, affinity string) string {
	return fmt.Sprintf(`{"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, "amount": %d, "affinity": %s, "resource_properties": ""}`, amount, affinity)
}

func TestInstancesOfAFlavorAreReservedWithTheRightsOfTheCaller(t *testing.T) {
	c, n := startWithNova(t, 0)
	l := c.demo.lease(leaseWith(
		`{"resource_type": "flavor:instance", "flavor_id": 7, "amount": 2, "affinity": "None"}`, `{"resource_type": "flavor:instance", "flavor_id": "7", "amount": "1"}`,
	))
	for i, amount := range []float64{2, 1} {
		r := l.Reservations[i]
		if r["resource_type"] != "flavor:instance" || r["resource_properties"] != `{"id":"7","vcpus":2}` || r["vcpus"] != 2.0 || r["amount"] != amount || r["flavor_id"] != r["id"] || r["affinity"] != nil {
			t.Errorf("reservation %d is %v", i, r)
		}
	}
	if !slices.Equal(n.tokens, []string{c.demo.token}) {
		t.Errorf("the flavor is read with the tokens %v, want once with the caller's", n.tokens)
	}
	path := "/v1/leases/" + l.ID
	change := func(more string) answer {
		return c.demo.put(path, fmt.Sprintf(`{"reservations": [{"id": %q, %s}]}`, l.Reservations[0]["id"], more))
	}
	for _, more := range []string{`"vcpus": 8`, `"flavor_id": "8"`, `"affinity": true`, `"resource_properties": "{}"`} {
		wantFault(t, change(more), http.StatusBadRequest, "cannot be changed, since a flavor is reserved")
	}
	after := leaseIn(t, change(`"amount": 3, "affinity": null, "resource_properties": "{\"id\":\"7\",\"vcpus\":2}"`), http.StatusOK)
	of := func(r map[string]any) bool { return r["id"] == l.Reservations[0]["id"] }
	if r := after.Reservations[slices.IndexFunc(after.Reservations, of)]; r["amount"] != 3.0 || r["resource_properties"] != `{"id":"7","vcpus":2}` {
		t.Errorf("the changed reservation is %v", r)
	}
	for what, c2 := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"a flavor that the caller may not use": {`"flavor_id": "8", "amount": 1`, 400, "flavor_id: must be the id of a flavor that you may use, not 8"},
		"no flavor":                            {`"amount": 1`, 400, "Missing parameter flavor_id"},
		"nothing":                              {`"x": 1`, 400, "Missing parameter amount, flavor_id"},
		"a flavor that is a list":              {`"flavor_id": ["7"], "amount": 1`, 400, "Malformed parameter flavor_id"},
		"none of them":                         {`"flavor_id": "7", "amount": 0`, 400, "Malformed parameter amount"},
		"with affinity":                        {`"flavor_id": "7", "amount": 1, "affinity": true`, 409, "affinity is not supported for flavor:instance"},
	} {
		t.Run(what, func(t *testing.T) {
			wantFault(t, c.demo.post("/v1/leases", leaseWith(`{"resource_type": "flavor:instance", `+c2.body+`}`)), c2.status, c2.says)
		})
	}
	without := start(t, setup{})
	wantFault(t, without.demo.post("/v1/leases", leaseWith(`{"resource_type": "flavor:instance", "flavor_id": "7", "amount": 1}`)), 400, "The flavor:instance resource type is not supported")
}

func TestAReservationWithAnAffinityHasAServerGroupOfTheCaller(t *testing.T) {
	c, n := startWithNova(t, 2)
	l := c.demo.lease(leaseWith(someInstances(1, "true"), someInstances(1, "null"), someInstances(2, "false")))
	want := map[string]string{}
	for i, policy := range map[int]string{0: "affinity", 2: "anti-affinity"} {
		want[l.Reservations[i]["server_group_id"].(string)] = fmt.Sprintf("reservation:%s %s", l.Reservations[i]["id"], policy)
	}
	if !maps.Equal(n.groups, want) || l.Reservations[1]["server_group_id"] != nil {
		t.Errorf("the groups are %v, want %v; the lease is %v", n.groups, want, l.Reservations)
	}
	if !slices.Equal(n.tokens, []string{c.demo.token, c.demo.token}) {
		t.Errorf("they were created with the tokens %v", n.tokens)
	}
	body := fmt.Sprintf(`{"reservations": [{"id": %q, "affinity": %%s}]}`, l.Reservations[0]["id"])
	wantFault(t, c.demo.put("/v1/leases/"+l.ID, fmt.Sprintf(body, "false")), http.StatusBadRequest, "affinity (it cannot be changed")
	leaseIn(t, c.demo.put("/v1/leases/"+l.ID, fmt.Sprintf(body, `"True"`)), http.StatusOK)
}

func TestALeaseThatIsRefusedLeavesNoServerGroup(t *testing.T) {
	c, n := startWithNova(t, 1)
	wantFault(t, c.demo.post("/v1/leases", leaseWith(someInstances(1, "true"), someInstances(1, "true"))), http.StatusForbidden, "Quota exceeded")
	wantFault(t, c.demo.post("/v1/leases", leaseWith(someInstances(100, "false"))), http.StatusBadRequest, "")
	if len(n.groups) > 0 || len(c.stored()) > 0 {
		t.Errorf("left are the groups %v and the reservations %v", n.groups, c.stored())
	}
}
