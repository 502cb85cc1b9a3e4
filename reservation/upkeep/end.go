// SPDX-License-Identifier: Apache-2.0

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
	// endPatience is how many seconds after the grace period an end waits for instances before it
	// is retried later.
	endPatience = 120
	// An end checks the instances every pollEvery, and after quickPolls checks every pollSlowly.
	quickPolls = 10
	pollSlowly = 5 * time.Second
)

// end frees the hosts of a reservation. It revokes the project's access to the flavors, orders the
// owner's instances as on_end requires, and then removes the reservation's layout: from each host
// when no instance for which the end waits is left there, and the rest when none is left at all.
func (s *Enforcer) end(ctx context.Context, r reservation.Reservation) error {
	began := s.Elapsed()
	if err := s.Fence.Expel(ctx, r); err != nil {
		return wrapForUser(err, "revoke the project's access to the hosts")
	}
	taken := len(r.HostNames())
	for polls := 0; ; polls++ {
		left, err := s.orderInstances(ctx, r)
		if len(left) == 0 {
			if err != nil {
				return err
			}
			break
		}
		if on := len(hostsOf(left)); on < taken { // the next reservation need not wait for all hosts
			if _, failed := s.teardown(ctx, r, left); failed != nil {
				s.Log.WarnContext(ctx, "could not take back the hosts without instances while others still have some; retrying", "reservation", r.ID, "error", failed)
			} else {
				taken = on
			}
		}
		if err != nil {
			return err
		}
		if s.outOfPatience(&r) {
			return fault.New(fault.Conflict, "on_end %s is not carried out yet for instance %s (%s); the end waits for it", r.OnEnd, left[0].ID, left[0].Status)
		}
		every := pollEvery
		if polls >= quickPolls {
			every = pollSlowly
		}
		if err := s.Wait(ctx, every); err != nil {
			return wrapForUser(err, "wait for the instances of the reservation")
		}
	}
	if _, err := s.teardown(ctx, r, nil); err != nil {
		return err
	}
	s.Log.InfoContext(ctx, "took the hosts back", "reservation", r.ID, "hosts", r.HostNames(), "on_end", r.OnEnd,
		"took", (s.Elapsed() - began).String())
	return nil
}

// orderInstances sends the orders for the owner's instances and returns the instances for which the
// end still waits, including those whose order was refused. If it returns an error and no
// instances, it is unknown which instances there are.
func (s *Enforcer) orderInstances(ctx context.Context, r reservation.Reservation) (left []inventory.Instance, err error) {
	instances, err := s.Instances.Of(ctx, r)
	if err != nil {
		return nil, wrapForUser(err, "find the instances of the reservation")
	}
	// A wrong answer must not affect others' instances.
	instances = slices.DeleteFunc(instances, func(i inventory.Instance) bool { return i.ReservationID() != r.ID })
	graceful := s.Now() < r.Updated.Add(grace(&r, s.Promises.Live(span.Always), s.Rules.EndGrace))
	left, orders := endOrders(instances, r.OnEnd, graceful)
	err = each(ctx, s.asking, len(orders), func(i int) error { return s.sendOrder(ctx, r, orders[i]) })
	if s.outOfPatience(&r) {
		hosts := s.Snapshot()
		left = slices.DeleteFunc(left, func(i inventory.Instance) bool {
			// On a failed host Nova keeps the orders until the host is back.
			return i.Host != "" && failureOf(hosts, i.Host) != "" || r.OnEnd == reservation.OnEndStop && unstoppable(&i)
		})
	}
	return left, err
}

// outOfPatience reports whether the instances have had their time, counted from the beginning of
// the end or from the cancellation.
func (s *Enforcer) outOfPatience(r *reservation.Reservation) bool {
	return s.Now() >= r.Updated.Add(s.Rules.EndGrace+endPatience)
}

// sendOrder sends one order. A shutdown that only precedes a deletion may fail.
func (s *Enforcer) sendOrder(ctx context.Context, r reservation.Reservation, do instanceOrder) error {
	log := s.Log.With("reservation", r.ID, "instance", do.instance.ID, "host", do.instance.Host, "order", do.order, "reason", do.reason)
	done, err := s.orders.send(ctx, do)
	switch {
	case err == nil && done:
		log.InfoContext(ctx, "ordered an instance of the ending reservation to leave")
	case err != nil:
		log.WarnContext(ctx, "Nova refused the order for an instance of the ending reservation", "error", err)
		if r.OnEnd == reservation.OnEndStop && s.outOfPatience(&r) && unstoppable(&do.instance) {
			return nil
		}
		if failureOf(s.Snapshot(), do.instance.Host) == "" && (do.order != OrderStop || r.OnEnd == reservation.OnEndStop) {
			return wrapForUser(err, "%s instance %s", do.order, do.instance.ID)
		}
	}
	return nil
}

// grace returns how many seconds instances may take to shut down before they are deleted: 0 if
// another reservation starts on one of the hosts within that time.
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

// orderAtEnd is the order for the owner's instances, by on_end; they get none if on_end is leave.
var orderAtEnd = map[reservation.OnEnd]Order{
	reservation.OnEndDelete: OrderDelete, reservation.OnEndStop: OrderStop, reservation.OnEndShelve: OrderShelve,
}

// endOrders returns the orders for instances at the end, and the instances for which the end waits.
// If graceful is true, instances may shut down before they are deleted.
func endOrders(instances []inventory.Instance, onEnd reservation.OnEnd, graceful bool) (left []inventory.Instance, orders []instanceOrder) {
	atEnd := orderAtEnd[onEnd]
	for _, i := range instances {
		order, reason := atEnd, "the reservation ends with on_end "+string(onEnd)
		switch {
		case order == "" || i.Status == "DELETED",
			order == OrderStop && stopped(&i),
			order == OrderShelve && (i.Host == "" || i.Status == "SHELVED_OFFLOADED"):
			continue
		case order == OrderDelete && graceful && shutsDown(&i):
			order, reason = OrderStop, "the reservation ends; the instance is deleted when it has shut down"
		}
		left = append(left, i)
		// While Nova works on an instance, the only order that it accepts is to delete it. One that
		// it is deleting gets the order too, since the first deletion may be lost.
		if i.Task == "" || order == OrderDelete {
			orders = append(orders, instanceOrder{i, order, reason})
		}
	}
	return left, orders
}

// shutsDown reports whether the instance has a guest system that can be shut down, or is shutting down.
func shutsDown(i *inventory.Instance) bool {
	return slices.Contains([]string{"ACTIVE", "PASSWORD", "REBOOT", "HARD_REBOOT", "MIGRATING"}, i.Status)
}

// unstoppable reports whether Nova refuses to stop the instance in its status, which only its owner
// can change (nova/compute/api.py stop: the allowed states). The end does not wait for such an
// instance, since a host with stopped instances counts as free.
func unstoppable(i *inventory.Instance) bool {
	return i.Task == "" && slices.Contains([]string{"RESCUE", "VERIFY_RESIZE"}, i.Status)
}

// stopped reports whether the instance does not run.
func stopped(i *inventory.Instance) bool {
	return slices.Contains([]string{
		"SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "SOFT_DELETED", "ERROR",
	}, i.Status)
}
