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

// startPatience is for how many seconds a start waits for a host that is not free before
// the reservation moves to another one. A host that sleeps has its boot time beside that.
const startPatience = 60

// rehome moves a reservation whose start is late off the hosts on which it is blocked, to
// others that match and are free of strangers. It reports whether that happened; in doubt
// it does not.
func (s *Steward) rehome(ctx context.Context, r *reservation.Reservation, blocked map[string]error) bool {
	hosts, now := s.Snapshot(), s.Now()
	late := map[string]string{} // why, by host
	for host, why := range blocked {
		if now >= r.Span.Start.Add(startPatience+bootTime(hosts, host)) {
			late[host] = fault.Of(why).Message
		}
	}
	if s.Rehome == nil || len(late) == 0 || s.Doubt() != "" {
		return false
	}
	crowded := s.crowded(r, hosts, now)
	after, changed, err := s.Rehome(ctx, r.ID, func(host string) (string, bool) {
		if why, is := late[host]; is {
			return "its start is blocked: " + why, true
		}
		return "it is not free", crowded[host]
	})
	switch {
	case err != nil:
		s.Log.WarnContext(ctx, "a reservation whose start is blocked could not be given other hosts", "reservation", r.ID, "error", err)
	case changed:
		s.Log.WarnContext(ctx, "a reservation whose start was blocked has other hosts", "reservation", r.ID, "project", r.ProjectID,
			"blocked", slices.Sorted(maps.Keys(late)), "hosts_before", r.HostNames(), "hosts", after.HostNames())
	}
	return changed
}

// bootTime is how many seconds the host may take to wake; 0 where it does not sleep.
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

// crowded returns the hosts, beside those of the reservation, with strangers who do not
// make room at once: a start would be blocked there too.
func (s *Steward) crowded(r *reservation.Reservation, hosts *inventory.Snapshot, now span.Instant) map[string]bool {
	live := s.Promises.Live(always)
	goes := s.Rules.Preemptible == DeleteGuest || s.Rules.Preemptible == ShelveGuest
	own, crowded := r.HostNames(), map[string]bool{}
	for _, h := range hosts.Hosts() {
		switch {
		case h.InstanceCount == 0 && len(h.Instances) == 0, slices.Contains(own, h.Name):
		case h.Instances == nil:
			crowded[h.Name] = true
		default:
			crowded[h.Name] = slices.ContainsFunc(strangers(r, h.Name, h.Instances, live, now),
				func(g inventory.Instance) bool { return !goes || !yields(&g) })
		}
	}
	return crowded
}
