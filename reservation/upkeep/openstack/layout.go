// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// Layout returns what Almanac has in the cloud. It recognizes aggregates, traits and classes
// by their names, mirrors and adopted aggregates by their marks, and flavors by inventory.ReservationMark, since Blazar's flavors have
// similar names. A host that only Nova, and not Placement, has in the fence is left out,
// since it keeps nobody off. Hosts that are not in the snapshot have the names of their
// providers.
//
// Layout makes five requests, and one more for the fence, for each host with rooms, and for
// each host whose provider has changed since the last call. From time to time, and if many
// have changed, it makes one request for each of Almanac's traits instead of one per host.
func (c *Backend) Layout(ctx context.Context) (fence.Layout, error) {
	reader := layoutReader{cloud: c, names: map[string]string{}, rooms: map[string]map[string]int64{}}
	layout, err := reader.read(ctx)
	return layout, fault.While(err, "read Almanac's resources in OpenStack")
}

// layoutReader collects one layout.
type layoutReader struct {
	cloud *Backend
	names map[string]string // host names, by provider

	mu    sync.Mutex
	rooms map[string]map[string]int64 // by provider and class
}

func (l *layoutReader) read(ctx context.Context) (fence.Layout, error) {
	layout := fence.Layout{Traits: map[string][]string{}, Rooms: map[string]map[string]int64{}}
	var providers []placement.Provider
	var traits map[string][]string
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		layout.Aggregates, err = l.aggregates(ctx)
		return err
	})
	g.Go(func() (err error) {
		layout.Flavors, err = l.flavors(ctx)
		return err
	})
	g.Go(func() (err error) {
		layout.ClassNames, err = l.cloud.placement.ClassNames(ctx, fence.OwnPrefix)
		return err
	})
	g.Go(func() (err error) {
		if providers, err = l.cloud.placement.Providers(ctx); err != nil {
			return err
		}
		g.Go(func() error { return l.readRooms(ctx, providers) })
		traits, layout.TraitNames, err = l.cloud.traits.read(ctx, l.cloud.placement, providers)
		return err
	})
	if err := g.Wait(); err != nil {
		return layout, err
	}
	l.nameHosts(providers)
	for provider, own := range traits {
		layout.Traits[l.names[provider]] = own
	}
	for provider, rooms := range l.rooms {
		layout.Rooms[l.names[provider]] = rooms
	}
	return layout, nil
}

func (l *layoutReader) nameHosts(providers []placement.Provider) {
	for _, p := range providers {
		l.names[p.ID] = p.Name
	}
	hosts := l.cloud.hosts()
	for i := range hosts.Len() {
		if h := hosts.Host(i); h.Provider != "" {
			l.names[h.Provider] = h.Name
		}
	}
}

func (l *layoutReader) aggregates(ctx context.Context) (map[string]inventory.Aggregate, error) {
	all, err := l.cloud.compute.Aggregates(ctx)
	if err != nil {
		return nil, err
	}
	own := map[string]inventory.Aggregate{}
	for _, a := range all {
		if a.Name != fence.Aggregate && !strings.HasPrefix(a.Name, fence.AggregatePrefix) && !fence.IsMirror(a) && !fence.IsAdopted(a) {
			continue
		}
		if a.Name == fence.Aggregate {
			if a.Hosts, err = l.effective(ctx, a); err != nil {
				return nil, err
			}
		}
		own[a.Name] = a
	}
	return own, nil
}

// effective returns the hosts of an aggregate that are in it in Placement too.
func (l *layoutReader) effective(ctx context.Context, a inventory.Aggregate) ([]string, error) {
	providers, err := l.cloud.placement.ProvidersIn(ctx, a.UUID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(a.Hosts, func(name string) bool {
		h, there := l.cloud.host(name)
		return there && h.Provider != "" && !slices.Contains(providers, h.Provider)
	}), nil
}

func (l *layoutReader) flavors(ctx context.Context) (map[string]inventory.Flavor, error) {
	all, err := l.cloud.compute.Flavors(ctx)
	if err != nil {
		return nil, err
	}
	own := map[string]inventory.Flavor{}
	for _, f := range all {
		if _, marked := f.ExtraSpecs[inventory.ReservationMark]; marked || unfinished(f) {
			own[f.ID] = f
		}
	}
	return own, nil
}

// unfinished reports whether the flavor was created by Almanac but has no extra specs yet: Nova
// requires a second request for these. Blazar's flavors have some
// (blazar/plugins/instances/instance_plugin.py).
func unfinished(f inventory.Flavor) bool {
	name, ours := strings.CutPrefix(f.Name, fence.FlavorPrefix)
	id, shape, shaped := strings.Cut(name, ":")
	if !ours || id == "" || len(f.ExtraSpecs) > 0 || f.Public {
		return false
	}
	return f.ID == id || shaped && shape != "" && strings.HasPrefix(f.ID, id+"-")
}

// readRooms sets rooms from the child providers that Almanac has created below the providers of the
// hosts. A child's inventory of a resource class of Almanac is the number of instances of a
// reservation that the host takes.
func (l *layoutReader) readRooms(ctx context.Context, all []placement.Provider) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range all {
		if p.Parent == "" || !strings.HasPrefix(p.Name, fence.ProviderPrefix) {
			continue
		}
		g.Go(func() error {
			inventories, err := l.cloud.placement.Inventories(ctx, p.ID)
			l.mu.Lock()
			defer l.mu.Unlock()
			if len(inventories) > 0 {
				l.rooms[p.Parent] = map[string]int64{}
			}
			for class, i := range inventories {
				l.rooms[p.Parent][class] = i.Total
			}
			return err
		})
	}
	return g.Wait()
}
