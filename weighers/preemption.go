package weighers

import (
	"cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// OvercommitWeigher is Algorithm 3 of paper 001: -1 for a host on which others would have
// to leave, 0 for one that has room.
type OvercommitWeigher struct{}

// Name is the weigher's name.
func (OvercommitWeigher) Name() string { return "OvercommitWeigher" }

// Weigh gives 0 or -1.
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

// PreemptionCostWeigher prefers hosts on which it costs little to make room: the cost of
// the cheapest victims that are enough, 0 where there is room (paper 001, section 4.4.2,
// which its Algorithm 4 does not say: only so its tables come out).
//
// Costs are exact on the cheapest hosts; of the others it only counts that they are no
// cheaper.
type PreemptionCostWeigher struct {
	Evictor *preemption.Evictor // nil: nobody makes room
	// Exactly is on how many hosts costs are exact; 0 is 32, more than a decision tells of.
	Exactly int
}

// Name is the weigher's name.
func (PreemptionCostWeigher) Name() string { return "PreemptionCostWeigher" }

// Indifferent says that nobody makes room.
func (w PreemptionCostWeigher) Indifferent(_ *inventory.States, r *placing.Request) bool {
	return w.Evictor == nil || r.Preemptible
}

// Weigh gives minus the costs.
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

// PeriodWeigher is Algorithm 4 of paper 001 as printed: minus what it would cost to take
// all preemptible instances of a host away.
type PeriodWeigher struct {
	Cost preemption.Cost // nil: nothing
}

// Name is the weigher's name.
func (PeriodWeigher) Name() string { return "PeriodWeigher" }

// Weigh gives minus the sum of the costs.
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

// PreemptibleCountWeigher prefers hosts with few preemptible instances. On hosts that are
// full it picks others than paper 001 does (E001-2).
type PreemptibleCountWeigher struct{}

// Name is the weigher's name.
func (PreemptibleCountWeigher) Name() string { return "PreemptibleCountWeigher" }

// Weigh gives minus how many there are.
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
