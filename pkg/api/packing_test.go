// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/instances"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// packing moves the instances of two hosts with 4 cores: A has four of 4 vCPUs, one of them
// locked, and B is empty.
func packing(c *cloud) instances.Packing {
	stocks := func(guests int64) map[string]inventory.Stock {
		return map[string]inventory.Stock{"VCPU": {Total: 4, Ratio: 16, Used: 4 * guests}, "MEMORY_MB": {Total: 8192, Ratio: 1, Used: 1024 * guests}}
	}
	rows := []inventory.HostState{{Name: "A", Up: true, Enabled: true, Stocks: stocks(4)}, {Name: "B", Up: true, Enabled: true, Stocks: stocks(0)}}
	for n := range 4 {
		rows[0].Instances = append(rows[0].Instances, inventory.Instance{
			ID: fmt.Sprint("i", n), Name: fmt.Sprint("web-", n), ProjectID: "demo", Host: "A", Status: "ACTIVE", Locked: n == 0,
			Flavor: inventory.Flavor{Name: "busy", Resources: resource.Vector{VCPUs: 4, MemoryMB: 1024}},
		})
	}
	return instances.Packing{
		CPUNeed: rebalance.OfFlavor, Preset: rebalance.Options{Migrations: 1, Gain: 0.01},
		Admin: &rebalance.Admin{
			Records: c.store, Archive: c.store, Untrusted: func() string { return "" }, Ordered: func() {}, Now: c.now, NewID: uuid.NewString,
			Situation: func(context.Context) (rebalance.Situation, error) {
				states, err := inventory.NewStates(rows, nil)
				if err != nil {
					return rebalance.Situation{}, err
				}
				hosts, err := inventory.NewSnapshot([]inventory.Host{{Name: "A"}, {Name: "B"}}, nil, nil)
				return rebalance.Situation{Now: c.now(), States: states, Hosts: hosts, Share: 1}, err
			},
		},
	}
}

func TestAPlanOfMigrationsIsShownAndChangesNothing(t *testing.T) {
	c := start(t, setup{})
	plan := func(body string) v1.PackingPlan {
		t.Helper()
		return want[v1.PackingPlan](t, c.admin.post("/v1/packing", body), http.StatusOK)
	}
	p := plan(`{}`)
	if p.MinYield != 0.25 || p.UpperBound != 0.5 || len(p.Moves) != 1 || p.CPUNeed != "flavor" || p.MemoryMB != 1024 || p.Movable != 3 || p.Instances != 4 ||
		len(p.Stays) != 1 || p.Stays[0] != (v1.PackingStay{Instance: "i0", Host: "A", Reason: "it is locked"}) {
		t.Errorf("as configured: %+v", p)
	}
	if m := p.Moves[0]; m.From != "A" || m.To != "B" || m.VCPUs != 4 || m.Need != 4 || m.MinYield != p.PlannedYield || m.State != "" {
		t.Errorf("it moves %+v", m)
	}
	if p := plan(`{"migrations": 0, "memory_mb": 2048, "algorithm": "exact"}`); len(p.Moves) != 2 || p.PlannedYield != 0.5 || p.Algorithm != "exact" {
		t.Errorf("within 2 GiB: %+v", p)
	}
	if p := plan(`{"consolidate": 1}`); len(p.Moves) != 0 || len(p.Kept) != 1 || len(p.Reasons) == 0 {
		t.Errorf("to empty a host: %+v", p)
	}
	if list := want[v1.PackingRuns](t, c.admin.get("/v1/packing/runs"), http.StatusOK); len(list.Runs) != 0 {
		t.Errorf("plans have begun %+v", list)
	}
	for body, said := range map[string]string{
		`{"migrations": -1}`: "migrations", `{"memory_mb": -1}`: "memory_mb", `{"algorithm": "magic"}`: "algorithm", `{"floor": 0.5}`: "floor",
		`{"consolidate": 1, "floor": 2}`: "floor", `{"consolidate": 1, "empty": true}`: "empty", `{"plan": "x"}`: "plan", `{"hosts": 1}`: "hosts",
		`{"floor": "x"}`: "must be a number", `{"migrations": 1.5}`: "must be a whole number",
	} {
		if a := c.admin.post("/v1/packing", body); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), said) {
			t.Errorf("%s: %v", body, a)
		}
	}
}

func TestARunIsBegunWatchedAndStopped(t *testing.T) {
	c := start(t, setup{})
	plan := want[v1.PackingPlan](t, c.admin.post("/v1/packing", `{"migrations": 2}`), http.StatusOK)
	if a := c.admin.post("/v1/packing/runs", `{"migrations": 1, "plan": "`+plan.ID+`"}`); a.status != http.StatusConflict {
		t.Errorf("for another plan: %v", a)
	}
	a := c.admin.post("/v1/packing/runs", `{"migrations": 2, "plan": "`+plan.ID+`"}`)
	run := want[v1.PackingRun](t, a, http.StatusCreated)
	path := "/v1/packing/runs/" + run.ID
	if run.Status != "running" || run.Left != 2 || run.By != "demo-user" || run.MinYield != nil || run.Ended != nil || run.Plan.Moves[0].State != "waiting" || a.header.Get("Location") != path {
		t.Errorf("the new run is %+v at %s", run, a.header.Get("Location"))
	}
	if a := c.admin.post("/v1/packing/runs", `{}`); a.status != http.StatusConflict {
		t.Errorf("while it runs: %v", a)
	}
	if got := want[v1.PackingRun](t, c.admin.delete(path), http.StatusOK); got.Status != "stopping" {
		t.Errorf("after the order to stop the status is %s", got.Status)
	}
	_, err := c.store.ChangePackingRun(t.Context(), job.Lease{}, run.ID, func(r *rebalance.Run) error {
		r.Status, r.Ended, r.Yield = rebalance.RunStopped, noon, 0.375
		r.Progress[0] = rebalance.Progress{State: rebalance.MoveDone, Begun: noon, Ended: noon}
		return nil
	})
	must(t, err)
	got := want[v1.PackingRun](t, c.admin.get(path), http.StatusOK)
	if got.Status != "stopped" || got.Moved != 1 || got.Left != 1 || got.MinYield == nil || *got.MinYield != 0.375 || got.Plan.Moves[0].Ended == nil {
		t.Errorf("at its end the run is %+v", got)
	}
	if list := want[v1.PackingRuns](t, c.admin.get("/v1/packing/runs?limit=1"), http.StatusOK); len(list.Runs) != 1 || list.Runs[0].ID != run.ID {
		t.Errorf("listed are %+v", list)
	}
}

func TestWhereNothingCanBeMovedThatIsSaid(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Packing = instances.Packing{} }})
	if a := c.admin.post("/v1/packing", `{}`); a.status != http.StatusConflict || !strings.Contains(string(a.body), "[inventory] source = openstack") {
		t.Errorf("got %v", a)
	}
}
