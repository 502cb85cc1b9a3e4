package openstack

import (
	"context"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/pkg/placement"
)

// staleness is which parts of a holding have to be read again.
type staleness struct {
	provider  placement.Provider
	all       bool // else its usages only
	consumers bool // the usages of each of its consumers, and not only their sum
}

// stale gives the providers of next whose holding is not known, or not as it is now.
// The generation tells it, except where allocations are only taken away: Placement
// counts no generation then, so that hosts whose servers have changed are looked at
// too, and in a full reading all of them. It tells nothing of which instances are
// preemptible either.
func stale(next *cloud, known map[string]holding, full bool) []staleness {
	hosts := make(map[string]string, len(next.hypervisors))
	for _, h := range next.hypervisors {
		hosts[h.ID] = h.Host
	}
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

// worthSummaries says whether so many stale providers of all are read better by one
// call about all of them, which costs Placement about as much as these few.
func worthSummaries(stale, all int) bool { return stale > 0 && stale*16 >= all }

// readHoldings gives the holdings of the providers: those that are stale read anew.
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

// readsAtOnce is how many providers are read at the same time.
const readsAtOnce = 8

// readHolding reads what is stale of a holding, as far as its summary, which may be
// nil, does not tell it. Its generation was read before all of it: where the provider
// changes meanwhile, the next reading finds another one.
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
		// None came, or the generation would be another one, so that none has gone.
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

// sameAmounts says whether both are as much of each class.
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

// agree says whether what Placement sells is what the inventories known of it give.
// In between full readings that is sign enough that they have not changed.
func agree(known map[string]placement.Inventory, sold map[string]int64) bool {
	return len(known) == len(sold) && maps.EqualFunc(known, sold, func(i placement.Inventory, n int64) bool { return i.Sold() == n })
}
