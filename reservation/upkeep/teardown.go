// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// teardown removes the layout of the reservation, live or over, and opens its hosts unless they are
// promised to other reservations. It leaves the hosts of the instances in left, for which the end
// waits, as they are. all is true if nothing of the reservation is left in the cloud.
func (s *Enforcer) teardown(ctx context.Context, r reservation.Reservation, left []inventory.Instance) (all bool, err error) {
	layout, err := s.layoutCache.fresh(ctx)
	if err != nil {
		return false, wrapForUser(err, "read the fence in OpenStack")
	}
	others := slices.DeleteFunc(s.Promises.Live(span.Always), func(o reservation.Reservation) bool { return o.ID == r.ID })
	steps := s.differences(layout, others)
	// A canceled reservation may have no claims.
	r.Claims = slices.Clone(r.Claims)
	for _, step := range steps {
		if step.Reservation == r.ID && step.Host != "" {
			r.Claims = append(r.Claims, reservation.Claim{Host: step.Host})
		}
	}
	steps = s.ownSteps(steps, &r, others)
	busy, err := s.busy(ctx, steps, left)
	if err != nil {
		return false, err
	}
	held, err := s.carryTeardown(ctx, &r, steps, busy, len(left) > 0)
	return err == nil && !held && len(left) == 0, err
}

// ownSteps returns the steps for r, without those that open a host which has a trait or rooms
// of a reservation that another replica may have just booked.
func (s *Enforcer) ownSteps(steps []fence.Step, r *reservation.Reservation, others []reservation.Reservation) []fence.Step {
	known := map[string]bool{"": true, r.ID: true}
	for i := range others {
		known[others[i].ID] = true
	}
	strange := map[string]bool{} // hosts
	for _, step := range withoutHeldRooms(steps, s.Snapshot()) {
		if !known[step.Reservation] && step.Host != "" {
			strange[step.Host] = true
		}
	}
	return slices.DeleteFunc(fence.For(steps, r), func(step fence.Step) bool {
		return step.Reservation == "" && !step.Adds() && strange[step.Host]
	})
}

// carryTeardown carries out the steps for r, except on busy hosts. Its own steps that concern no
// host are carried out only if all others succeed and no instance is left. held reports
// whether some failed because of instances that may stay.
func (s *Enforcer) carryTeardown(ctx context.Context, r *reservation.Reservation, steps []fence.Step, busy map[string]bool, left bool) (held bool, err error) {
	var errs []error
	for _, step := range steps {
		whole := step.Host == "" && !step.Adds()
		opens := step.Reservation == "" && !step.Adds()
		if busy[step.Host] || whole && (left || len(errs) > 0) || opens && s.needed(step, r.ID) {
			continue
		}
		switch err := s.carry(ctx, step); {
		case err == nil:
		case s.mayStay(r, step, err):
			held = true
		case step.Host == "":
			return held, errors.Join(append(errs, err)...)
		default: // continue with the next host
			errs, busy[step.Host] = append(errs, err), true
		}
	}
	return held, errors.Join(errs...)
}

// mayStay reports whether the step failed because instances use what they may keep: rooms of r, if
// they stay where they are or are on failed hosts, and an adopted aggregate, which keeps nobody off.
func (s *Enforcer) mayStay(r *reservation.Reservation, step fence.Step, err error) bool {
	if !fault.Is(err, fault.Conflict) || step.Action != fence.RemoveRooms && step.Action != fence.DeleteClass && !step.TakesAdopted() {
		return false
	}
	return step.TakesAdopted() || r.OnEnd == reservation.OnEndStop || r.OnEnd == reservation.OnEndLeave ||
		s.outOfPatience(r) && (step.Host == "" || failureOf(s.Snapshot(), step.Host) != "")
}

// busy returns the hosts of the steps on which one of the instances is or to which it is on
// its way. If one of them has no host yet, it returns all.
func (s *Enforcer) busy(ctx context.Context, steps []fence.Step, left []inventory.Instance) (map[string]bool, error) {
	on := map[string]bool{}
	for _, host := range hostsOf(left) {
		on[host] = true
	}
	unplaced := on[""]
	delete(on, "")
	var ask []string
	for _, step := range steps {
		if len(left) == 0 || step.Host == "" || on[step.Host] || slices.Contains(ask, step.Host) {
			continue
		}
		if unplaced {
			on[step.Host] = true
		} else if failureOf(s.Snapshot(), step.Host) == "" {
			ask = append(ask, step.Host)
		}
	}
	found := make([]bool, len(ask))
	err := each(ctx, s.asking, len(ask), func(i int) error {
		instances, err := s.Instances.On(ctx, ask[i])
		if err != nil {
			return wrapForUser(err, "read the instances on host %s", ask[i])
		}
		found[i] = slices.ContainsFunc(instances, func(g inventory.Instance) bool {
			return slices.ContainsFunc(left, func(l inventory.Instance) bool { return l.ID == g.ID })
		})
		return nil
	})
	for i, host := range ask {
		if found[i] {
			on[host] = true
		}
	}
	return on, err
}

// hostsOf returns the hosts of the instances, sorted. An instance that is still to be placed
// has the host "".
func hostsOf(instances []inventory.Instance) (hosts []string) {
	for _, i := range instances {
		if i.Host != "" || i.Status != "SHELVED_OFFLOADED" {
			hosts = append(hosts, i.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// withoutHeldRooms returns the steps without those that Placement would refuse: the removal of rooms
// that instances of the reservation use according to the inventory, and of their class. The
// instances of an ended reservation keep them until the last one is gone.
func withoutHeldRooms(steps []fence.Step, hosts *inventory.Snapshot) []fence.Step {
	held := map[string]bool{} // reservations
	steps = slices.DeleteFunc(slices.Clone(steps), func(step fence.Step) bool {
		at, there := hosts.Index(step.Host)
		if step.Action != fence.RemoveRooms || !there || step.Rooms[fence.OwnName(step.Reservation)] > 0 {
			return false
		}
		holds := slices.ContainsFunc(hosts.Host(at).Instances, func(i inventory.Instance) bool { return i.ReservationID() == step.Reservation })
		held[step.Reservation] = held[step.Reservation] || holds
		return holds
	})
	return slices.DeleteFunc(steps, func(step fence.Step) bool { return step.Action == fence.DeleteClass && held[step.Reservation] })
}

// withoutFreedClaims returns the reservations without the claims of ending ones on hosts that no
// longer have anything of theirs: these were taken back before the end is over.
func withoutFreedClaims(live []reservation.Reservation, layout fence.Layout) []reservation.Reservation {
	live = slices.Clone(live)
	for i := range live {
		r := &live[i]
		if r.Status != reservation.Ending {
			continue
		}
		own := fence.OwnName(r.ID)
		r.Claims = slices.DeleteFunc(slices.Clone(r.Claims), func(c reservation.Claim) bool {
			return !slices.Contains(layout.Aggregates[fence.AggregatePrefix+r.ID].Hosts, c.Host) &&
				!slices.Contains(layout.Traits[c.Host], own) && layout.Rooms[c.Host][own] == 0
		})
	}
	return live
}

// clearUp continues to remove what is left of an ended reservation, as its end would have. It
// does not wait: unfinished work continues at the next call.
func (s *Enforcer) clearUp(ctx context.Context, r reservation.Reservation) error {
	if err := s.Fence.Expel(ctx, r); err != nil {
		return wrapForUser(err, "revoke the project's access to the hosts of reservation %s", r.ID)
	}
	layout, err := s.layoutCache.fresh(ctx)
	if err != nil {
		return wrapForUser(err, "read the fence in OpenStack")
	}
	var left []inventory.Instance
	var refused error
	// If only rooms are left, all instances have been dealt with. Owners may start their
	// stopped instances again.
	if !onlyRooms(layout, r.ID) {
		if left, refused = s.orderInstances(ctx, r); refused != nil && len(left) == 0 {
			return refused
		}
	}
	all, err := s.teardown(ctx, r, left)
	if all {
		s.Log.InfoContext(ctx, "cleared up after an ended reservation", "reservation", r.ID, "status", r.Status)
	}
	return errors.Join(refused, err)
}

// onlyRooms reports whether the reservation has neither an aggregate nor a flavor left.
func onlyRooms(layout fence.Layout, id string) bool {
	_, grouped := layout.Aggregates[fence.AggregatePrefix+id]
	for _, f := range layout.Flavors {
		grouped = grouped || f.ExtraSpecs[inventory.ReservationMark] == id || strings.HasPrefix(f.Name, fence.FlavorPrefix+id)
	}
	return !grouped
}
