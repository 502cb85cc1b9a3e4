// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// traits caches, for each provider, which of Almanac's traits it has. Placement increments a
// provider's generation with each change of its traits (placement/objects/resource_provider.py
// _set_traits), so unchanged providers need not be read again.
type traits struct {
	mu    sync.Mutex
	reads int
	known map[string]ownTraits // by provider
}

// ownTraits are Almanac's traits of a provider. They are at least as new as its generation.
type ownTraits struct {
	generation int64
	names      []string // sorted
}

// reloadEvery is the number of calls after which the cache is ignored: a provider that was deleted
// and created again may have the generation of the old one.
const reloadEvery = 30

// read returns Almanac's traits of each provider, and the names of all such traits that exist. The
// caller must have listed the providers before.
func (t *traits) read(ctx context.Context, from *placement.Client, providers []placement.Provider) (own map[string][]string, names []string, err error) {
	// A trait that is newer than this list is on none of the listed providers yet.
	if names, err = from.TraitNames(ctx, fence.OwnPrefix); err != nil {
		return nil, nil, err
	}
	next, changed := t.cached(providers)
	if len(changed) <= len(names) {
		err = readEach(ctx, from, changed, next)
	} else {
		next, err = readAll(ctx, from, providers, names)
	}
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = next
	own = map[string][]string{}
	for provider, has := range next {
		if len(has.names) > 0 {
			own[provider] = slices.Clone(has.names)
		}
	}
	return own, names, nil
}

// cached returns the cached traits of providers that have not changed, and the other providers.
func (t *traits) cached(providers []placement.Provider) (known map[string]ownTraits, changed []placement.Provider) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known = make(map[string]ownTraits, len(providers))
	reload := t.reads%reloadEvery == 0
	t.reads++
	for _, p := range providers {
		if has, ok := t.known[p.ID]; ok && has.generation == p.Generation && !reload {
			known[p.ID] = has
		} else {
			changed = append(changed, p)
		}
	}
	return known, changed
}

// readEach reads the traits of each of the providers into into.
func readEach(ctx context.Context, from *placement.Client, providers []placement.Provider, into map[string]ownTraits) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range providers {
		g.Go(func() error {
			all, err := from.Traits(ctx, p.ID)
			if fault.Is(err, fault.NotFound) {
				return nil // it was deleted since the list
			}
			own := slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, fence.OwnPrefix) })
			mu.Lock()
			defer mu.Unlock()
			into[p.ID] = ownTraits{p.Generation, own}
			return err
		})
	}
	return g.Wait()
}

// readAll reads the providers of each of the traits.
func readAll(ctx context.Context, from *placement.Client, providers []placement.Provider, names []string) (map[string]ownTraits, error) {
	var mu sync.Mutex
	has := map[string][]string{}
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		g.Go(func() error {
			found, err := from.ProvidersWith(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			for _, p := range found {
				has[p] = append(has[p], name)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := make(map[string]ownTraits, len(providers))
	for _, p := range providers {
		slices.Sort(has[p.ID])
		all[p.ID] = ownTraits{p.Generation, has[p.ID]}
	}
	return all, nil
}
