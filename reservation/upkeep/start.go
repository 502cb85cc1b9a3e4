// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const (
	pollEvery = time.Second
	// startPolls is how often a start checks whether its hosts are free before it is retried later.
	startPolls = 10
)

// start opens the hosts of a reservation to its owner: it completes the layout, waits until no
// foreign instances are on the hosts, and then admits the project. It reads the reservation again
// before each check, since it may change in the meantime.
func (s *Enforcer) start(ctx context.Context, id string) error {
	began := s.Elapsed()
	moved := false
	for polls := 0; ; polls++ {
		r, live := s.Promises.Reservation(id)
		if !live {
			return fault.New(fault.Conflict, "the reservation was canceled before it had started")
		}
		if r.Span.End <= s.Now() { // its hosts may belong to others
			return fault.New(fault.Conflict, "the reservation ended before it had started")
		}
		hosts, err := startable(&r, s.Snapshot(), s.Now())
		if sleeps, is := errors.AsType[sleeper](err); is && !moved {
			if moved = s.rehome(ctx, &r, map[string]error{sleeps.host: err}); moved {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := s.ensureLayout(ctx, r, hosts); err != nil {
			return err
		}
		blocked, err := s.obstacles(ctx, r, hosts)
		switch {
		case err != nil:
			return err
		case len(blocked) == 0:
			if err := s.removeFromSkipped(ctx, r, hosts); err != nil {
				return err
			}
			if err := s.Fence.Admit(ctx, r); err != nil {
				return wrapForUser(err, "let the project use the hosts")
			}
			s.Log.InfoContext(ctx, "the owner can use the hosts", "reservation", id, "hosts", hosts,
				"polls", polls, "took", (s.Elapsed() - began).String())
			return nil
		case polls >= startPolls && (moved || !s.rehome(ctx, &r, blocked)):
			return blocked[slices.Sorted(maps.Keys(blocked))[0]]
		case polls >= startPolls:
			polls, moved = 0, true
		}
		if err := s.Wait(ctx, pollEvery); err != nil {
			return wrapForUser(err, "wait until the hosts are free")
		}
	}
}

// startable returns the hosts with which the reservation can start: those that it holds now,
// without failed ones, which healing replaces. It fails if there are none, or if one of them
// sleeps. The hosts of maintenance need neither work nor be awake; those that have left the cloud
// cannot be closed.
func startable(r *reservation.Reservation, hosts *inventory.Snapshot, now span.Instant) (fit []string, err error) {
	why := fault.New(fault.Unavailable, "the reservation holds no host now")
	for _, c := range r.Claims {
		if !c.Span.Contains(now) || slices.Contains(fit, c.Host) {
			continue
		}
		if r.Maintenance {
			if _, listed := hosts.Index(c.Host); listed {
				fit = append(fit, c.Host)
			}
			continue
		}
		if reason := failureOf(hosts, c.Host); reason != "" {
			why = fault.New(fault.Unavailable, "none of the hosts can run instances now; the start waits for one")
			why.Err = fmt.Errorf("host %s: %s", c.Host, reason)
			continue
		}
		at, _ := hosts.Index(c.Host)
		switch hosts.Host(at).Power {
		case inventory.PowerSleeping:
			return nil, asleep(c.Host, "a host is sleeping; the start waits until it is awake")
		case inventory.PowerWaking:
			return nil, asleep(c.Host, "a host is waking up; the start waits until it is awake")
		}
		fit = append(fit, c.Host)
	}
	if len(fit) == 0 && !r.Maintenance {
		return nil, why
	}
	return fit, nil
}

// onHost adds the name of the host as the cause of a fault. Operators read the cause; owners read
// only the message, because they must not learn host names before the start.
func onHost(host string, wrong *fault.Error) error {
	wrong.Err = fmt.Errorf("it is host %s", host)
	return wrong
}

// sleeper is the error that a start waits for a sleeping host.
type sleeper struct{ host string }

func (s sleeper) Error() string { return "it is host " + s.host }

// asleep returns a fault with a sleeper as its cause.
func asleep(host, why string) error {
	wrong := fault.New(fault.Unavailable, "%s", why)
	wrong.Err = sleeper{host}
	return wrong
}

// ensureLayout completes the layout that the reservation needs on the hosts. If everything was
// prepared, and read recently, it makes no request.
func (s *Enforcer) ensureLayout(ctx context.Context, r reservation.Reservation, hosts []string) error {
	if layout, good := s.layoutCache.recent(r.ID, hosts); good && len(s.missing(layout, &r, hosts)) == 0 {
		return nil
	}
	// Others may have changed the layout between reading it and the steps. Then the
	// second round succeeds.
	var failed error
	for range 2 {
		layout, err := s.layoutCache.fresh(ctx)
		if err != nil {
			return wrapForUser(err, "read the fence in OpenStack")
		}
		if failed = s.carryAll(ctx, s.missing(layout, &r, hosts)); failed == nil {
			return nil
		}
	}
	return failed
}

func (s *Enforcer) carryAll(ctx context.Context, steps []fence.Step) error {
	for _, step := range steps {
		if err := s.carry(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// keepsOwnerThere reports whether instances of the owner's flavors may be placed on the host of the
// step until the step is done.
func keepsOwnerThere(step fence.Step) bool {
	return step.Action == fence.RemoveTraits || step.Action == fence.RemoveRooms
}

// missing returns the steps without which the reservation cannot start on the hosts.
func (s *Enforcer) missing(layout fence.Layout, r *reservation.Reservation, hosts []string) []fence.Step {
	steps := fence.For(s.differences(layout, s.Promises.Live(span.Always)), r)
	claimed := r.HostNames()
	return slices.DeleteFunc(steps, func(step fence.Step) bool {
		if step.Reservation == r.ID && keepsOwnerThere(step) && !slices.Contains(claimed, step.Host) {
			return false // it was prepared there, and the host now belongs to another reservation
		}
		return !step.Adds() || step.Host != "" && !slices.Contains(hosts, step.Host)
	})
}

// obstacles returns what blocks the start, by host, and orders others' instances to leave as
// the rules require.
func (s *Enforcer) obstacles(ctx context.Context, r reservation.Reservation, hosts []string) (map[string]error, error) {
	live := s.Promises.Live(span.Always)
	host, held, err := s.heldBefore(ctx, &r, hosts, live)
	if err != nil {
		return nil, err
	}
	blocked := map[string]error{}
	if held {
		blocked[host] = onHost(host, fault.New(fault.Conflict, "another reservation, which is ending, still holds a host; the start waits for it"))
	}
	var mu sync.Mutex
	err = each(ctx, s.asking, len(hosts), func(i int) error {
		found, _, err := s.checkHost(ctx, watch{r, hosts[i], r.Span.Start}, live)
		if err != nil || len(found) == 0 {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if blocked[hosts[i]] == nil {
			blocked[hosts[i]] = occupiedError(&r, hosts[i], found[0])
		}
		return nil
	})
	return blocked, err
}

// heldBefore returns a host that an earlier reservation still holds and whose aggregate keeps r's
// instances off it; false if there is none. The earlier reservation may be over but not yet cleared
// up. One that is ending holds the hosts that are still in its aggregate.
func (s *Enforcer) heldBefore(ctx context.Context, r *reservation.Reservation, hosts []string, live []reservation.Reservation) (host string, held bool, err error) {
	for i := range live {
		other := &live[i]
		if other.ID == r.ID || other.Status == reservation.Ending || other.Kind == reservation.Instances && r.Kind == reservation.Instances {
			continue
		}
		for _, host := range hosts {
			if holds(other, host, s.Now()) {
				return host, true, nil
			}
		}
	}
	layout, seen := s.layoutCache.shown()
	if _, held := keepsOff(r, hosts, layout); seen && !held {
		return "", false, nil
	}
	if layout, err = s.layoutCache.fresh(ctx); err != nil {
		return "", false, wrapForUser(err, "read the fence in OpenStack")
	}
	host, held = keepsOff(r, hosts, layout)
	return host, held, nil
}

// keepsOff returns one of the hosts that the aggregate of another reservation, live or not, closes
// to the flavors of r, since they lack a trait that the aggregate requires; false if there is none.
func keepsOff(r *reservation.Reservation, hosts []string, layout fence.Layout) (string, bool) {
	kind := fence.OwnName(r.ID)
	if r.Kind == reservation.Instances {
		kind = fence.Shared
	}
	for name, a := range layout.Aggregates {
		if !strings.HasPrefix(name, fence.AggregatePrefix) || name == fence.AggregatePrefix+r.ID {
			continue
		}
		closes := false
		for key, value := range a.Metadata {
			trait, is := strings.CutPrefix(key, "trait:")
			closes = closes || is && value == "required" && trait != fence.Reserved && trait != kind
		}
		for _, host := range hosts {
			if closes && slices.Contains(a.Hosts, host) {
				return host, true
			}
		}
	}
	return "", false
}
