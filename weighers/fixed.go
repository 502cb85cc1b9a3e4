package weighers

import (
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// fact is a number of a host that no placement changes, such as a version.
type fact interface {
	of(h *inventory.HostState) float64
}

// fixed is a weigher for a fact, which it computes once for each set of hosts.
type fixed[F fact] struct{ kept atomic.Pointer[numbers] }

// numbers are the values of the hosts of states, by host; a single one if they are all equal.
type numbers struct {
	states *inventory.States
	values []float64
}

func (f *fixed[F]) get(s *inventory.States) []float64 {
	if kept := f.kept.Load(); kept != nil && s.SameHosts(kept.states) {
		return kept.values
	}
	var number F
	values, differ := make([]float64, s.Len()), false
	for i := range values {
		values[i] = number.of(s.Host(i))
		differ = differ || values[i] != values[0]
	}
	if !differ {
		values = values[:min(1, len(values))]
	}
	f.kept.Store(&numbers{s, values})
	return values
}

// Indifferent reports whether all hosts have the same value.
func (f *fixed[F]) Indifferent(s *inventory.States, _ *placing.Request) bool {
	return len(f.get(s)) < 2
}

// Weigh sets the values.
func (f *fixed[F]) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	values := f.get(s)
	if len(values) == 1 {
		for k := range raw {
			raw[k] = values[0]
		}
		return
	}
	for k, i := range hosts {
		raw[k] = values[i]
	}
}
