// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/placement"
)

// sharing is the trait of a provider that shares its inventory with all providers in its
// aggregates (placement/objects/research_context.py get_sharing_providers).
const sharing = "MISC_SHARES_VIA_AGGREGATE"

// readShared reads into next.others the providers outside the hosts' trees, such as shared storage,
// and into next.shared the resource classes that these share, by the provider that has the use of
// them. Without a live state it reads nothing. It reads next.shared again in a full reading, since
// a host that joins the aggregate of a sharing provider does not change that provider; otherwise
// only if one of the providers has changed since last.
func (s *Source) readShared(ctx context.Context, next, last *cloud, providers []placement.Provider, full bool) error {
	if s.options.LiveState == nil {
		return nil
	}
	ofHost := make(map[string]bool, len(next.providers))
	for _, p := range next.providers {
		ofHost[p.ID] = true
	}
	others := map[string]bool{}
	for _, p := range providers {
		if !ofHost[p.ID] {
			others[p.ID] = true
			next.others = append(next.others, fmt.Sprint(p.ID, " ", p.Generation))
		}
	}
	slices.Sort(next.others)
	if !full && slices.Equal(next.others, last.others) {
		next.shared = last.shared
		return nil
	}
	if len(others) == 0 {
		return nil
	}
	sharers, err := s.placement.ProvidersWith(ctx, sharing)
	if err != nil {
		return err
	}
	next.shared = map[string][]string{}
	for _, id := range sharers {
		if !others[id] {
			continue
		}
		if err := s.readSharer(ctx, id, next.shared); err != nil {
			return err
		}
	}
	return nil
}

// readSharer finds what a sharing provider offers, such as a storage pool. It appends the names of its
// resource classes to shared, under the id of each provider in its aggregates.
func (s *Source) readSharer(ctx context.Context, id string, shared map[string][]string) error {
	inventories, err := s.placement.Inventories(ctx, id)
	if err != nil {
		return err
	}
	aggregates, err := s.placement.AggregatesOf(ctx, id)
	if err != nil {
		return err
	}
	for _, aggregate := range aggregates {
		members, err := s.placement.ProvidersIn(ctx, aggregate)
		if err != nil {
			return err
		}
		for _, member := range members {
			shared[member] = slices.AppendSeq(shared[member], maps.Keys(inventories))
		}
	}
	return nil
}
