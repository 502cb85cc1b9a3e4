// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// patience is how many seconds a reservation waits from its claim on for a host that is not free,
// before it moves to another host. For a sleeping host, its boot time is added.
const patience = 60

// rehome replaces the hosts that the reservation has waited for too long by others that match and have
// no foreign instances. The errors, by host, state why they are not free. It reports whether hosts
// were replaced. While the inventory is untrusted it does nothing.
func (s *Enforcer) rehome(ctx context.Context, r *reservation.Reservation, blocked map[string]error) bool {
	hosts, now := s.Snapshot(), s.Now()
	late := map[string]string{} // the reasons, by name of the host
	for host, why := range blocked {
		if now >= nextClaim(r, host, now).Add(patience+bootTime(hosts, host)) {
			late[host] = fault.Of(why).Message
		}
	}
	if s.Rehome == nil || len(late) == 0 || s.Untrusted() != "" {
		return false
	}
	crowded := s.occupiedHosts(r, hosts, now)
	after, changed, err := s.Rehome(ctx, r.ID, func(host string) (string, bool) {
		if why, is := late[host]; is {
			return "its start is blocked: " + why, true
		}
		return "it is not free", crowded[host]
	})
	switch {
	case err != nil:
		s.Log.WarnContext(ctx, "could not replace the hosts of a reservation that are not free", "reservation", r.ID, "error", err)
	case changed:
		s.Log.WarnContext(ctx, "replaced the hosts of a reservation that were not free", "reservation", r.ID, "project", r.ProjectID,
			"blocked", slices.Sorted(maps.Keys(late)), "hosts_before", r.HostNames(), "hosts", after.HostNames())
	}
	return changed
}

// bootTime returns how many seconds the host may need to wake; 0 if it is awake.
func bootTime(hosts *inventory.Snapshot, host string) int64 {
	i, there := hosts.Index(host)
	if !there {
		return 0
	}
	h := hosts.Host(i)
	if h.Power != inventory.PowerSleeping && h.Power != inventory.PowerWaking {
		return 0
	}
	return h.BootSeconds + h.WakeDelay
}

// occupiedHosts returns the hosts, except those of the reservation, with foreign instances that do
// not make room at once: they would block a start too.
func (s *Enforcer) occupiedHosts(r *reservation.Reservation, hosts *inventory.Snapshot, now span.Instant) map[string]bool {
	live := s.Promises.Live(span.Always)
	goes := s.Rules.Preemptible == OrderDelete || s.Rules.Preemptible == OrderShelve
	own, crowded := r.HostNames(), map[string]bool{}
	for _, h := range hosts.Hosts() {
		switch {
		case h.InstanceCount == 0 && len(h.Instances) == 0, slices.Contains(own, h.Name):
		case h.Instances == nil:
			crowded[h.Name] = true
		default:
			crowded[h.Name] = slices.ContainsFunc(foreignInstances(r, h.Name, h.Instances, live, now),
				func(g inventory.Instance) bool { return !goes || !yields(&g) })
		}
	}
	return crowded
}
