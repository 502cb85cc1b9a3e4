// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"maps"
	"math"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// askCost handles GET /v1/preemptible/cost.
func (s Preemptible) askCost(c *serving.Call) (any, error) {
	q := c.Parameters("vcpus", "memory_mb", "disk_gb", "flavor", "project_id", "limit")
	wanted, project, limit := size(q), q.Text("project_id"), q.Number("limit", serving.DefaultPage, 1, serving.LargestPage)
	err := q.Err
	if err == nil && wanted.Name != "" {
		wanted, err = s.flavor(c.Request.Context(), wanted.Name)
	}
	if err != nil {
		return nil, err
	}
	return serving.Later(func() (any, error) {
		if s.Placing.Pipeline == nil {
			return v1.PreemptionCosts{Resources: classes(wanted), Hosts: []v1.PreemptionCost{}, Reason: noPlacing}, nil
		}
		states := s.Placing.states()
		if states == nil {
			return nil, inventory.ErrNotRead
		}
		r := preview(wanted, project)
		r.Preemptible = s.Rule.Marks(&inventory.Instance{Flavor: wanted, ProjectID: project})
		return s.costs(states, r, s.Now(), limit), nil
	}), nil
}

// size reads the size of an instance from the parameters: the name of a flavor, or amounts.
func size(q *serving.Parameters) (f inventory.Flavor) {
	amount := func(name string) int64 { return int64(q.Number(name, 0, 0, math.MaxInt32)) }
	f.Name = q.Text("flavor")
	f.Resources = resource.Vector{VCPUs: amount("vcpus"), MemoryMB: amount("memory_mb"), DiskGB: amount("disk_gb")}
	switch sized := !f.Resources.IsZero(); {
	case f.Name != "" && sized:
		q.Fail("flavor", "contains the resources of the instance; use either flavor or vcpus, memory_mb and disk_gb")
	case f.Name == "" && !sized:
		q.Fail("vcpus", "the resources of the instance are required: vcpus, memory_mb and disk_gb, or flavor")
	}
	return f
}

// flavor returns the flavor with this name or id.
func (s Preemptible) flavor(ctx context.Context, name string) (inventory.Flavor, error) {
	if s.Placing.Flavors == nil {
		return inventory.Flavor{}, fault.Field("flavor", "this cloud has no flavors; use vcpus, memory_mb and disk_gb instead")
	}
	all, err := s.Placing.Flavors(ctx)
	if err != nil {
		return inventory.Flavor{}, err
	}
	known := make([]string, 0, len(all))
	for _, f := range all {
		if f.Name == name || f.ID == name {
			return f, nil
		}
		known = append(known, f.Name)
	}
	return inventory.Flavor{}, fault.Field("flavor", "%s", fault.Unknown("flavor", name, known))
}

// preview returns the request that Nova would send for an instance of the flavor, without an image
// and hints.
func preview(f inventory.Flavor, project string) *placing.Request {
	r := &placing.Request{
		ProjectID: project, Instances: []string{""}, Resources: classes(f), FlavorName: f.Name, ExtraSpecs: f.ExtraSpecs,
	}
	r.Required, r.Forbidden = f.Traits()
	return r
}

// classes returns a flavor's resources by resource class of Placement.
func classes(f inventory.Flavor) map[string]int64 {
	all := map[string]int64{"VCPU": f.Resources.VCPUs, "MEMORY_MB": f.Resources.MemoryMB, "DISK_GB": f.Resources.DiskGB}
	maps.Copy(all, f.Resources.Custom)
	maps.DeleteFunc(all, func(_ string, amount int64) bool { return amount == 0 })
	return all
}

// costs returns the hosts from which the pipeline would choose, in its order, and after them those
// that it would skip because they require evictions.
func (s Preemptible) costs(states *inventory.States, r *placing.Request, now span.Instant, limit int) v1.PreemptionCosts {
	choice := *s.Placing.Pipeline
	choice.Whole = true
	order := choice.Plan(states, r, now, nil).Decision.Ranked
	choice.Spares = false
	rest := choice.Plan(states, r, now, nil).Decision
	seen := make(map[string]bool, len(order))
	for _, h := range order {
		seen[h.Host] = true
	}
	for _, h := range rest.Ranked {
		if !seen[h.Host] {
			order = append(order, h)
		}
	}
	answer := v1.PreemptionCosts{Resources: r.Resources, Considered: states.Len(), Hosts: []v1.PreemptionCost{}}
	roomy := withRoom(states, r, now)
	for _, h := range order[:min(limit, len(order))] {
		i, _ := states.Index(h.Host)
		answer.Hosts = append(answer.Hosts, s.cost(states, i, r, now, roomy))
	}
	for _, h := range rest.Refused[:min(limit-len(answer.Hosts), len(rest.Refused))] {
		answer.Hosts = append(answer.Hosts, v1.PreemptionCost{Host: h.Host, Victims: []v1.Victim{}, Reason: h.Filter + ": " + h.Reason})
	}
	return answer
}

// withRoom returns the hosts that have room without evictions.
func withRoom(states *inventory.States, r *placing.Request, now span.Instant) hostset.Set {
	roomy := states.All().Clone()
	if test := (filters.Capacity{}).For(states, r, now); test != nil {
		test.Keep(roomy)
	}
	return roomy
}

// cost returns the victims on host i, with their cost.
func (s Preemptible) cost(states *inventory.States, i int, r *placing.Request, now span.Instant, roomy hostset.Set) v1.PreemptionCost {
	out := v1.PreemptionCost{Host: states.Host(i).Name, Room: roomy.Has(i), Victims: []v1.Victim{}}
	evictor := s.Placing.evictor()
	if out.Room || evictor == nil {
		return out
	}
	victims, enough := evictor.Victims(states, i, r.Resources, now)
	if !enough {
		out.Reason = "there is no room, even if all preemptible instances leave"
		return out
	}
	out.Cost, out.Unit = victims.Cost, evictor.Cost.Unit()
	for n, v := range victims.Instances {
		out.Victims = append(out.Victims, v1.Victim{ID: v.ID, Name: v.Name, ProjectID: v.ProjectID, Cost: victims.Costs[n], Unit: out.Unit})
	}
	return out
}
