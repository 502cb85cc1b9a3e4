// SPDX-License-Identifier: Apache-2.0

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
	// Spares makes the Pipeline evict as few instances as possible: hosts with room precede hosts
	// that need an eviction, whatever their weights, and a victim stays if it proves unnecessary
	// once all instances of the request are placed. Without it the plan is exactly that of paper
	// 001, one instance after the other.
	Spares bool
	// Whole makes decisions list all hosts, not only the most important ones.
	Whole bool
}

// Plan contains the hosts of the instances of a request. If there are none, only the Decision is
// set.
type Plan struct {
	// Picks contains one entry for each instance, in order.
	Picks []Pick
	// Decision explains the plan. Its fields HandledBy and Took are set by the caller.
	Decision placing.Decision
}

// Pick is the host of one instance, with alternates and victims.
type Pick struct {
	// Take is the amount that the instance uses of its host; nothing for a rebuild.
	Take inventory.Take
	// Alternates are the indices of further hosts, the best first, in the same cell and without
	// an instance of the request (nova/scheduler/manager.py _get_alternate_hosts).
	Alternates []int
	// Victims are the instances named in Take.
	Victims preemption.Victims
}
