package upkeep

import (
	"context"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

const (
	// endPatience is for how many seconds after the grace an end waits for instances
	// before it is put off.
	endPatience = 120
	// An end looks every pollEvery how far they are, and after quickPolls of that
	// every pollSlowly.
	quickPolls = 10
	pollSlowly = 5 * time.Second
)

// end takes the hosts back: nobody new comes in, the owner's instances are dealt with
// as he has said, and only then what lies on the cloud for the reservation goes: from
// each host when nobody is there on whom the end waits, and the rest when nobody is.
func (s *Steward) end(ctx context.Context, r reservation.Reservation) error {
	began := s.Elapsed()
	if err := s.Ground.Expel(ctx, r); err != nil {
		return told(err, "end the use of the hosts")
	}
	taken := len(r.HostNames())
	for polls := 0; ; polls++ {
		left, err := s.dismiss(ctx, r)
		if len(left) == 0 {
			if err != nil {
				return err
			}
			break
		}
		if on := len(hostsOf(left)); on < taken { // whose turn is next need not wait for all
			if _, failed := s.takeAway(ctx, r, left); failed != nil {
				s.Log.WarnContext(ctx, "hosts that are free could not be taken back yet", "reservation", r.ID, "error", failed)
			} else {
				taken = on
			}
		}
		if err != nil {
			return err
		}
		if s.outOfPatience(&r) {
			return fault.New(fault.Conflict, "instance %s (%s) is not done with as on_end %s says; the end waits for it", left[0].ID, left[0].Status, r.OnEnd)
		}
		every := pollEvery
		if polls >= quickPolls {
			every = pollSlowly
		}
		if err := s.Wait(ctx, every); err != nil {
			return told(err, "wait for the instances of the reservation")
		}
	}
	if _, err := s.takeAway(ctx, r, nil); err != nil {
		return err
	}
	s.Log.InfoContext(ctx, "the hosts are taken back", "reservation", r.ID, "hosts", r.HostNames(), "on_end", r.OnEnd,
		"took", (s.Elapsed() - began).String())
	return nil
}

// dismiss gives the owner's instances their orders, and gives those on which the end
// still waits, also where orders were refused. With an error and none, it is not known.
func (s *Steward) dismiss(ctx context.Context, r reservation.Reservation) (left []inventory.Instance, err error) {
	guests, err := s.Guests.Of(ctx, r)
	if err != nil {
		return nil, told(err, "find the instances of the reservation")
	}
	// By mistake of the answer nobody else's instance is touched.
	guests = slices.DeleteFunc(guests, func(i inventory.Instance) bool { return i.ReservationID() != r.ID })
	graceful := s.Now() < r.Updated.Add(grace(&r, s.Promises.Live(always), s.Rules.EndGrace))
	left, orders := farewell(guests, r.OnEnd, graceful)
	err = each(ctx, s.asking, len(orders), func(i int) error { return s.bid(ctx, r, orders[i]) })
	if s.outOfPatience(&r) {
		hosts := s.Snapshot()
		left = slices.DeleteFunc(left, func(i inventory.Instance) bool {
			// On a host that has failed the orders stand in Nova until it is back.
			return i.Host != "" && unfit(hosts, i.Host) != "" || r.OnEnd == reservation.Stop && unstoppable(&i)
		})
	}
	return left, err
}

// outOfPatience says that the reservation's instances have had their time, since its
// end has begun or it was given up.
func (s *Steward) outOfPatience(r *reservation.Reservation) bool {
	return s.Now() >= r.Updated.Add(s.Rules.EndGrace+endPatience)
}

// bid gives one order of a farewell. Who is only asked to shut down before it is
// deleted need not.
func (s *Steward) bid(ctx context.Context, r reservation.Reservation, do errand) error {
	log := s.Log.With("reservation", r.ID, "instance", do.instance.ID, "host", do.instance.Host, "order", do.order, "reason", do.reason)
	done, err := s.errands.give(ctx, do)
	switch {
	case err == nil && done:
		log.InfoContext(ctx, "an instance of the reservation has its order")
	case err != nil:
		log.WarnContext(ctx, "an instance of the reservation did not take its order", "error", err)
		if r.OnEnd == reservation.Stop && s.outOfPatience(&r) && unstoppable(&do.instance) {
			return nil
		}
		if unfit(s.Snapshot(), do.instance.Host) == "" && (do.order != StopGuest || r.OnEnd == reservation.Stop) {
			return told(err, "%s instance %s", do.order, do.instance.ID)
		}
	}
	return nil
}

// grace is how many seconds instances have to shut down before they are deleted: none
// where one of the hosts is promised to another by then.
func grace(r *reservation.Reservation, live []reservation.Reservation, seconds int64) int64 {
	over := min(r.Span.End, r.Updated)
	next := span.Span{Start: over, End: r.Updated.Add(seconds)}
	hosts := r.HostNames()
	for _, other := range live {
		if other.ID != r.ID && slices.ContainsFunc(other.Claims, func(c reservation.Claim) bool {
			return slices.Contains(hosts, c.Host) && next.Contains(c.Span.Start)
		}) {
			return 0
		}
	}
	return seconds
}

// farewell says which instances are told what at the end, and on which it waits.
// graceful says that those that are to be deleted may shut down first.
func farewell(guests []inventory.Instance, onEnd reservation.OnEnd, graceful bool) (left []inventory.Instance, orders []errand) {
	for _, i := range guests {
		order := map[reservation.OnEnd]Order{
			reservation.Delete: DeleteGuest, reservation.Stop: StopGuest, reservation.Shelve: ShelveGuest,
		}[onEnd]
		reason := "the reservation ends with on_end " + string(onEnd)
		switch {
		case order == "" || i.Status == "DELETED",
			order == StopGuest && stopped(&i),
			order == ShelveGuest && (i.Host == "" || i.Status == "SHELVED_OFFLOADED"):
			continue
		case order == DeleteGuest && graceful && shutsDown(&i):
			order, reason = StopGuest, "the reservation ends; the instance is deleted when it has shut down"
		}
		left = append(left, i)
		// What Nova is busy with it can only delete.
		if i.Task == "" || order == DeleteGuest && i.Task != "deleting" {
			orders = append(orders, errand{i, order, reason})
		}
	}
	return left, orders
}

// shutsDown says that there is a guest system which can be shut down, or is being.
func shutsDown(i *inventory.Instance) bool {
	return slices.Contains([]string{"ACTIVE", "PASSWORD", "REBOOT", "HARD_REBOOT", "MIGRATING"}, i.Status)
}

// unstoppable says that Nova never stops the instance as it is, which its owner alone
// can change (nova/compute/api.py stop: the states it is allowed in). Since the host
// goes back with the stopped ones on it, the end does not wait for that.
func unstoppable(i *inventory.Instance) bool {
	return i.Task == "" && slices.Contains([]string{"RESCUE", "VERIFY_RESIZE"}, i.Status)
}

// stopped says that the instance does not run.
func stopped(i *inventory.Instance) bool {
	return slices.Contains([]string{
		"SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "SOFT_DELETED", "ERROR",
	}, i.Status)
}
