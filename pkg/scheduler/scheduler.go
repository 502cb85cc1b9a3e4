// Package scheduler places instances on hosts: filters, then weighers, then a draw
// among the best, as Nova's own scheduler does (nova/scheduler/manager.py). It only
// decides; pkg/dispatch claims what it has chosen.
package scheduler

import (
	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/weighers"
)

// Pipeline is how hosts are chosen. It is safe for concurrent use.
type Pipeline struct {
	// Filters are asked in their order, of every request: each knows by itself in which it
	// has a say. That which says where the request is to go comes first, so that the others
	// explain themselves for those hosts only.
	Filters  []filters.Filter
	Weighers []weighers.Weighted
	// SubsetSize is among how many of the best one is drawn (host_subset_size).
	SubsetSize int
	// ShuffleBest puts hosts of the same highest weight in a random order
	// (shuffle_best_same_weighed_hosts). Without it the first of them is drawn, and the
	// others, which are alternates only, follow by name.
	ShuffleBest bool
	// Evictor says who makes room where a host has none; nil is that nobody does.
	Evictor *preemption.Evictor
	// Spares keeps as many as can be: hosts on which there is room go before those on which
	// somebody would have to leave, whatever they weigh, and whom the instances of one request
	// have leave for one that does not need it once they are all placed, stays. Without it the
	// plan is that of paper 001 to the letter, one instance after the other.
	Spares bool
	// Whole has decisions tell of all hosts; else of some, where there are many.
	Whole bool
}

// Plan is where the instances of a request go. It is empty but for the Decision where
// they find no place.
type Plan struct {
	// Picks has one for each instance, in their order.
	Picks []Pick
	// Decision says it in words, without what only the shell knows: HandledBy and Took.
	Decision placing.Decision
}

// Pick is where one instance goes.
type Pick struct {
	// Take takes nothing for a rebuild.
	Take inventory.Take
	// Alternates are places of further hosts, the best first, in the same cell, on which
	// no instance of the request is placed (nova/scheduler/manager.py _get_alternate_hosts).
	Alternates []int
	// Victims are those whose ids Take has.
	Victims preemption.Victims
}
