package upkeep

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// takeAway clears what lies on the cloud for the reservation, whether it is live or
// over, and opens its hosts unless they are promised to others. Where some of its
// instances are left, on which its end waits, that is for the other hosts only. all
// says that nothing of it lies there any more.
func (s *Steward) takeAway(ctx context.Context, r reservation.Reservation, left []inventory.Instance) (all bool, err error) {
	layout, err := s.looks.fresh(ctx)
	if err != nil {
		return false, told(err, "look what lies on the cloud")
	}
	others := slices.DeleteFunc(s.Promises.Live(always), func(o reservation.Reservation) bool { return o.ID == r.ID })
	steps := s.differences(layout, others)
	// Of one that was cancelled the claims may be gone.
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
	held, err := s.carryAway(ctx, &r, steps, busy, len(left) > 0)
	return err == nil && !held && len(left) == 0, err
}

// ownSteps gives the steps for r, but for those that open a host which has something
// of a reservation that another replica may have just booked.
func (s *Steward) ownSteps(steps []fence.Step, r *reservation.Reservation, others []reservation.Reservation) []fence.Step {
	known := map[string]bool{"": true, r.ID: true}
	for i := range others {
		known[others[i].ID] = true
	}
	strange := map[string]bool{} // hosts
	for _, step := range unheld(steps, s.Snapshot()) {
		if !known[step.Reservation] && step.Host != "" {
			strange[step.Host] = true
		}
	}
	return slices.DeleteFunc(fence.For(steps, r), func(step fence.Step) bool {
		return step.Reservation == "" && !step.Adds() && strange[step.Host]
	})
}

// carryAway does the steps for r except on busy hosts. Of its own things those that
// are for no host go only where all others do, and nothing is left. held says that
// instances which may stay hold some of them.
func (s *Steward) carryAway(ctx context.Context, r *reservation.Reservation, steps []fence.Step, busy map[string]bool, left bool) (held bool, err error) {
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
		default: // the next host, then
			errs, busy[step.Host] = append(errs, err), true
		}
	}
	return held, errors.Join(errs...)
}

// mayStay says that the step failed because instances of r hold rooms that they may
// keep: those that stay where they are, and those on hosts that have failed.
func (s *Steward) mayStay(r *reservation.Reservation, step fence.Step, err error) bool {
	if !fault.Is(err, fault.Conflict) || step.Action != fence.RemoveRooms && step.Action != fence.DeleteClass {
		return false
	}
	return r.OnEnd == reservation.Stop || r.OnEnd == reservation.Leave ||
		s.outOfPatience(r) && (step.Host == "" || unfit(s.Snapshot(), step.Host) != "")
}

// busy gives those hosts of the steps on which one of the instances is, or to which it
// is on its way: all, while one has still to be placed.
func (s *Steward) busy(ctx context.Context, steps []fence.Step, left []inventory.Instance) (map[string]bool, error) {
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
		} else if unfit(s.Snapshot(), step.Host) == "" {
			ask = append(ask, step.Host)
		}
	}
	found := make([]bool, len(ask))
	err := each(ctx, s.asking, len(ask), func(i int) error {
		guests, err := s.Guests.On(ctx, ask[i])
		if err != nil {
			return told(err, "look who is on host %s", ask[i])
		}
		found[i] = slices.ContainsFunc(guests, func(g inventory.Instance) bool {
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

// hostsOf gives the hosts of the instances, sorted. One that has still to be placed has
// the host "".
func hostsOf(instances []inventory.Instance) (hosts []string) {
	for _, i := range instances {
		if i.Host != "" || i.Status != "SHELVED_OFFLOADED" {
			hosts = append(hosts, i.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// unheld leaves out what Placement would refuse: to take away rooms that instances of
// the reservation hold, as the inventory has it, and so their class. Those of one
// that has ended stay until the last of them has gone.
func unheld(steps []fence.Step, hosts *inventory.Snapshot) []fence.Step {
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

// withoutGivenBack leaves out the claims of reservations that are ending on hosts of
// which nothing is theirs any more: those were taken back before the end is over.
func withoutGivenBack(live []reservation.Reservation, layout fence.Layout) []reservation.Reservation {
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

// clearUp goes on with what is left of a reservation that is over, as its end would
// have, without waiting: what is under way is looked at the next time.
func (s *Steward) clearUp(ctx context.Context, r reservation.Reservation) error {
	if err := s.Ground.Expel(ctx, r); err != nil {
		return told(err, "end the use of the hosts of reservation %s", r.ID)
	}
	layout, err := s.looks.fresh(ctx)
	if err != nil {
		return told(err, "look what lies on the cloud")
	}
	var left []inventory.Instance
	var refused error
	// Where only rooms are left, all has been done with its instances: who starts his
	// again may.
	if !onlyRooms(layout, r.ID) {
		if left, refused = s.dismiss(ctx, r); refused != nil && len(left) == 0 {
			return refused
		}
	}
	all, err := s.takeAway(ctx, r, left)
	if all {
		s.Log.InfoContext(ctx, "what was left of a reservation that is over is cleared up", "reservation", r.ID, "status", r.Status)
	}
	return errors.Join(refused, err)
}

// onlyRooms says that neither the aggregate nor a flavor of the reservation is left.
func onlyRooms(layout fence.Layout, id string) bool {
	_, grouped := layout.Aggregates[fence.AggregatePrefix+id]
	for _, f := range layout.Flavors {
		grouped = grouped || f.ExtraSpecs[inventory.ReservationMark] == id || strings.HasPrefix(f.Name, fence.FlavorPrefix+id)
	}
	return !grouped
}
