// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// timed is the number of instances scheduled for each bar of Figure 2, and room the number of
	// them for which a host has room. Four hosts, as in the snapshots of the paper, hold all.
	timed, room = 130, 36
	// timedAt is the instant at which the requests arrive.
	timedAt = span.Instant(1_800_000_000)
)

// medium is the size of all timed instances.
var medium = resource.Vector{VCPUs: 2, MemoryMB: 4000, DiskGB: 40}

// contender is a scheduler whose time Figure 2 shows.
type contender struct {
	name string
	plan func(s *inventory.States, r *placing.Request) scheduler.Plan
}

// The contenders, by the paper's names.
const (
	plainScheduler = "default"
	awareScheduler = "preemptible-aware"
	retryScheduler = "retry"
)

// contenders returns the service's scheduler in three forms: without preemptible instances, with
// preemptible instances in one pass, and with preemptible instances in a second pass if the first
// finds no host.
func (o Options) contenders(bookings *sim.Booking) ([]contender, error) {
	plain, err := o.pipeline(setting{}, bookings)
	if err != nil {
		return nil, err
	}
	aware, err := o.pipeline(setting{cost: "partial_hour"}, bookings)
	if err != nil {
		return nil, err
	}
	second, err := o.pipeline(setting{cost: "partial_hour"}, bookings) // its own pipeline, since each keeps what it has gathered about its hosts
	if err != nil {
		return nil, err
	}
	return []contender{
		{plainScheduler, func(s *inventory.States, r *placing.Request) scheduler.Plan { return plain.Plan(s, r, timedAt, nil) }},
		{awareScheduler, func(s *inventory.States, r *placing.Request) scheduler.Plan { return aware.Plan(s, r, timedAt, nil) }},
		{retryScheduler, func(s *inventory.States, r *placing.Request) scheduler.Plan {
			if p := plain.Plan(s, r, timedAt, nil); len(p.Picks) > 0 {
				return p
			}
			return second.Plan(s, r, timedAt, nil)
		}},
	}, nil
}

// scene is a scenario of Figure 2.
type scene struct {
	name        string
	preemptible bool // the requests are preemptible
	full        bool // the hosts are full of preemptible instances
}

var scenes = []scene{
	{"normal, empty hosts", false, false}, {"preemptible, empty hosts", true, false}, {"normal, full hosts: one has to leave", false, true},
}

// timing contains the microseconds that a contender took for each instance of a scene.
type timing struct {
	hosts            int
	contender, scene string
	mean, deviation  float64
	median           float64
}

// latency measures Figure 2 of the paper.
func (o Options) latency(ctx context.Context) (all []timing, err error) {
	for _, n := range o.LatencyHosts {
		bookings, hosts, err := o.bookings(ctx, sim.NewTimeline(sim.Second(0)), n)
		if err != nil {
			return nil, err
		}
		for _, s := range scenes {
			states, err := timedHosts(hosts, s.full)
			if err != nil {
				return nil, err
			}
			list, err := o.contenders(bookings)
			if err != nil {
				return nil, err
			}
			if s != scenes[0] {
				list = list[1:] // the paper has the default once: it does not know preemptible instances
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			measured, err := o.measure(list, s, states)
			if err != nil {
				return nil, err
			}
			all = append(all, measured...)
		}
	}
	return all, nil
}

// timedHosts returns hosts without instances or, with full, hosts that are full of preemptible
// instances.
func timedHosts(hosts []inventory.Host, full bool) (*inventory.States, error) {
	rows := make([]inventory.HostState, len(hosts))
	each := amounts(medium)
	for i := range rows {
		row := inventory.HostState{Name: hosts[i].Name, Node: hosts[i].Name, Up: true, Enabled: true, Stocks: map[string]inventory.Stock{}}
		for class, amount := range each {
			row.Stocks[class] = inventory.Stock{Total: room * amount, Ratio: 1}
		}
		for n := range room {
			if !full {
				break
			}
			for class, amount := range each {
				stock := row.Stocks[class]
				stock.Used += amount
				row.Stocks[class] = stock
			}
			row.Instances = append(row.Instances, inventory.Instance{
				ID: fmt.Sprintf("%s-%02d", row.Name, n), Status: "ACTIVE", Preemptible: true, Holds: each,
				// 10 to 300 minutes, as in the paper's section 4.4.1.
				Launched: timedAt - span.Instant(600+(i*7919+n*104729)%17400),
			})
		}
		rows[i] = row
	}
	return inventory.NewStates(rows, nil)
}

// unmeasured is the number of instances that are placed before the measurement. The scheduler fills
// its caches with the first of them.
const unmeasured = 10

// measure makes the contenders place the instances, each on its own copy of the hosts. After each
// instance the next contender continues, so that a slow moment of the machine affects all.
func (o Options) measure(list []contender, s scene, states *inventory.States) ([]timing, error) {
	took := make([][]float64, len(list))
	each := slices.Repeat([]*inventory.States{states}, len(list))
	runtime.GC() // garbage of the setup must not count for the contenders
	for n := range unmeasured + timed {
		for k, c := range list {
			request := &placing.Request{Resources: amounts(medium), Instances: []string{fmt.Sprint("new-", n)}, Preemptible: s.preemptible}
			start := o.Clock()
			plan := c.plan(each[k], request)
			lasted := o.Clock().Sub(start)
			if len(plan.Picks) == 0 || (len(plan.Picks[0].Victims.Instances) == 1) != s.full {
				return nil, fmt.Errorf("%s, %s: instance %d was not placed as it should be: %s", c.name, s.name, n, plan.Decision.Reason)
			}
			if n >= unmeasured {
				took[k] = append(took[k], float64(lasted.Nanoseconds())/1000)
			}
			each[k] = each[k].WithTaken([]inventory.Take{plan.Picks[0].Take})
		}
	}
	var all []timing
	for k, c := range list {
		one := timing{hosts: states.Len(), contender: c.name, scene: s.name}
		one.mean, one.deviation = meanAndDeviation(took[k])
		slices.Sort(took[k])
		one.median = (took[k][(timed-1)/2] + took[k][timed/2]) / 2
		all = append(all, one)
	}
	return all, nil
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / (n - 1)
	}
	return mean, math.Sqrt(deviation)
}

// latencyOrderings returns the findings on the paper's statements about Figure 2.
func latencyOrderings(times []timing) (list []sim.Finding) {
	find := func(hosts int, contender string, s scene) timing {
		return times[slices.IndexFunc(times, func(t timing) bool { return t.hosts == hosts && t.contender == contender && t.scene == s.name })]
	}
	var hosts []int
	for _, t := range times {
		if !slices.Contains(hosts, t.hosts) {
			hosts = append(hosts, t.hosts)
		}
	}
	for _, n := range hosts {
		plain, retry, aware := find(n, plainScheduler, scenes[0]), find(n, retryScheduler, scenes[0]), find(n, awareScheduler, scenes[0])
		retried, awake := find(n, retryScheduler, scenes[2]), find(n, awareScheduler, scenes[2])
		list = append(list,
			slower(fmt.Sprintf("%d hosts, nobody leaves: the preemptible-aware scheduler takes longer than the default.", n), aware, plain),
			slower(fmt.Sprintf("%d hosts, nobody leaves: the preemptible-aware scheduler takes longer than the retrying one.", n), aware, retry),
			slower(fmt.Sprintf("%d hosts, one has to leave: the retrying scheduler takes longer than the preemptible-aware one.", n), retried, awake))
	}
	return list
}

// slower returns the finding that one takes longer than other. Their means differ if 0 is outside
// the 95 % interval of the difference.
func slower(expected string, one, other timing) sim.Finding {
	const z = 1.96
	half := z * math.Hypot(one.deviation, other.deviation) / math.Sqrt(timed)
	o := judge(expected, 1, named{Estimate: sim.Estimate{Mean: one.mean - other.mean, Half: half, Runs: timed}})
	o.Seen = fmt.Sprintf("%s µs, %.2f times", strings.TrimSpace(o.Seen), ratio(one.mean, other.mean))
	return o
}
