// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// pools reads the pools of networks.
func (d *decider) pools(ctx context.Context, networks map[string]bool) (map[string]address.Pool, error) {
	if d.options.Addresses == nil || len(networks) == 0 {
		return nil, nil
	}
	pools := make(map[string]address.Pool, len(networks))
	for _, network := range slices.Sorted(maps.Keys(networks)) {
		pool, err := d.options.Addresses.Pool(ctx, network)
		if err != nil {
			return nil, fmt.Errorf("read the floating IPs of network %s: %w", network, err)
		}
		pools[network] = pool
	}
	return pools, nil
}

// addPools adds the versions of the pools on which the attempts were decided. It fails with ErrStale
// if they were decided on different versions of the same pool.
func (c *Commit) addPools(attempts []*attempt) error {
	for _, a := range attempts {
		for _, pool := range a.pools {
			i, there := slices.BinarySearchFunc(c.Hosts, pool, func(a, b HostVersion) int { return cmp.Compare(a.Host, b.Host) })
			switch {
			case !there:
				c.Hosts = slices.Insert(c.Hosts, i, pool)
			case c.Hosts[i] != pool:
				return reservation.ErrStale
			}
		}
	}
	return nil
}

// versionsOf returns the version of the pool on which a change was decided that claims addresses, or
// claims them at other times.
func (v *view) versionsOf(before, next *reservation.Reservation) []HostVersion {
	pool, there := v.Pools[planning.NetworkOf(next)]
	if !there || !next.Status.Live() || before.Span == next.Span && slices.Equal(before.Addresses, next.Addresses) {
		return nil
	}
	return []HostVersion{{address.VersionKey(pool.Network), pool.Version}}
}
