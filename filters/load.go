// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Load refuses hosts on which a count has reached its limit.
type Load struct {
	name, what string
	on         func(*inventory.States) []int64 // by host; nil counts instances
	most       int64                           // for hosts whose aggregates set no limit
	key        string                          // metadata key with which aggregates set a limit; empty: they cannot

	limits cached[[]int64]
}

// IOOps is IoOpsFilter, for the heavy operations of instances; most is max_io_ops_per_host
// (nova/scheduler/filters/io_ops_filter.py).
func IOOps(most int64) *Load {
	return &Load{name: "IoOpsFilter", what: "heavy operations", on: (*inventory.States).IOOps, most: most}
}

// AggregateIOOps is AggregateIoOpsFilter: IOOps with the limit in the metadata
// max_io_ops_per_host of a host's aggregates.
func AggregateIOOps(most int64) *Load {
	f := IOOps(most)
	f.name, f.key = "AggregateIoOpsFilter", "max_io_ops_per_host"
	return f
}

// NumInstances is NumInstancesFilter; most is max_instances_per_host
// (nova/scheduler/filters/num_instances_filter.py).
func NumInstances(most int64) *Load {
	return &Load{name: "NumInstancesFilter", what: "instances", most: most}
}

// AggregateNumInstances is AggregateNumInstancesFilter: NumInstances with the limit in the
// metadata max_instances_per_host of a host's aggregates.
func AggregateNumInstances(most int64) *Load {
	f := NumInstances(most)
	f.name, f.key = "AggregateNumInstancesFilter", "max_instances_per_host"
	return f
}

func (f *Load) Name() string { return f.name }

// For implements Filter. A host passes as long as its load is below its limit.
func (f *Load) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) {
		return nil
	}
	l := load{s: s, what: f.what, most: f.most}
	if f.on != nil {
		l.on = f.on(s)
	}
	if f.key != "" {
		l.limits = f.limits.get(s, func(s *inventory.States) []int64 { return limitsOf(s, f.key, f.most) })
	}
	return l
}

// load refuses hosts on which a count is not below the limit.
type load struct {
	s      *inventory.States
	what   string
	on     []int64 // by host; nil counts instances
	most   int64
	limits []int64 // by host; nil if most applies to all
}

func (l load) of(i int) int64 {
	if l.on == nil {
		return int64(len(l.s.InstancesOn(i)))
	}
	return l.on[i]
}

func (l load) limit(i int) int64 {
	if l.limits == nil {
		return l.most
	}
	return l.limits[i]
}

// Keep implements Test.
func (l load) Keep(hosts hostset.Set) {
	for i := range hosts.All() {
		if l.of(i) >= l.limit(i) {
			hosts.Remove(i)
		}
	}
}

func (l load) Why(i int) string {
	return fmt.Sprintf("the host has %d %s, and the limit is %d", l.of(i), l.what, l.limit(i))
}

// limitsOf returns the limit of each host: the least that its aggregates set under a key, or
// preset if they set none or a value that is not an integer (nova/scheduler/filters/utils.py
// validate_num_values).
func limitsOf(s *inventory.States, key string, preset int64) []int64 {
	limits := make([]int64, s.Len())
	for i := range limits {
		limits[i] = limitOf(s, i, key, preset)
	}
	return limits
}

// limitOf returns the least limit that the metadata of the host's aggregates set; preset if none does,
// or if one is no number.
func limitOf(s *inventory.States, i int, key string, preset int64) int64 {
	least, set := preset, false
	for a := range s.AggregatesOf(i) {
		value, has := a.Metadata[key]
		if !has {
			continue
		}
		limit, err := integer(value)
		if err != nil {
			return preset
		}
		if !set || limit < least {
			least, set = limit, true
		}
	}
	return least
}
