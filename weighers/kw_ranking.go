// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Efficiencies returns the energy efficiency of hosts, in FLOPS per watt; 0 means unknown.
type Efficiencies interface {
	// Snapshot returns the hosts with their FlopsPerWatt.
	Snapshot() *inventory.Snapshot
}

// KWRankingWeigher is weigher 2 of paper 004: it prefers hosts with much computing power per
// watt. Hosts of unknown efficiency come last.
type KWRankingWeigher struct {
	Efficiencies Efficiencies

	kept atomic.Pointer[efficiencies]
}

// efficiencies are the FLOPS per watt of the hosts of states, in their order.
type efficiencies struct {
	snapshot *inventory.Snapshot
	states   *inventory.States
	values   []float64
}

func (*KWRankingWeigher) Name() string { return "KWRankingWeigher" }

// Weigh sets FLOPS per watt.
func (w *KWRankingWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	values := w.efficiencies(s).values
	for k, i := range hosts {
		raw[k] = values[i]
	}
}

// Basis returns the efficiencies: they are others with each snapshot.
func (w *KWRankingWeigher) Basis(s *inventory.States, _ *placing.Request, _ span.Instant) any {
	return w.efficiencies(s)
}

// efficiencies returns the efficiencies, computed once for each snapshot and set of hosts.
func (w *KWRankingWeigher) efficiencies(s *inventory.States) *efficiencies {
	snapshot := w.Efficiencies.Snapshot()
	if kept := w.kept.Load(); kept != nil && kept.snapshot == snapshot && s.SameHosts(kept.states) {
		return kept
	}
	values := make([]float64, s.Len())
	for i := range values {
		if place, known := snapshot.Index(s.Host(i).Name); known {
			values[i] = snapshot.Host(place).FlopsPerWatt
		}
	}
	next := &efficiencies{snapshot, s, values}
	w.kept.Store(next)
	return next
}
