// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"io"
	"maps"
	"math"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

// ScheduleQuestion asks on which hosts the instances of a request would be placed, and which
// preemptible instances would be evicted for them (paper 001).
type ScheduleQuestion struct {
	Hosts   []ScheduleHost `json:"hosts"`
	Request struct {
		Resources   *v1.Resources `json:"resources"`
		Preemptible bool          `json:"preemptible"`
		Count       *int          `json:"count"` // nil is 1
	} `json:"request"`
	// PeriodMinutes is the period that is charged as a whole; nil means an hour.
	PeriodMinutes *int64 `json:"period_minutes"`
	// Weighers are the weighers in use, with their multipliers. nil means overcommit and
	// preemption_cost with 1 each, which evict nothing while there is room.
	Weighers map[string]float64 `json:"weighers"`
	// Seed is the seed for the choice among equal hosts; nil means the first host by name.
	Seed *int64 `json:"seed"`
}

// ScheduleHost is a host and its instances.
type ScheduleHost struct {
	Name      string             `json:"name"`
	Capacity  *v1.Resources      `json:"capacity"`
	Instances []ScheduleInstance `json:"instances"`
}

// ScheduleInstance is an instance with its running time in whole minutes.
type ScheduleInstance struct {
	ID             string       `json:"id"`
	Resources      v1.Resources `json:"resources"`
	Preemptible    bool         `json:"preemptible"`
	RunningMinutes int64        `json:"running_minutes"`
}

// ScheduleAnswer contains the hosts of the instances, in order, or the reason why there is none.
// Hosts are the hosts before the first placement, in the order of the question.
type ScheduleAnswer struct {
	Placements []SchedulePlacement `json:"placements"`
	Reason     string              `json:"reason,omitempty"`
	Hosts      []ScheduleVerdict   `json:"hosts"`
}

// SchedulePlacement is the host of one instance, with the victims there and their cost.
type SchedulePlacement struct {
	Host        string   `json:"host"`
	Victims     []string `json:"victims"`
	CostMinutes int64    `json:"cost_minutes"`
}

// ScheduleVerdict is the result for one host: the filter that refused it or, for each weigher, its
// normalized weight times its multiplier, and the sum of these.
type ScheduleVerdict struct {
	Name      string             `json:"name"`
	Passed    bool               `json:"passed"`
	RefusedBy string             `json:"refused_by"`
	Weights   map[string]float64 `json:"weights"`
	Weight    float64            `json:"weight"`
}

const (
	// mostOfAny is the largest amount that Placement accepts (placement/db/constants.py MAX_INT).
	mostOfAny     = math.MaxInt32
	mostInstances = 10_000
	// today is later than the launch of any instance.
	today = span.Instant(2 * 60 * mostOfAny)
)

// rankings are the weighers with their names, in the order in which their weights are added.
var rankings = []struct {
	name string
	with func(*preemption.Evictor) weighers.Weigher
}{
	{"overcommit", func(*preemption.Evictor) weighers.Weigher { return weighers.OvercommitWeigher{} }},
	{"preemption_cost", func(e *preemption.Evictor) weighers.Weigher {
		return weighers.PreemptionCostWeigher{Evictor: e, Exactly: mostHosts}
	}},
	{"period", func(e *preemption.Evictor) weighers.Weigher { return weighers.PeriodWeigher{Cost: e.Cost} }},
	{"count", func(*preemption.Evictor) weighers.Weigher { return weighers.PreemptibleCountWeigher{} }},
	{"cpu", func(*preemption.Evictor) weighers.Weigher { return weighers.CPUWeigher{} }},
	{"ram", func(*preemption.Evictor) weighers.Weigher { return weighers.RAMWeigher{} }},
	{"disk", func(*preemption.Evictor) weighers.Weigher { return &weighers.DiskWeigher{} }},
}

// Schedule answers the question in r. chance returns, for a seed, a function that draws from 0 to
// n-1. Errors are Invalid faults that name the field; a refusal is an answer, with a nil error.
func Schedule(r io.Reader, chance func(seed int64) func(n int) int) (ScheduleAnswer, error) {
	var q ScheduleQuestion
	if err := read(r, &q); err != nil {
		return ScheduleAnswer{}, err
	}
	if err := q.check(); err != nil {
		return ScheduleAnswer{}, err
	}
	hosts, err := q.states()
	if err != nil {
		return ScheduleAnswer{}, err
	}
	pipeline, err := q.pipeline()
	if err != nil {
		return ScheduleAnswer{}, err
	}
	var draw func(n int) int
	if q.Seed != nil {
		draw = chance(*q.Seed)
	}
	plan := pipeline.Plan(hosts, q.request(), today, draw)
	return q.answer(plan), nil
}

// pipeline returns the service's pipeline with only the filter of Algorithm 2, and with weights
// that are only normalized by equation (2).
func (q *ScheduleQuestion) pipeline() (*scheduler.Pipeline, error) {
	cost, err := preemption.NewCost("partial_hour", preemption.CostOptions{Period: 60 * *q.PeriodMinutes})
	if err != nil {
		return nil, fmt.Errorf("count the costs: %w", err)
	}
	p := &scheduler.Pipeline{
		Filters: []filters.Filter{filters.Capacity{Evicts: true}}, SubsetSize: 1,
		Evictor: &preemption.Evictor{Cost: cost}, Whole: true,
	}
	for _, r := range rankings {
		if multiplier, named := q.Weighers[r.name]; named {
			p.Weighers = append(p.Weighers, weighers.Weighted{Weigher: called{r.with(p.Evictor), r.name}, Multiplier: multiplier})
		}
	}
	return p, nil
}

// request returns the request for the instances, with ids that no other instance has.
func (q *ScheduleQuestion) request() *placing.Request {
	longest := ""
	for _, h := range q.Hosts {
		for _, i := range h.Instances {
			if len(i.ID) > len(longest) {
				longest = i.ID
			}
		}
	}
	r := &placing.Request{Preemptible: q.Request.Preemptible, Resources: amounts(*q.Request.Resources)}
	for n := range *q.Request.Count {
		r.Instances = append(r.Instances, fmt.Sprintf("%s-%d", longest, n))
	}
	return r
}

// states returns the hosts in the form that the service's filters and weighers read.
func (q *ScheduleQuestion) states() (*inventory.States, error) {
	hosts := make([]inventory.HostState, len(q.Hosts))
	for i, h := range q.Hosts {
		state := inventory.HostState{Name: h.Name, Node: h.Name, Up: true, Enabled: true, Stocks: map[string]inventory.Stock{}}
		for class, amount := range amounts(*h.Capacity) {
			state.Stocks[class] = inventory.Stock{Total: amount, Ratio: 1}
		}
		for _, one := range h.Instances {
			holds := amounts(one.Resources)
			for class, amount := range holds {
				stock := state.Stocks[class]
				stock.Ratio, stock.Used = 1, stock.Used+amount
				state.Stocks[class] = stock
			}
			state.Instances = append(state.Instances, inventory.Instance{
				ID: one.ID, Name: one.ID, Host: h.Name, Status: "ACTIVE", Preemptible: one.Preemptible, Holds: holds,
				Launched: today.Add(-60 * one.RunningMinutes),
			})
		}
		hosts[i] = state
	}
	return inventory.NewStates(hosts, nil)
}

// amounts returns resources by Placement's resource class, without zero amounts.
func amounts(r v1.Resources) map[string]int64 {
	all := map[string]int64{"VCPU": r.VCPUs, "MEMORY_MB": r.MemoryMB, "DISK_GB": r.DiskGB}
	maps.Copy(all, r.Custom)
	maps.DeleteFunc(all, func(_ string, amount int64) bool { return amount == 0 })
	return all
}

// answer returns the plan as the answer to the question: the placements, and for each host its weights
// or the filter that refused it.
func (q *ScheduleQuestion) answer(plan scheduler.Plan) ScheduleAnswer {
	a := ScheduleAnswer{Placements: []SchedulePlacement{}, Reason: plan.Decision.Reason}
	for i, p := range plan.Decision.Placements {
		placed := SchedulePlacement{Host: p.Host, Victims: []string{}, CostMinutes: plan.Picks[i].Victims.Cost / 60}
		for _, v := range p.Victims {
			placed.Victims = append(placed.Victims, v.ID)
		}
		a.Placements = append(a.Placements, placed)
	}
	refusedBy, ranked := map[string]string{}, map[string]placing.RankedHost{}
	for _, r := range plan.Decision.Refused {
		refusedBy[r.Host] = r.Filter
	}
	for _, r := range plan.Decision.Ranked {
		ranked[r.Host] = r
	}
	for _, h := range q.Hosts {
		verdict := ScheduleVerdict{Name: h.Name, RefusedBy: refusedBy[h.Name], Weights: map[string]float64{}}
		if verdict.Passed = verdict.RefusedBy == ""; verdict.Passed {
			verdict.Weight = ranked[h.Name].Weight
			for name := range q.Weighers { // a zero weight has no part
				verdict.Weights[name] = ranked[h.Name].Parts[name]
			}
		}
		a.Hosts = append(a.Hosts, verdict)
	}
	return a
}

// called is a weigher with the name that questions use.
type called struct {
	weighers.Weigher
	name string
}

func (c called) Name() string { return c.name }

// names returns the names of all weighers.
func names() (list []string) {
	for _, r := range rankings {
		list = append(list, r.name)
	}
	return list
}
