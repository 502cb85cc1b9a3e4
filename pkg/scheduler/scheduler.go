// Package scheduler places instances on hosts: filters, then weighers, then a draw among the
// best, like nova-scheduler (nova/scheduler/manager.py). It only decides; pkg/dispatch claims
// the hosts.
package scheduler

import (
	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/weighers"
)

// Pipeline configures how hosts are chosen. It is safe for concurrent use.
type Pipeline struct {
	// Filters run in order, for every request: each decides which requests it applies to. The
	// filter for the requested destination comes first, so that the others explain only those
	// hosts.
	Filters  []filters.Filter
	Weighers []weighers.Weighted
	// SubsetSize is the number of best hosts among which one is drawn (host_subset_size).
	SubsetSize int
	// ShuffleBest puts hosts with the same highest weight in a random order
	// (shuffle_best_same_weighed_hosts). Without it, only the first is drawn; the others, which
	// are just alternates, follow by name.
	ShuffleBest bool
	// Evictor chooses victims on a host without room; nil means that there are no evictions.
	Evictor *preemption.Evictor
	// Spares evicts as few instances as possible: hosts with room precede hosts that need an
	// eviction, whatever they weigh, and a victim stays if it turns out not to be needed once
	// all instances of the request are placed. Without it the plan is exactly that of paper
	// 001, one instance after the other.
	Spares bool
	// Whole makes decisions list all hosts instead of the most important ones.
	Whole bool
}

// Plan is where the instances of a request go. If they find no hosts, only the Decision is set.
type Plan struct {
	// Picks has one entry for each instance, in order.
	Picks []Pick
	// Decision explains the plan, without the fields that only the shell knows: HandledBy and Took.
	Decision placing.Decision
}

// Pick is where one instance goes.
type Pick struct {
	// Take uses no resources for a rebuild.
	Take inventory.Take
	// Alternates are the indices of further hosts, the best first, in the same cell and without
	// an instance of the request (nova/scheduler/manager.py _get_alternate_hosts).
	Alternates []int
	// Victims are the instances named in Take.
	Victims preemption.Victims
}
