// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const (
	prepareEvery = 20 * time.Second
	// prepareTTL is the duration of the lease of the preparation job, and the time limit of each of
	// its steps.
	prepareTTL = time.Minute
)

// Preparation returns the job that prepares hosts before reservations start and clears up after
// canceled ones. changed receives a value when something was booked or changed; it may be nil.
func (s *Enforcer) Preparation(leases job.Leases, changed <-chan struct{}) job.Job {
	step := func(ctx context.Context, _ *job.Held) error {
		ctx, stop := context.WithTimeout(ctx, prepareTTL)
		defer stop()
		return s.Prepare(ctx)
	}
	return job.Job{Name: "preparation", Every: prepareEvery, Step: job.Leased(leases, "preparation", prepareTTL, step), Wake: changed}
}

// Prepare makes the layout in the cloud match the live reservations, orders foreign instances
// to leave claimed hosts, and clears up after ended reservations. A failure for one reservation
// does not affect others. While the inventory is untrusted it only adds.
func (s *Enforcer) Prepare(ctx context.Context) error {
	layout, err := s.layoutCache.fresh(ctx)
	if err != nil {
		return wrapForUser(err, "read the fence in OpenStack")
	}
	live, hosts := s.Promises.Live(span.Always), s.Snapshot()
	now, unknown := splitDue(withoutHeldRooms(s.differencesOn(hosts, layout, live), hosts), live, s.Untrusted() != "")
	now = withoutUnlisted(now, live, hosts, s.Now())
	ready, added := splitAdded(now, live)
	errs := []error{s.checkHosts(ctx, live), s.carryConcurrently(ctx, ready, live), s.addHosts(ctx, added, live)}
	if s.Untrusted() == "" {
		errs = append(errs, s.clearUpAll(ctx, unknown))
	}
	if len(now) > 0 { // starts then find a fresh layout
		_, err := s.layoutCache.fresh(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// splitDue returns the steps to carry out now, and the ids of reservations that are not live but
// have resources in the cloud. A host with a resource of such a reservation, which another replica
// may have just booked, stays in the fence.
func splitDue(steps []fence.Step, live []reservation.Reservation, untrusted bool) (now []fence.Step, unknown []string) {
	known := map[string]bool{"": true} // the fence
	for _, r := range live {
		known[r.ID] = true
	}
	strange := make(map[string]bool) // hosts
	for _, step := range steps {
		if !known[step.Reservation] {
			strange[step.Host] = true
			unknown = append(unknown, step.Reservation)
		}
	}
	for _, step := range steps {
		opens := step.Reservation == "" && !step.Adds() && strange[step.Host]
		if known[step.Reservation] && !opens && (step.Adds() || !untrusted) {
			now = append(now, step)
		}
	}
	slices.Sort(unknown)
	return now, slices.Compact(unknown)
}

// withoutUnlisted returns the steps without removals on hosts that live reservations still hold
// although the inventory does not list them: these hosts may still run the owner's instances until
// healing replaces them.
func withoutUnlisted(steps []fence.Step, live []reservation.Reservation, hosts *inventory.Snapshot, now span.Instant) []fence.Step {
	held := make(map[string]bool)
	for _, r := range live {
		for _, c := range r.Claims {
			if !r.Over(c, now) {
				held[c.Host] = true
			}
		}
	}
	return slices.DeleteFunc(steps, func(step fence.Step) bool {
		_, listed := hosts.Index(step.Host)
		return !step.Adds() && held[step.Host] && !listed
	})
}

// carryConcurrently carries out steps that were decided for the live reservations: one kind after
// the other, the steps of one kind concurrently. After a failure it skips later steps for the same
// host of the same reservation; if the failed step concerned no host, it skips all later steps for
// the reservation.
func (s *Enforcer) carryConcurrently(ctx context.Context, steps []fence.Step, live []reservation.Reservation) error {
	decided := make(map[string]reservation.Status, len(live))
	for _, r := range live {
		decided[r.ID] = r.Status
	}
	var mu sync.Mutex
	failed := make(map[heldHost]bool)
	var errs []error
	for len(steps) > 0 {
		n := slices.IndexFunc(steps, func(step fence.Step) bool { return step.Action != steps[0].Action })
		if n < 0 {
			n = len(steps)
		}
		able := slices.DeleteFunc(slices.Clone(steps[:n]), func(step fence.Step) bool {
			return failed[heldHost{step.Reservation, ""}] || failed[heldHost{step.Reservation, step.Host}]
		})
		steps = steps[n:]
		errs = append(errs, each(ctx, s.preparing, len(able), func(i int) error {
			if s.overtaken(able[i], decided[able[i].Reservation]) {
				return nil
			}
			err := s.carry(ctx, able[i])
			if err != nil {
				s.Log.WarnContext(ctx, "a step of the fence failed; retrying", "action", able[i].Action,
					"reservation", able[i].Reservation, "host", able[i].Host, "error", err)
				mu.Lock()
				defer mu.Unlock()
				failed[heldHost{able[i].Reservation, able[i].Host}] = true
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

// underWay reports whether an event of the reservation carries out the step itself: an end removes
// the reservation's resources, and a start creates and opens its flavors.
func underWay(step fence.Step, its reservation.Status) bool {
	return its == reservation.Ending || its == reservation.Starting && step.Flavor.ID != ""
}

// overtaken reports whether the step no longer applies: the status of its reservation has changed
// since it was decided, an event carries it out, it adds a host that the reservation no longer holds,
// or it opens a host that has been reserved again in the meantime.
func (s *Enforcer) overtaken(step fence.Step, decided reservation.Status) bool {
	if step.Reservation == "" {
		return !step.Adds() && s.needed(step, "")
	}
	r, live := s.Promises.Reservation(step.Reservation)
	lost := step.Adds() && step.Host != "" && !slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool {
		return c.Host == step.Host && !r.Over(c, s.Now())
	})
	return !live || r.Status != decided || underWay(step, r.Status) || lost
}

// needed reports whether live reservations, except the one with the id but, now need what a step of
// the fence removes from its host.
func (s *Enforcer) needed(step fence.Step, but string) bool {
	live := slices.DeleteFunc(s.Promises.Live(span.Always), func(r reservation.Reservation) bool {
		return r.ID == but || !slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == step.Host })
	})
	hosts, now := s.Snapshot(), s.Now()
	want := fence.Desired(live, hosts, now, s.Rules.Fence)
	return len(withoutUnlisted([]fence.Step{step}, live, hosts, now)) == 0 ||
		slices.Contains(want.Aggregates[step.Aggregate.Name].Hosts, step.Host) ||
		slices.ContainsFunc(step.Traits, func(trait string) bool { return slices.Contains(want.Traits[step.Host], trait) })
}

// checkHosts finds foreign instances on claimed hosts, logs them, and orders them to leave when
// that is due.
func (s *Enforcer) checkHosts(ctx context.Context, live []reservation.Reservation) error {
	hosts, now := s.Snapshot(), s.Now()
	var checks []watch
	for _, w := range watches(live, now, s.Rules) {
		if w.needsCheck(hosts, live, now, s.Rules) {
			checks = append(checks, w)
		}
	}
	s.warnings.forget(live)
	return each(ctx, s.preparing, len(checks), func(i int) error {
		w := checks[i]
		instances, err := s.Instances.On(ctx, w.host)
		if err != nil {
			return wrapForUser(err, "read the instances on host %s", w.host)
		}
		found := w.toEvict(instances, live, now, s.Rules)
		s.warn(ctx, w, found)
		s.evict(ctx, w, found)
		return nil
	})
}

// warn logs foreign instances once for each reservation and host, as a warning unless all of them
// will be ordered to leave before the start.
func (s *Enforcer) warn(ctx context.Context, w watch, found []inventory.Instance) {
	if len(found) == 0 || !s.warnings.first(w.r.ID, w.host) {
		return
	}
	var ids []string
	for _, i := range found {
		ids = append(ids, i.ID)
	}
	level := slog.LevelWarn
	// If leftOn fails, evict logs it.
	left, err := s.leftOn(ctx, w.host, found)
	if err == nil && len(evictionOrders(found, left, w.start, w.start, s.Rules)) == len(found) {
		level = slog.LevelInfo
	}
	s.Log.Log(ctx, level, "instances of others occupy a reserved host", "host", w.host, "reservation", w.r.ID,
		"project", w.r.ProjectID, "starts", w.start.String(), "instances", ids)
}

// warnings stores which problems were already logged.
type warnings struct {
	mu    sync.Mutex
	given map[string]map[string]bool // by reservation and host
}

func (w *warnings) first(reservation, host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.given == nil {
		w.given = make(map[string]map[string]bool)
	}
	if w.given[reservation] == nil {
		w.given[reservation] = make(map[string]bool)
	}
	before := w.given[reservation][host]
	w.given[reservation][host] = true
	return !before
}

func (w *warnings) forget(live []reservation.Reservation) {
	there := make(map[string]bool, len(live))
	for _, r := range live {
		there[r.ID] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.given {
		if !there[id] {
			delete(w.given, id)
		}
	}
}

// clearUpAll clears up after those of the reservations that are over. A reservation without a
// record is left; the doctor reports it.
func (s *Enforcer) clearUpAll(ctx context.Context, ids []string) error {
	over, err := booking.Stored(ctx, s.Records, ids)
	if err != nil {
		return wrapForUser(err, "read the reservations that still have something in OpenStack")
	}
	over = slices.DeleteFunc(over, func(r reservation.Reservation) bool { return r.Status.Live() })
	return each(ctx, s.preparing, len(over), func(i int) error {
		if err := s.clearUp(ctx, over[i]); err != nil {
			return wrapForUser(err, "clear up after reservation %s", over[i].ID)
		}
		return nil
	})
}
