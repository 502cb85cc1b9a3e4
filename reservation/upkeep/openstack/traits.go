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

// traits remembers which of Almanac's traits providers have. Placement counts a
// generation with each change of them (placement/objects/resource_provider.py
// _set_traits), so that those of the others need not be asked for again.
type traits struct {
	mu    sync.Mutex
	looks int
	known map[string]ownTraits // by provider
}

// ownTraits are those of Almanac's that a provider has; they are at least as new as its
// generation.
type ownTraits struct {
	generation int64
	names      []string // sorted
}

// lookAnew is after how many looks nothing is taken from memory: a provider that was
// made anew may have the generation of the one before.
const lookAnew = 30

// look gives Almanac's traits by provider, and the names of all there are. The providers
// were listed before.
func (t *traits) look(ctx context.Context, from *placement.Client, providers []placement.Provider) (own map[string][]string, names []string, err error) {
	// A trait that is younger than the list of names is on none of the providers yet.
	if names, err = from.TraitNames(ctx, fence.OwnPrefix); err != nil {
		return nil, nil, err
	}
	next, changed := t.stayed(providers)
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

// stayed gives what is known of the providers as they are now, and the other ones.
func (t *traits) stayed(providers []placement.Provider) (known map[string]ownTraits, changed []placement.Provider) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known = make(map[string]ownTraits, len(providers))
	anew := t.looks%lookAnew == 0
	t.looks++
	for _, p := range providers {
		if has, ok := t.known[p.ID]; ok && has.generation == p.Generation && !anew {
			known[p.ID] = has
		} else {
			changed = append(changed, p)
		}
	}
	return known, changed
}

// readEach asks for the traits of each of the providers and enters them.
func readEach(ctx context.Context, from *placement.Client, providers []placement.Provider, into map[string]ownTraits) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range providers {
		g.Go(func() error {
			all, err := from.Traits(ctx, p.ID)
			if fault.Is(err, fault.NotFound) {
				return nil // it has gone since they were listed
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

// readAll asks for the providers of each of the traits.
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
