// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// coresOfHost is the number of cores of each host of the lab; Nova sells each of them 16 times.
const coresOfHost = 10

// busy creates a flavor with that many vCPUs until the test ends.
func (b *beside) busy(vcpus int) (id string) {
	b.t.Helper()
	var made struct{ Flavor struct{ ID string } }
	b.admin.Must(http.MethodPost, "compute", "/flavors", map[string]any{"flavor": map[string]any{
		"name": "packing-busy", "vcpus": vcpus, "ram": 512, "disk": 1}}, &made)
	b.t.Cleanup(func() { b.admin.Must(http.MethodDelete, "compute", "/flavors/"+made.Flavor.ID, nil, nil) })
	return made.Flavor.ID
}

// packs runs a command of `almanac pack` and reads its output.
func (b *beside) packs(into any, arguments ...string) {
	b.t.Helper()
	out := b.as(labtest.Admin, append(append([]string{"pack"}, arguments...), "-f", "api")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		b.t.Fatalf("almanac pack %v: %v\n%s", arguments, err, out)
	}
}

// smallestYield returns the least yield of servers with vcpus vCPUs each.
func smallestYield(list []server, vcpus int) float64 {
	on, most := map[string]int{}, 0
	for _, s := range list {
		on[s.Host] += vcpus
		most = max(most, on[s.Host])
	}
	return min(1, coresOfHost/float64(most))
}

// One host has more vCPUs than cores, and nova-scheduler places the servers.
func TestServersAreMovedAsPlannedAndStopInTheMiddleLeavesThemWhole(t *testing.T) {
	b := besideOpenStack(t, "OS_PACKING__POLL_INTERVAL=1")
	hosts := b.cloud.Hosts(t)
	crowdedHost, reserved := hosts[0], hosts[1]
	const vcpus = 5
	flavor := b.busy(vcpus)
	crowd := b.placed(b.admin, []string{crowdedHost}, 1, wish{name: "crowd", count: 5, flavor: flavor, fields: map[string]any{"host": crowdedHost}})
	ids := make([]string, len(crowd))
	for i, s := range crowd {
		ids[i] = s.ID
	}
	b.pool(reserved)
	b.reserve(b.demo, v1.ReservationRequest{
		Name: "later", HostProperties: among(reserved), Quantity: new(1), StartTime: new(b.soon(7200)), Duration: new(v1.Duration(3600)),
	})
	b.admin.Must(http.MethodPost, "compute", "/servers/"+ids[0]+"/action", map[string]any{"lock": nil}, nil)

	var plan v1.PackingPlan
	b.packs(&plan, "plan", "--migrations", "3")
	if plan.MinYield != 0.4 || plan.PlannedYield != 1 || len(plan.Moves) != 3 || len(plan.Stays) != 1 || plan.Stays[0].Instance != ids[0] {
		t.Fatalf("the plan is %+v", plan)
	}
	b.runOn([]string{crowdedHost}, b.settled(ids...)...) // a plan alone moves no server

	first := b.stoppedInTheMiddle(plan)
	b.whereTold(first, b.settled(ids...))

	var second v1.PackingRun
	b.packs(&plan, "plan", "--migrations", "3")
	b.packs(&second, "apply", "--migrations", "3", "--plan", plan.ID, "--wait")
	now := b.settled(ids...)
	if second.Status != "done" || second.Moved != len(plan.Moves) || second.MinYield == nil || math.Abs(*second.MinYield-plan.PlannedYield) > 1e-9 ||
		math.Abs(smallestYield(now, vcpus)-plan.PlannedYield) > 1e-9 {
		t.Errorf("the planned yield is %.4f, the actual one %.4f: %+v", plan.PlannedYield, smallestYield(now, vcpus), second)
	}
	if slices.ContainsFunc(now, func(s server) bool { return s.Host == reserved }) {
		t.Error("a server was moved onto the reserved host")
	}
	if now[slices.IndexFunc(now, func(s server) bool { return s.ID == ids[0] })].Host != crowdedHost {
		t.Error("the server that is locked was moved")
	}
	b.whereTold(second, now)
	b.unleaked()
}

// stoppedInTheMiddle applies a plan and stops the run when a server has moved.
func (b *beside) stoppedInTheMiddle(plan v1.PackingPlan) (r v1.PackingRun) {
	b.t.Helper()
	b.packs(&r, "apply", "--migrations", "3", "--plan", plan.ID)
	b.await("a server has moved", func() bool {
		b.packs(&r, "status", r.ID)
		return r.Moved > 0
	})
	b.packs(&r, "stop")
	b.await("the run has ended", func() bool {
		b.packs(&r, "status")
		return r.Status != "stopping"
	})
	if r.Status != "stopped" || r.Moved == 0 || r.Left == 0 || r.Failed+r.Skipped > 0 {
		b.t.Errorf("the run is %s after %d moves, %d are left: %s", r.Status, r.Moved, r.Left, r.Reason)
	}
	return r
}

// whereTold checks that the servers are in Nova where the run reports them.
func (b *beside) whereTold(r v1.PackingRun, now []server) {
	b.t.Helper()
	for _, m := range r.Plan.Moves {
		s := now[slices.IndexFunc(now, func(s server) bool { return s.ID == m.Instance })]
		want := m.From
		if m.State == "moved" {
			want = m.To
		}
		if s.Host != want || s.Status != "ACTIVE" || s.Task != "" {
			b.t.Errorf("the move of %s is %s, but the server is %s on %s, task %q; want it on %s", s.Name, m.State, s.Status, s.Host, s.Task, want)
		}
	}
}

// The needs come from Nova's diagnostics.
//
//make:test-cloud
func TestAHostIsEmptiedAndTheMembersOfAGroupStayApart(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, "OS_PACKING__POLL_INTERVAL=1", "OS_PACKING__CPU_NEED=diagnostics")
	hosts := b.cloud.Hosts(t)
	last := len(hosts) - 1
	on := func(h int, name string, hints map[string]any) server {
		return b.placed(b.admin, hosts[h:h+1], 1, wish{name: name, hints: hints, fields: map[string]any{"host": hosts[h]}})[0]
	}
	apart := map[string]any{"group": b.group(b.admin, "anti-affinity")}
	one, other := on(last, "one", apart), on(last-1, "other", apart)

	var plan v1.PackingPlan
	measured := func(servers int) {
		b.await("what the servers use is measured", func() bool {
			b.packs(&plan, "plan", "--empty", "--migrations", "5")
			return plan.Measured == servers
		})
	}
	measured(2)
	if len(plan.Moves)+len(plan.Emptied) > 0 || len(plan.Kept) != 2 {
		t.Errorf("with the other members' hosts as the only free ones, the plan is %+v", plan)
	}

	third := on(last-2, "third", nil)
	measured(3)
	var run v1.PackingRun
	b.packs(&run, "apply", "--empty", "--migrations", "5", "--wait")
	if run.Status != "done" || run.Moved != 1 || len(run.Plan.Moves) != 1 || run.Plan.Measured != 3 || !slices.Equal(run.Plan.Emptied, hosts[last:]) {
		t.Errorf("the run is %+v", run)
	}
	now := b.settled(one.ID, other.ID, third.ID)
	b.whereTold(run, now)
	if now[0].Host != third.Host || now[1].Host != other.Host || now[2].Host != third.Host {
		t.Errorf("the servers are on %v; want the one of the last host beside the server without a group", hostsOf(now))
	}
	b.unleaked()
}

// Almanac runs in the place of nova-scheduler.
//
//make:test-cloud
func TestAServerThatWouldSinkTheYieldUnderTheFloorIsRefused(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), "OS_PACKING__MIN_YIELD_FLOOR=0.5")...)
	built.TakeTopic(t)
	host := b.cloud.Hosts(t)[2:3]
	there, flavor := map[string]any{"host": host[0]}, b.busy(coresOfHost)
	b.placed(b.admin, host, 1, wish{name: "fair", count: 2, flavor: flavor, fields: there})
	b.unplaced(b.admin, wish{name: "too much", flavor: flavor, fields: there})
	list, err := b.admin.almanac.Decisions(t.Context(), b.named("too-much.*")[0])
	if err != nil {
		t.Fatal(err)
	}
	last := list.Decisions[0]
	if at := slices.IndexFunc(last.Refused, func(h v1.RefusedHost) bool { return h.Host == host[0] }); at < 0 || last.Refused[at].Filter != "YieldFilter" {
		t.Errorf("the refused hosts are %+v", last.Refused)
	}
}

// New preemptible servers may fill such a host, but the packing plan does not use it.
//
//make:test-cloud
func TestPreemptibleServersAreNotMovedOntoAHostThatIsReserved(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), "OS_PACKING__POLL_INTERVAL=1")...)
	built.TakeTopic(t)
	hosts := b.cloud.Hosts(t)
	crowdedHost, reserved := hosts[0], hosts[1]
	flavor := b.busy(5)
	b.admin.Must(http.MethodPost, "compute", "/flavors/"+flavor+"/os-extra_specs",
		map[string]any{"extra_specs": map[string]string{"almanac:preemptible": "true"}}, nil)
	there := map[string]any{"host": crowdedHost}
	b.placed(b.admin, []string{crowdedHost}, 1, wish{name: "crowd", count: len(hosts) + 2, flavor: flavor, fields: there})
	b.pool(reserved)
	r := b.reserve(b.demo, v1.ReservationRequest{Name: "now", HostProperties: among(reserved), Quantity: new(1), Duration: new(v1.Duration(3600))})
	b.becomes(r.ID, "active")

	var plan v1.PackingPlan
	b.packs(&plan, "plan", "--migrations", "0")
	if len(plan.Moves) < len(hosts)-2 || slices.ContainsFunc(plan.Moves, func(m v1.PackingMove) bool { return m.To == reserved }) {
		t.Errorf("the plan is %+v, but %s is reserved", plan.Moves, reserved)
	}
}
