// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/packing"
)

// consolidate plans to empty hosts so that they can be switched off. The least efficient hosts come
// first: those without a known value, then by FLOPS per watt, hosts of the same value by name in
// descending order. It moves only instances on these hosts, moves nothing to empty hosts, and keeps
// the smallest yield at or above the floor. A host that cannot become empty within the budget stays
// as it is, and the next one is considered.
func (v *view) consolidate(ctx context.Context, p *Plan) error {
	p.Algorithm = "adapt"
	floor := cmp.Or(p.Options.Floor, p.Before)
	var leaving []int
	for _, h := range v.leastEfficient() {
		if len(leaving) >= p.Options.Consolidate || ctx.Err() != nil {
			break
		}
		name := v.States.Host(v.hosts[h].place).Name
		if why := v.rooted(h); why != "" {
			p.Kept = append(p.Kept, Stay{Host: name, Reason: why})
			continue
		}
		done, why, err := v.empty(ctx, append(slices.Clip(leaving), h), floor, p.Options)
		if err != nil {
			return err
		}
		if why != "" {
			p.Kept = append(p.Kept, Stay{Host: name, Reason: why})
			continue
		}
		leaving = append(leaving, h)
		p.Emptied = append(p.Emptied, name)
		p.Moves, p.After = done.moves, yieldOf(slices.Max(done.loads))
	}
	if len(leaving) == 0 {
		p.Reasons = append(p.Reasons, "no host can become empty")
	}
	return nil
}

// leastEfficient returns the indexes of the hosts with instances, the least efficient first.
func (v *view) leastEfficient() []int {
	var order []int
	for h := range v.hosts {
		if v.hosts[h].anybody {
			order = append(order, h)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v.hosts[b].rank, v.hosts[a].rank) })
	return order
}

// rooted returns the reason why host h must not or cannot become empty, regardless of the room on
// other hosts; "" if it can.
func (v *view) rooted(h int) string {
	n := v.hosts[h]
	switch {
	case n.promised:
		return "it is reserved"
	case n.rooted == 1:
		return "one of its instances cannot be moved"
	case n.rooted > 1:
		return fmt.Sprintf("%d of its instances cannot be moved", n.rooted)
	}
	return ""
}

// empty packs the instances of the leaving hosts onto the other hosts. If that fails, why is the
// reason.
func (v *view) empty(ctx context.Context, leaving []int, floor float64, o Options) (done ordered, why string, err error) {
	problem, hosts := v.without(leaving)
	if len(hosts) == 0 {
		return done, "there is no other host with instances that stays", nil
	}
	number, cost := 0, 0.0
	for i := range problem.Jobs {
		if problem.Current[i] == nil {
			number, cost = number+1, cost+problem.Jobs[i].Memory
		}
	}
	if o.Migrations > 0 && number > o.Migrations || o.MemoryMB > 0 && cost > float64(o.MemoryMB) {
		return done, "the budget is too small for its instances", nil
	}
	algorithm := packing.Adapt{}.Place
	found, err := algorithm(ctx, problem)
	if _, infeasible := errors.AsType[*packing.Infeasible](err); infeasible {
		return done, "there is no room for its instances on other hosts that have some", nil
	} else if err != nil {
		return done, "", fmt.Errorf("plan migrations: %w", err)
	}
	at := make([]int, len(v.jobs))
	for i := range at {
		at[i] = hosts[found[i][0]]
	}
	done = v.order(at, o, func(j int) int { return slices.Index(leaving, v.jobs[j].host) })
	switch after := yieldOf(slices.Max(done.loads)); {
	case len(done.dropped) > 0:
		return done, done.dropped[0].why, nil
	case after < floor-slack:
		return done, fmt.Sprintf("the smallest yield would fall to %.4g, below %.4g", after, floor), nil
	}
	return done, "", nil
}

// without returns the problem without the leaving and the empty hosts, and the indexes of the
// remaining hosts in the view. In this problem the jobs of the leaving hosts have no current host,
// and the other jobs cannot move.
func (v *view) without(leaving []int) (p *packing.Problem, hosts []int) {
	whole := v.problem()
	p = &packing.Problem{Jobs: whole.Jobs, Price: make([]float64, len(v.jobs)), Current: make(packing.Placement, len(v.jobs))}
	number := make([]int, len(v.hosts))
	for h, n := range v.hosts {
		if number[h] = -1; n.anybody && !slices.Contains(leaving, h) {
			number[h] = len(hosts)
			hosts = append(hosts, h)
			p.Hosts = append(p.Hosts, whole.Hosts[h])
		}
	}
	for i := range v.jobs {
		if p.Price[i] = 1; number[v.jobs[i].host] >= 0 {
			p.Current[i] = []int{number[v.jobs[i].host]}
		}
	}
	p.May = func(j, host int) bool { return v.may(j, hosts[host]) }
	return p, hosts
}
