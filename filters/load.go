package filters

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// IOOps refuses hosts on which there is as much heavy work of instances as may be
// (nova/scheduler/filters/io_ops_filter.py IoOpsFilter).
type IOOps struct {
	Most int64 // max_io_ops_per_host
}

// Name is the filter's name.
func (IOOps) Name() string { return "IoOpsFilter" }

// For prepares the filter.
func (f IOOps) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if unasked(r) {
		return nil
	}
	return load{s: s, what: "heavy operations", on: s.IOOps(), most: f.Most}
}

// AggregateIOOps is IOOps with a limit that the metadata max_io_ops_per_host of a host's
// aggregates may set (AggregateIoOpsFilter).
type AggregateIOOps struct {
	Most int64 // of hosts whose aggregates set none

	limits kept[[]int64]
}

// Name is the filter's name.
func (*AggregateIOOps) Name() string { return "AggregateIoOpsFilter" }

// For prepares the filter.
func (f *AggregateIOOps) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if unasked(r) {
		return nil
	}
	limits := f.limits.get(s, func(s *inventory.States) []int64 { return limitsOf(s, "max_io_ops_per_host", f.Most) })
	return load{s: s, what: "heavy operations", on: s.IOOps(), limits: limits}
}

// NumInstances refuses hosts on which there are as many instances as may be
// (nova/scheduler/filters/num_instances_filter.py NumInstancesFilter).
type NumInstances struct {
	Most int64 // max_instances_per_host
}

// Name is the filter's name.
func (NumInstances) Name() string { return "NumInstancesFilter" }

// For prepares the filter.
func (f NumInstances) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if unasked(r) {
		return nil
	}
	return load{s: s, what: "instances", most: f.Most}
}

// AggregateNumInstances is NumInstances with a limit that the metadata
// max_instances_per_host of a host's aggregates may set (AggregateNumInstancesFilter).
type AggregateNumInstances struct {
	Most int64 // of hosts whose aggregates set none

	limits kept[[]int64]
}

// Name is the filter's name.
func (*AggregateNumInstances) Name() string { return "AggregateNumInstancesFilter" }

// For prepares the filter.
func (f *AggregateNumInstances) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if unasked(r) {
		return nil
	}
	limits := f.limits.get(s, func(s *inventory.States) []int64 { return limitsOf(s, "max_instances_per_host", f.Most) })
	return load{s: s, what: "instances", limits: limits}
}

// load refuses hosts on which something is not below a limit.
type load struct {
	s      *inventory.States
	what   string
	on     []int64 // by host; nil are the instances
	most   int64
	limits []int64 // by host; nil where most is that of all
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

func (l load) Keep(hosts hostset.Set) {
	for i := range hosts.All() {
		if l.of(i) >= l.limit(i) {
			hosts.Remove(i)
		}
	}
}

func (l load) Why(i int) string {
	return fmt.Sprintf("%d %s are on the host, and fewer than %d have to be", l.of(i), l.what, l.limit(i))
}

// limitsOf gives the limit of each host: the least that its aggregates have under a key.
// Where they have none, or one of theirs is no whole number, it is preset
// (nova/scheduler/filters/utils.py validate_num_values).
func limitsOf(s *inventory.States, key string, preset int64) []int64 {
	limits := make([]int64, s.Len())
	for i := range limits {
		limits[i] = limitOf(s, i, key, preset)
	}
	return limits
}

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
