// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// OvercommitWeigher is Algorithm 3 of paper 001: -1 for a host without room, which needs an
// eviction, 0 for one with room.
type OvercommitWeigher struct{}

func (OvercommitWeigher) Name() string { return "OvercommitWeigher" }

// Weigh sets 0 or -1.
func (OvercommitWeigher) Weigh(s *inventory.States, r *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	clear(raw)
	for class, amount := range r.Resources {
		c := s.Column(class)
		for k, i := range hosts {
			if amount > c.Limit[i]-c.Used[i] {
				raw[k] = -1
			}
		}
	}
}

// PreemptionCostWeigher prefers hosts that need cheap evictions: the weight is the negated cost of
// the cheapest sufficient victims, 0 if there is room without victims (paper 001, section 4.4.2;
// its Algorithm 4 differs, but does not produce the paper's tables, see erratum E001-1).
//
// The costs of the cheapest hosts are exact; the costs of the others are lower bounds.
type PreemptionCostWeigher struct {
	Evictor *preemption.Evictor // nil: no evictions
	// Exactly is the number of hosts with exact costs; 0 means 32, which is more than a decision
	// lists.
	Exactly int
}

func (PreemptionCostWeigher) Name() string { return "PreemptionCostWeigher" }

// Indifferent reports whether the request evicts nobody.
func (w PreemptionCostWeigher) Indifferent(_ *inventory.States, r *placing.Request) bool {
	return w.Evictor == nil || r.Preemptible
}

// Basis returns nil: for which hosts the costs are exact depends on all of them.
func (PreemptionCostWeigher) Basis(*inventory.States, *placing.Request, span.Instant) any { return nil }

// Weigh sets the negated costs.
func (w PreemptionCostWeigher) Weigh(s *inventory.States, r *placing.Request, now span.Instant, hosts []int, raw []float64) {
	if w.Indifferent(s, r) {
		clear(raw)
		return
	}
	costs := make([]int64, len(hosts))
	w.Evictor.Costs(s, hosts, r.Resources, now, cmp.Or(w.Exactly, 32), costs)
	for k, cost := range costs {
		raw[k] = -float64(cost)
	}
}

// PeriodWeigher is Algorithm 4 of paper 001 as printed: the negated cost of evicting all
// preemptible instances of a host.
type PeriodWeigher struct {
	Cost preemption.Cost // nil: 0
}

func (PeriodWeigher) Name() string { return "PeriodWeigher" }

// Weigh sets the negated sum of the costs.
func (w PeriodWeigher) Weigh(s *inventory.States, _ *placing.Request, now span.Instant, hosts []int, raw []float64) {
	for k, i := range hosts {
		raw[k] = 0
		here := s.InstancesOn(i)
		for n := range here {
			if here[n].Preemptible && w.Cost != nil {
				raw[k] -= float64(w.Cost.Of(&here[n], now))
			}
		}
	}
}

// PreemptibleCountWeigher prefers hosts with few preemptible instances. On full hosts it may choose
// another host than paper 001 (erratum E001-2).
type PreemptibleCountWeigher struct{}

func (PreemptibleCountWeigher) Name() string { return "PreemptibleCountWeigher" }

// Weigh sets the negated number of preemptible instances.
func (PreemptibleCountWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	for k, i := range hosts {
		raw[k] = 0
		here := s.InstancesOn(i)
		for n := range here {
			if here[n].Preemptible {
				raw[k]--
			}
		}
	}
}
