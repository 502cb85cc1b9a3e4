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

// strangers gives the guests of the host that have no part in reservation r. Those of
// r have; on a host of a reservation of instances so have those of the others that
// hold a part of it now, as many as they hold.
func strangers(r *reservation.Reservation, host string, guests []inventory.Instance, live []reservation.Reservation, now span.Instant) []inventory.Instance {
	welcome := map[string]int{} // how many, by reservation
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
	return slices.DeleteFunc(slices.Clone(guests), func(i inventory.Instance) bool {
		of := i.ReservationID()
		welcome[of]--
		return of == r.ID || welcome[of] >= 0
	})
}

// holds says that a live reservation has the host now: also after its time, until its
// end is over, but not where it was given another host instead.
func holds(r *reservation.Reservation, host string, now span.Instant) bool {
	return slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool {
		return c.Host == host && c.Span.Start <= now && (now < c.Span.End || c.Span.End >= r.Span.End)
	})
}

// unpromised leaves out the guests of reservations that have the host now: those go
// with its end, and nobody else touches them.
func unpromised(guests []inventory.Instance, host string, live []reservation.Reservation, now span.Instant) []inventory.Instance {
	return slices.DeleteFunc(slices.Clone(guests), func(i inventory.Instance) bool {
		return slices.ContainsFunc(live, func(r reservation.Reservation) bool {
			return r.ID == i.ReservationID() && holds(&r, host, now)
		})
	})
}

// errand is an order for an instance, with the reason for the operator.
type errand struct {
	instance inventory.Instance
	order    Order
	reason   string
}

// evictions says which strangers are told what on a host that is promised from start
// on; those in left are what reservations that are over have left there. One that is
// locked is told nothing, nor one that has another task, nor one of which only Placement
// knows. What is neither preemptible nor left is at most migrated. That one is protected
// counts for nothing against a promise: its owner says so. For the same reason a lock
// does not keep one that was left.
func evictions(strangers []inventory.Instance, left leftovers, start, now span.Instant, rules Rules) (list []errand) {
	for _, i := range strangers {
		order, from, why := rules.Normal, start.Add(-rules.LeadTime), ""
		r, isLeft := left[i.ID]
		switch {
		case i.Preemptible && !(isLeft && rules.Preemptible == AwaitGuest):
			order, from = rules.Preemptible, start.Add(-rules.Eviction)
		case isLeft:
			order, why = rules.forLeft(&i, r.OnEnd, now < start.Add(-rules.Eviction)), ", and its reservation "+r.ID+" is over"
		}
		may := order == MigrateGuest || (i.Preemptible || isLeft) && (order == DeleteGuest || order == ShelveGuest)
		if may && now >= from && (isLeft || !i.Locked) && i.Status != "" && i.Task == "" {
			list = append(list, errand{i, order, fmt.Sprintf("its host %s is reserved from %v on%s", i.Host, start, why)})
		}
	}
	return list
}

// occupied tells the owner of r what keeps the start waiting, and of others' instances
// no more than that they are there.
func occupied(r *reservation.Reservation, host string, i inventory.Instance) error {
	by := fmt.Sprintf("an instance (%s) of another project", i.Status)
	switch {
	case i.Status == "":
		by = "an allocation of which only Placement knows"
	case i.ProjectID == r.ProjectID:
		by = fmt.Sprintf("your instance %s (%s), which is not in the reservation", i.ID, i.Status)
	}
	return onHost(host, fault.New(fault.Conflict, "a host is occupied by %s; the start waits until it has gone", by))
}

// watch is a host that must be free of strangers, for whom and from when on.
type watch struct {
	r     reservation.Reservation
	host  string
	start span.Instant
}

// unwelcome leaves out those of the strangers that may use what the owner of an active
// reservation leaves unused.
func (w watch) unwelcome(strangers []inventory.Instance, now span.Instant, rules Rules) []inventory.Instance {
	if !rules.Fill || w.r.Status != reservation.Active || now < w.start {
		return strangers
	}
	return slices.DeleteFunc(slices.Clone(strangers), func(i inventory.Instance) bool { return yields(&i) })
}

// yields says that an instance makes room as soon as the owner of its host needs it.
func yields(i *inventory.Instance) bool { return i.Preemptible && !i.Locked && !i.Protected }

// intruders gives the guests of the host that have to go.
func (w watch) intruders(guests []inventory.Instance, live []reservation.Reservation, now span.Instant, rules Rules) []inventory.Instance {
	return w.unwelcome(unpromised(strangers(&w.r, w.host, guests, live, now), w.host, live, now), now, rules)
}

// watches are the hosts from which strangers may be due to go now, while their claims
// last.
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

// worthwhile says that the host is to be asked for its guests: where the inventory
// sees strangers, and in any case from Eviction before the start on until then. A host
// that can serve nobody is left to healing.
func (w watch) worthwhile(hosts *inventory.Snapshot, live []reservation.Reservation, now span.Instant, rules Rules) bool {
	at, there := hosts.Index(w.host)
	if !there || unfit(hosts, w.host) != "" {
		return false
	}
	h := hosts.Host(at)
	soon := now < w.start && now >= w.start.Add(-rules.Eviction)
	unknown := h.Instances == nil && h.InstanceCount > 0
	return soon || unknown || len(w.intruders(h.Instances, live, now, rules)) > 0
}

const (
	// orderAgain is after how many seconds an order is given again that has not been
	// followed, and orderRefused after how many one that Nova did not take.
	orderAgain   = 180
	orderRefused = 10
)

// errands gives orders, each once.
type errands struct {
	guests Guests
	now    func() span.Instant

	mu    sync.Mutex
	given map[given]span.Instant  // until when it is not given again
	met   map[string]span.Instant // when servers of best-effort work were first in the way
}

// given is an order for an instance in a state: in another one the order may mean
// another step, as of a migration that is to be confirmed.
type given struct {
	instance string
	order    Order
	status   string
}

// give gives the order unless that was done a short time ago.
func (e *errands) give(ctx context.Context, do errand) (done bool, err error) {
	key := given{do.instance.ID, do.order, do.instance.Status}
	if !e.begin(key) {
		return false, nil
	}
	if err := e.guests.Order(ctx, do.instance, do.order); err != nil {
		e.note(key, orderRefused)
		return false, err
	}
	return true, nil
}

func (e *errands) begin(key given) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for old, until := range e.given {
		if until <= now {
			delete(e.given, old)
		}
	}
	if _, is := e.given[key]; is {
		return false
	}
	if e.given == nil {
		e.given = make(map[given]span.Instant)
	}
	e.given[key] = now.Add(orderAgain)
	return true
}

func (e *errands) note(key given, seconds int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.given[key] = e.now().Add(seconds)
}

const (
	// departGrace is how many seconds best-effort work has to notice that a host is needed,
	// and those after its own deadline in which it gives its server up itself.
	departGrace = 20
	// forgetMet is after how many seconds a server that was in the way may be so anew.
	forgetMet = 600
)

// departed leaves out the errands for servers of best-effort work that its controller
// suspends, or is about to, in time. Where nobody does, they are given.
func (s *Steward) departed(ctx context.Context, due []errand) ([]errand, error) {
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
	return slices.DeleteFunc(due, func(do errand) bool {
		deadline, is := until[do.instance.ID]
		return is && s.Now() <= max(deadline, s.errands.meet(do.instance.ID)).Add(departGrace)
	}), nil
}

// meet gives when a server was first in the way.
func (e *errands) meet(instance string) span.Instant {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for old, at := range e.met {
		if now >= at.Add(forgetMet) {
			delete(e.met, old)
		}
	}
	if _, known := e.met[instance]; !known {
		if e.met == nil {
			e.met = make(map[string]span.Instant)
		}
		e.met[instance] = now
	}
	return e.met[instance]
}

// evict gives the orders that are due for strangers on a host. In doubt there are
// none. What Nova refuses is for the log: the stranger stays, and so the start waits.
func (s *Steward) evict(ctx context.Context, w watch, strangers []inventory.Instance) {
	if s.Doubt() != "" {
		return
	}
	left, err := s.leftOn(ctx, w.host, strangers)
	if err != nil {
		s.Log.WarnContext(ctx, "it is not known which instances a reservation has left; they are told nothing", "host", w.host, "error", err)
	}
	due, err := s.departed(ctx, evictions(strangers, left, w.start, s.Now(), s.Rules))
	if err != nil {
		s.Log.WarnContext(ctx, "it is not known which servers best-effort work suspends itself; none is told to go", "host", w.host, "error", err)
		return
	}
	for _, do := range due {
		log := s.Log.With("reservation", w.r.ID, "host", w.host, "instance", do.instance.ID, "name", do.instance.Name, "project", do.instance.ProjectID,
			"order", do.order, "reason", do.reason)
		switch done, err := s.errands.give(ctx, do); {
		case err != nil:
			log.WarnContext(ctx, "an instance is not evicted: it did not take its order", "error", err)
		case done:
			log.InfoContext(ctx, "an instance is evicted: it has to make room", "preemptible", do.instance.Preemptible)
			s.tellLeft(ctx, left[do.instance.ID], do)
		}
	}
}
