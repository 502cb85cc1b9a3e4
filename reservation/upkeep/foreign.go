// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// foreignInstances returns the instances on the host that do not belong to reservation r. On a host
// of a reservation of kind instance, instances of other reservations that hold slices of it now
// belong there too, as many as the slices.
func foreignInstances(r *reservation.Reservation, host string, instances []inventory.Instance, live []reservation.Reservation, now span.Instant) []inventory.Instance {
	welcome := map[string]int{} // number of instances, by reservation
	for i := range live {
		other := &live[i]
		if r.Kind != reservation.Instances || other.Kind != reservation.Instances {
			continue
		}
		for _, c := range other.Claims {
			if c.Host == host && c.Span.Contains(now) {
				welcome[other.ID] += c.Slices
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(instances), func(i inventory.Instance) bool {
		of := i.ReservationID()
		welcome[of]--
		return of == r.ID || welcome[of] >= 0
	})
}

// holds reports whether a live reservation holds the host now. Beyond its span it holds the host
// until its end is done, unless the host was replaced.
func holds(r *reservation.Reservation, host string, now span.Instant) bool {
	return slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool {
		return c.Host == host && c.Span.Start <= now && !r.Over(c, now)
	})
}

// unpromised returns the instances without those of reservations that hold the host now, which
// leave at the reservation's end.
func unpromised(instances []inventory.Instance, host string, live []reservation.Reservation, now span.Instant) []inventory.Instance {
	return slices.DeleteFunc(slices.Clone(instances), func(i inventory.Instance) bool {
		return slices.ContainsFunc(live, func(r reservation.Reservation) bool {
			return r.ID == i.ReservationID() && holds(&r, host, now)
		})
	})
}

// instanceOrder is an order for an instance, and the reason, which operators read.
type instanceOrder struct {
	instance inventory.Instance
	order    Order
	reason   string
}

// evictionOrders returns the orders for foreign instances on a host that is reserved from start on;
// left contains those that ended reservations have left there. There is no order for an instance
// that is locked, on which Nova works, or that is only in Placement. An instance that is neither
// preemptible nor left can only be migrated. The delete protection of a preemptible instance and
// the lock of one that was left are ignored, since their owners set them.
func evictionOrders(foreign []inventory.Instance, left leftovers, start, now span.Instant, rules Rules) (list []instanceOrder) {
	for _, i := range foreign {
		order, from, why := rules.Normal, start.Add(-rules.LeadTime), ""
		r, isLeft := left[i.ID]
		switch {
		case i.Preemptible && !(isLeft && rules.Preemptible == OrderWait):
			order, from = rules.Preemptible, start.Add(-rules.Eviction)
		case isLeft:
			order, why = rules.forLeft(&i, r.OnEnd, now < start.Add(-rules.Eviction)), ", and its reservation "+r.ID+" is over"
		}
		may := order == OrderMigrate || (i.Preemptible || isLeft) && (order == OrderDelete || order == OrderShelve)
		if may && now >= from && (isLeft || !i.Locked) && i.Status != "" && i.Task == "" {
			list = append(list, instanceOrder{i, order, fmt.Sprintf("its host %s is reserved from %v on%s", i.Host, start, why)})
		}
	}
	return list
}

// occupiedError returns the error, for the owner of r, that states what blocks the start. It does
// not identify others' instances.
func occupiedError(r *reservation.Reservation, host string, i inventory.Instance) error {
	by := fmt.Sprintf("an instance (%s) of another project", i.Status)
	switch {
	case i.Status == "":
		by = "an allocation that only Placement knows"
	case r.BelongsTo(i.ProjectID):
		by = fmt.Sprintf("your instance %s (%s), which does not belong to the reservation", i.ID, i.Status)
	}
	return onHost(host, fault.New(fault.Conflict, "a host is occupied by %s; the start waits until it is gone", by))
}

// watch is a host that must be free of foreign instances from start on, for the reservation r.
type watch struct {
	r     reservation.Reservation
	host  string
	start span.Instant
}

// mustLeave returns the foreign instances without those that may use what the owner of an active
// reservation leaves unused; nobody may in maintenance.
func (w watch) mustLeave(foreign []inventory.Instance, now span.Instant, rules Rules) []inventory.Instance {
	if !rules.Fill || w.r.Maintenance || w.r.Status != reservation.Active || now < w.start {
		return foreign
	}
	return slices.DeleteFunc(slices.Clone(foreign), func(i inventory.Instance) bool { return yields(&i) })
}

// yields reports whether an instance makes room as soon as the owner of its host needs it.
func yields(i *inventory.Instance) bool { return i.Preemptible && !i.Locked && !i.Protected }

// toEvict returns the instances that must leave the host.
func (w watch) toEvict(instances []inventory.Instance, live []reservation.Reservation, now span.Instant, rules Rules) []inventory.Instance {
	return w.mustLeave(unpromised(foreignInstances(&w.r, w.host, instances, live, now), w.host, live, now), now, rules)
}

// watches returns the hosts from which foreign instances may have to leave now, as long as the
// claims last.
func watches(live []reservation.Reservation, now span.Instant, rules Rules) (list []watch) {
	ahead := max(rules.LeadTime, rules.Eviction)
	for _, r := range live {
		if r.Status == reservation.Ending {
			continue
		}
		for _, c := range r.Claims {
			if now >= c.Span.Start.Add(-ahead) && now < c.Span.End {
				list = append(list, watch{r, c.Host, c.Span.Start})
			}
		}
	}
	return list
}

// needsCheck reports whether the host's instances must be read: in the last Rules.Eviction seconds
// before the start, and at any other time if the inventory lists instances that must leave, or only
// counts the instances. Hosts that have failed or left the cloud are not checked: healing replaces
// them.
func (w watch) needsCheck(hosts *inventory.Snapshot, live []reservation.Reservation, now span.Instant, rules Rules) bool {
	at, there := hosts.Index(w.host)
	if !there || failureOf(hosts, w.host) != "" {
		return false
	}
	h := hosts.Host(at)
	soon := now < w.start && now >= w.start.Add(-rules.Eviction)
	unknown := h.Instances == nil && h.InstanceCount > 0
	return soon || unknown || len(w.toEvict(h.Instances, live, now, rules)) > 0
}

const (
	// orderAgain is after how many seconds an order that Nova accepted is sent again; orderRefused
	// is that time for an order that Nova refused.
	orderAgain   = 180
	orderRefused = 10
)

// orders sends each order once within these times.
type orders struct {
	instances Instances
	now       func() span.Instant

	mu      sync.Mutex
	sent    map[sentOrder]span.Instant // the instant until which the order is not sent again
	blocked map[string]span.Instant    // when servers of best-effort work first blocked a host
}

// sentOrder identifies an order for an instance in a status. In another status the same order may
// mean another step, such as the confirmation of a migration.
type sentOrder struct {
	instance string
	order    Order
	status   string
}

// send sends the order unless it was sent recently. done is true if Nova accepted it.
func (o *orders) send(ctx context.Context, do instanceOrder) (done bool, err error) {
	key := sentOrder{do.instance.ID, do.order, do.instance.Status}
	if !o.begin(key) {
		return false, nil
	}
	if err := o.instances.Order(ctx, do.instance, do.order); err != nil {
		o.retryAfter(key, orderRefused)
		return false, err
	}
	return true, nil
}

func (o *orders) begin(key sentOrder) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for old, until := range o.sent {
		if until <= now {
			delete(o.sent, old)
		}
	}
	if _, is := o.sent[key]; is {
		return false
	}
	if o.sent == nil {
		o.sent = make(map[sentOrder]span.Instant)
	}
	o.sent[key] = now.Add(orderAgain)
	return true
}

func (o *orders) retryAfter(key sentOrder, seconds int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent[key] = o.now().Add(seconds)
}

const (
	// departGrace is how many seconds best-effort work has, after its own deadline, to suspend a
	// server itself before the server is evicted.
	departGrace = 20
	// forgetBlocked is for how many seconds the time at which a server first blocked a host is
	// stored.
	forgetBlocked = 600
)

// withoutSuspending returns the orders without those for servers that the best-effort controller
// will suspend in time.
func (s *Enforcer) withoutSuspending(ctx context.Context, due []instanceOrder) ([]instanceOrder, error) {
	if s.Departing == nil || len(due) == 0 {
		return due, nil
	}
	ids := make([]string, len(due))
	for i := range due {
		ids[i] = due[i].instance.ID
	}
	until, err := s.Departing(ctx, ids...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(due, func(do instanceOrder) bool {
		deadline, is := until[do.instance.ID]
		return is && s.Now() <= max(deadline, s.orders.blockedSince(do.instance.ID)).Add(departGrace)
	}), nil
}

// blockedSince returns when a server first blocked a host.
func (o *orders) blockedSince(instance string) span.Instant {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for old, at := range o.blocked {
		if now >= at.Add(forgetBlocked) {
			delete(o.blocked, old)
		}
	}
	if _, known := o.blocked[instance]; !known {
		if o.blocked == nil {
			o.blocked = make(map[string]span.Instant)
		}
		o.blocked[instance] = now
	}
	return o.blocked[instance]
}

// evict sends the orders that are due for foreign instances on a host; none while the inventory is
// untrusted. It logs an order that Nova refuses; that instance stays, and the start waits.
func (s *Enforcer) evict(ctx context.Context, w watch, foreign []inventory.Instance) {
	if s.Untrusted() != "" {
		return
	}
	left, err := s.leftOn(ctx, w.host, foreign)
	if err != nil {
		s.Log.WarnContext(ctx, "could not read which instances ended reservations have left; none is ordered to leave", "host", w.host, "error", err)
	}
	due, err := s.withoutSuspending(ctx, evictionOrders(foreign, left, w.start, s.Now(), s.Rules))
	if err != nil {
		s.Log.WarnContext(ctx, "could not read which servers best-effort work suspends itself; no instance is ordered to leave", "host", w.host, "error", err)
		return
	}
	for _, do := range due {
		log := s.Log.With("reservation", w.r.ID, "host", w.host, "instance", do.instance.ID, "name", do.instance.Name, "project", do.instance.ProjectID,
			"order", do.order, "reason", do.reason)
		switch done, err := s.orders.send(ctx, do); {
		case err != nil:
			log.WarnContext(ctx, "could not evict an instance: Nova refused the order", "error", err)
		case done:
			log.InfoContext(ctx, "evicting an instance that must make room", "preemptible", do.instance.Preemptible)
			s.tellLeft(ctx, left[do.instance.ID], do)
		}
	}
}
