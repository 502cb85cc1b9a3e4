// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/pkg/placement"
)

// staleness states which parts of a holding must be read again.
type staleness struct {
	provider  placement.Provider
	all       bool // otherwise its usages only
	consumers bool // the allocations of each consumer, not only their sum
}

// stale returns the providers of next whose holding is unknown or out of date. A new generation
// shows that, with two exceptions. Deleted allocations do not change the generation: therefore
// hosts whose servers or allocations have changed lately are read too, and in a full reading all hosts. The generation
// does not show which instances are preemptible either.
func stale(next *cloud, known map[string]holding, full bool) []staleness {
	hosts := next.hostsByProvider()
	var list []staleness
	for _, p := range next.providers {
		h, ok := known[p.ID]
		_, touched := next.touched[hosts[p.Root]]
		consumers := next.preemptible[p.Root]
		switch {
		case !ok || h.generation != p.Generation:
			list = append(list, staleness{p, true, consumers})
		case full || touched || consumers && h.consumers == nil:
			list = append(list, staleness{p, false, consumers})
		}
	}
	return list
}

// worthSummaries reports whether one call about all providers is cheaper than reading this many
// stale ones. It costs Placement about as much as a sixteenth of them.
func worthSummaries(stale, all int) bool { return stale > 0 && stale*16 >= all }

// readHoldings returns the holdings of the providers, and reads the stale ones again.
func (s *Source) readHoldings(ctx context.Context, next, last *cloud, full bool) (map[string]holding, error) {
	readings := stale(next, last.holdings, full)
	holdings := make(map[string]holding, len(next.providers))
	for _, p := range next.providers {
		holdings[p.ID] = last.holdings[p.ID]
	}
	var summaries map[string]placement.Summary
	if worthSummaries(len(readings), len(next.providers)) {
		var err error
		if summaries, err = s.placement.Summaries(ctx, len(next.nodes)); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(readsAtOnce)
	for _, one := range readings {
		old := last.holdings[one.provider.ID]
		reads.Go(func() error {
			var summary *placement.Summary
			if found, ok := summaries[one.provider.ID]; ok {
				summary = &found
			}
			h, err := s.readHolding(ctx, one, old, summary, full)
			mu.Lock()
			defer mu.Unlock()
			holdings[one.provider.ID] = h
			return err
		})
	}
	return holdings, reads.Wait()
}

// readsAtOnce is the largest number of concurrent reads of providers.
const readsAtOnce = 8

// readHolding reads what is stale of a holding and not in its summary, which may be nil. Its
// generation was read before all of it: if the provider changes in between, the next reading
// finds a new generation.
func (s *Source) readHolding(ctx context.Context, one staleness, h holding, summary *placement.Summary, full bool) (holding, error) {
	id, generation := one.provider.ID, one.provider.Generation
	h.generation = generation
	var err error
	switch {
	case summary != nil:
		h.traits = summary.Traits
	case one.all:
		if h.traits, err = s.placement.Traits(ctx, id); err != nil {
			return h, err
		}
	}
	switch {
	case one.consumers && summary != nil && !one.all && h.consumers != nil && sameAmounts(h.used, summary.Used):
		// No allocation was added, since the generation is the same; the sum is the same, so
		// none was deleted either.
	case one.consumers:
		h.consumers, err = s.placement.Allocations(ctx, id)
		h.used = placement.Sum(h.consumers)
	case summary != nil:
		h.used, h.consumers = summary.Used, nil
	default:
		h.consumers = nil
		h.used, err = s.placement.Usages(ctx, id)
	}
	if err != nil {
		return h, err
	}
	switch {
	case h.inventories == nil:
	case h.counted == generation, !full && !one.all, !full && summary != nil && agree(h.inventories, summary.Sold):
		return h, nil
	}
	h.counted = generation
	h.inventories, err = s.placement.Inventories(ctx, id)
	return h, err
}

// sameAmounts reports whether both have the same amount of each class.
func sameAmounts(a, b map[string]int64) bool {
	for class, n := range a {
		if b[class] != n {
			return false
		}
	}
	for class, n := range b {
		if a[class] != n {
			return false
		}
	}
	return true
}

// agree reports whether the capacities that Placement offers match the known inventories.
// Between full readings that is sufficient evidence that the inventories are unchanged.
func agree(known map[string]placement.Inventory, sold map[string]int64) bool {
	return len(known) == len(sold) && maps.EqualFunc(known, sold, func(i placement.Inventory, n int64) bool { return i.Sold() == n })
}
