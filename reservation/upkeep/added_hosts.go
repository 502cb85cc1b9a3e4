// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// heldHost identifies a host of a reservation.
type heldHost struct{ reservation, host string }

// splitAdded returns the steps that can be carried out at once, and those that add a host to a
// reservation that has started. The project can already use the flavors of such a reservation, so
// the host must be free first, as at a start.
func splitAdded(steps []fence.Step, live []reservation.Reservation) (ready, added []fence.Step) {
	begun := make(map[string]bool)
	for _, r := range live {
		begun[r.ID] = r.Status != reservation.Pending
	}
	for _, step := range steps {
		if step.Adds() && step.Host != "" && begun[step.Reservation] && !step.Mirrors() {
			added = append(added, step)
		} else {
			ready = append(ready, step)
		}
	}
	return ready, added
}

// addHosts carries out the steps whose hosts are in the fence and free of foreign instances, and
// orders foreign instances to leave as the rules require. The other steps wait for the next round;
// a host that does not become free is replaced unless instances of the reservation are there. A start
// that is under way replaces its hosts itself.
func (s *Enforcer) addHosts(ctx context.Context, steps []fence.Step, live []reservation.Reservation) error {
	if len(steps) == 0 {
		return nil
	}
	layout, err := s.layoutCache.fresh(ctx)
	if err != nil {
		return wrapForUser(err, "read the fence in OpenStack")
	}
	fenced := layout.Aggregates[fence.Aggregate].Hosts
	var asked []watch
	for i := range live {
		r := &live[i]
		if r.Status == reservation.Ending {
			continue
		}
		for _, host := range r.HostNames() {
			if slices.Contains(fenced, host) && slices.ContainsFunc(steps, func(step fence.Step) bool {
				return step.Reservation == r.ID && step.Host == host
			}) {
				asked = append(asked, watch{*r, host, nextClaim(r, host, s.Now())})
			}
		}
	}
	var mu sync.Mutex
	free, occupied := make(map[heldHost]bool), make(map[string]map[string]error)
	failed := each(ctx, s.preparing, len(asked), func(i int) error {
		w := asked[i]
		found, own, err := s.checkHost(ctx, w, live)
		mu.Lock()
		defer mu.Unlock()
		free[heldHost{w.r.ID, w.host}] = err == nil && len(found) == 0
		if len(found) > 0 && !own {
			if occupied[w.r.ID] == nil {
				occupied[w.r.ID] = make(map[string]error)
			}
			occupied[w.r.ID][w.host] = occupiedError(&w.r, w.host, found[0])
		}
		return err
	})
	for i := range live {
		r := &live[i]
		if r.Status == reservation.Active && len(occupied[r.ID]) > 0 && s.searches.due(r.ID, s.Now()) {
			s.rehome(ctx, r, occupied[r.ID])
		}
	}
	able := slices.DeleteFunc(slices.Clone(steps), func(step fence.Step) bool { return !free[heldHost{step.Reservation, step.Host}] })
	if err := s.carryConcurrently(ctx, able, live); err != nil {
		return err
	}
	return failed
}

// searches bounds how often another host is searched for, since each search is a decision that others wait
// for, and a project can occupy hosts that its own reservations then grow onto.
type searches struct {
	mu   sync.Mutex
	last map[string]span.Instant // by reservation; those of the last minute
}

// due reports whether to search now for a reservation that waits for a host: once in patience.
func (s *searches) due(id string, now span.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last, func(_ string, at span.Instant) bool { return now >= at.Add(patience) })
	if _, recent := s.last[id]; recent {
		return false
	}
	if s.last == nil {
		s.last = make(map[string]span.Instant)
	}
	s.last[id] = now
	return true
}

// nextClaim returns the start of the reservation's first claim on the host that has not ended.
func nextClaim(r *reservation.Reservation, host string, now span.Instant) span.Instant {
	first := span.Forever
	for _, c := range r.Claims {
		if c.Host == host && now < c.Span.End {
			first = min(first, c.Span.Start)
		}
	}
	return first
}

// checkHost reads the instances on a host and returns the foreign ones that must leave, and whether
// instances of the reservation are there. It orders the former to leave as the rules require.
func (s *Enforcer) checkHost(ctx context.Context, w watch, live []reservation.Reservation) (found []inventory.Instance, own bool, err error) {
	instances, err := s.Instances.On(ctx, w.host)
	if err != nil {
		return nil, false, wrapForUser(fmt.Errorf("host %s: %w", w.host, err), "read the instances on a host")
	}
	found = w.mustLeave(foreignInstances(&w.r, w.host, instances, live, s.Now()), s.Now(), s.Rules)
	s.warn(ctx, w, found)
	s.evict(ctx, w, unpromised(found, w.host, live, s.Now()))
	own = slices.ContainsFunc(instances, func(i inventory.Instance) bool { return i.ReservationID() == w.r.ID })
	return found, own, nil
}

// removeFromSkipped removes the reservation's traits and rooms from those of its hosts with which
// it does not start now and which may be in use: such a host may become usable again while the
// reservation is active.
func (s *Enforcer) removeFromSkipped(ctx context.Context, r reservation.Reservation, hosts []string) error {
	skipped := slices.DeleteFunc(r.HostNames(), func(host string) bool { return slices.Contains(hosts, host) })
	if len(skipped) == 0 {
		return nil
	}
	live := s.Promises.Live(span.Always)
	occupied := make([]bool, len(skipped))
	_ = each(ctx, s.asking, len(skipped), func(i int) error {
		instances, err := s.Instances.On(ctx, skipped[i])
		occupied[i] = err != nil || len(foreignInstances(&r, skipped[i], instances, live, s.Now())) > 0
		return nil
	})
	r.Claims = slices.DeleteFunc(slices.Clone(r.Claims), func(c reservation.Claim) bool {
		at := slices.Index(skipped, c.Host)
		return at >= 0 && occupied[at]
	})
	for i := range live {
		if live[i].ID == r.ID {
			live[i] = r
		}
	}
	layout, err := s.layoutCache.fresh(ctx)
	if err != nil {
		return wrapForUser(err, "read the fence in OpenStack")
	}
	return s.carryAll(ctx, slices.DeleteFunc(s.differences(layout, live), func(step fence.Step) bool {
		at := slices.Index(skipped, step.Host)
		return step.Reservation != r.ID || step.Adds() || at < 0 || !occupied[at]
	}))
}
