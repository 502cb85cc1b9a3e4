// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// read makes the next reading. It reads everything if the last full reading is too old or the last
// reading is doubtful; otherwise it reads what has changed since the last reading.
//
// An instance has one host at each moment and is identified by its id: whatever the order of the
// reads, it is never on two hosts, and an instance that moves is not lost.
func (s *Source) read(ctx context.Context, last *cloud, now span.Instant) (*cloud, error) {
	next := &cloud{at: now, full: last.full, release: last.release}
	full := now >= last.full.Add(s.options.FullEvery) || last.doubtful()
	if full {
		next.full = now
	}
	providers, err := s.readLists(ctx, next, last, full, now)
	if err != nil {
		return nil, err
	}
	next.touch(last, now)
	s.readRecords(ctx, next, last)
	next.nodes = nodesOf(next.services, providers)
	if next.hypervisors = last.hypervisors; full || !slices.Equal(next.nodes, last.nodes) || !covers(next.hypervisors, next.services) {
		if next.hypervisors, err = s.compute.Hypervisors(ctx); err != nil {
			return nil, err
		}
	}
	next.providers = ofHosts(providers, next.hypervisors)
	next.touchAllocated(last, now)
	next.preemptible = next.withPreemptible(s.options.Preemptible)
	if err = s.readShared(ctx, next, last, providers, full); err != nil {
		return nil, err
	}
	if next.holdings, err = s.readHoldings(ctx, next, last, full); err != nil {
		return nil, err
	}
	return next, nil
}

// readLists reads what is a single list each, and returns all providers.
func (s *Source) readLists(ctx context.Context, next, last *cloud, full bool, now span.Instant) (providers []placement.Provider, err error) {
	reads, ctx := errgroup.WithContext(ctx)
	reads.Go(func() (err error) { next.services, err = s.compute.Services(ctx); return err })
	reads.Go(func() (err error) { next.aggregates, err = s.compute.Aggregates(ctx); return err })
	reads.Go(func() (err error) { providers, err = s.placement.Providers(ctx); return err })
	if full {
		reads.Go(func() (err error) { next.release, err = s.compute.Release(ctx); return err })
	}
	reads.Go(func() error { return s.readServers(ctx, next, last, full, now) })
	return providers, reads.Wait()
}

// readRecords reads what was stored about the servers. It runs after the servers were read,
// since instances are stored before they are on a host. After an error the previous entries
// stay: an instance without an entry is not evicted.
func (s *Source) readRecords(ctx context.Context, next, last *cloud) {
	if s.options.Records == nil {
		return
	}
	records, err := s.options.Records.InstanceRecords(ctx)
	if err != nil {
		records, next.notes = last.records, append(next.notes, fmt.Sprintf("keeping the previous entries about instances: %v", err))
	}
	next.records = records
}

// readServers reads the servers of next.
func (s *Source) readServers(ctx context.Context, next, last *cloud, full bool, now span.Instant) error {
	// Without known servers, the deleted ones need not be listed.
	if full || len(last.servers) == 0 {
		listed, err := s.compute.Servers(ctx, nova.ServerQuery{})
		next.replaceServers(listed)
		return err
	}
	changes, err := s.compute.Servers(ctx, nova.ServerQuery{ChangedSince: last.since(now)})
	next.applyChanges(last, changes)
	return err
}

// covers reports whether each service's host is among the hypervisors. Nova omits hosts that
// are not mapped to a cell yet, and those whose service it does not find at the moment; no
// other list reveals when they appear.
func covers(hypervisors []nova.Hypervisor, services []nova.Service) bool {
	hosts := make(map[string]bool, len(hypervisors))
	for _, h := range hypervisors {
		hosts[h.Host] = true
	}
	return !slices.ContainsFunc(services, func(s nova.Service) bool { return !hosts[s.Host] })
}
