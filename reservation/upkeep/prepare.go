package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"math"
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
	// prepareTTL is how long one replica prepares before another may; no step lasts
	// longer.
	prepareTTL = time.Minute
)

// Preparation gives the job that has hosts ready before reservations start on them,
// and clears up after those that were given up. changed, which may be nil, tells that
// something was booked or changed.
func (s *Steward) Preparation(leases job.Leases, changed <-chan struct{}) job.Job {
	step := func(ctx context.Context, _ *job.Held) error {
		ctx, stop := context.WithTimeout(ctx, prepareTTL)
		defer stop()
		return s.Prepare(ctx)
	}
	return job.Job{Name: "preparation", Every: prepareEvery, Step: job.Leased(leases, "preparation", prepareTTL, step), Wake: changed}
}

// Prepare makes the layout on the cloud what the live reservations ask for, tells
// strangers to leave hosts that are promised, and clears up after reservations that
// are over. What fails for one reservation keeps no other back. In doubt it only adds.
func (s *Steward) Prepare(ctx context.Context) error {
	layout, err := s.looks.fresh(ctx)
	if err != nil {
		return told(err, "look what lies on the cloud")
	}
	live, hosts := s.Promises.Live(always), s.Snapshot()
	now, unknown := due(unheld(s.differencesOn(hosts, layout, live), hosts), live, s.Doubt() != "")
	now = sparing(now, live, hosts, s.Now())
	ready, joining := apart(now, live)
	errs := []error{s.lookAround(ctx, live), s.carryApart(ctx, ready, live), s.join(ctx, joining, live)}
	if s.Doubt() == "" {
		errs = append(errs, s.clearUpAll(ctx, unknown))
	}
	if len(now) > 0 { // so that starts know that all is in place
		_, err := s.looks.fresh(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// due divides the steps: those to be done now, and the ids of reservations that are
// not live of which something lies on the cloud. A host that has something of such a
// reservation, which another replica may have just booked, keeps its fence.
func due(steps []fence.Step, live []reservation.Reservation, doubt bool) (now []fence.Step, unknown []string) {
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
		if known[step.Reservation] && !opens && (step.Adds() || !doubt) {
			now = append(now, step)
		}
	}
	slices.Sort(unknown)
	return now, slices.Compact(unknown)
}

// sparing leaves out what takes things away from hosts that the inventory does not list
// and live reservations still hold: they may be there all the same, with the owner's
// instances, until healing has settled it.
func sparing(steps []fence.Step, live []reservation.Reservation, hosts *inventory.Snapshot, now span.Instant) []fence.Step {
	held := make(map[string]bool)
	for _, r := range live {
		for _, c := range r.Claims {
			if c.Span.End > now || c.Span.End >= r.Span.End {
				held[c.Host] = true
			}
		}
	}
	return slices.DeleteFunc(steps, func(step fence.Step) bool {
		_, listed := hosts.Index(step.Host)
		return !step.Adds() && held[step.Host] && !listed
	})
}

// carryApart does steps that were decided for the live reservations, those of one kind
// at once and kind after kind. Where one has failed, what comes after it for the same
// host of the same reservation is left; and where that was for no host, all that comes
// after it for the reservation.
func (s *Steward) carryApart(ctx context.Context, steps []fence.Step, live []reservation.Reservation) error {
	decided := make(map[string]reservation.Status, len(live))
	for _, r := range live {
		decided[r.ID] = r.Status
	}
	var mu sync.Mutex
	failed := make(map[place]bool)
	var errs []error
	for len(steps) > 0 {
		n := slices.IndexFunc(steps, func(step fence.Step) bool { return step.Action != steps[0].Action })
		if n < 0 {
			n = len(steps)
		}
		able := slices.DeleteFunc(slices.Clone(steps[:n]), func(step fence.Step) bool {
			return failed[place{step.Reservation, ""}] || failed[place{step.Reservation, step.Host}]
		})
		steps = steps[n:]
		errs = append(errs, each(ctx, s.preparing, len(able), func(i int) error {
			if s.overtaken(able[i], decided[able[i].Reservation]) {
				return nil
			}
			err := s.carry(ctx, able[i])
			if err != nil {
				s.Log.WarnContext(ctx, "a step on the cloud failed; it is tried again", "action", able[i].Action,
					"reservation", able[i].Reservation, "host", able[i].Host, "error", err)
				mu.Lock()
				defer mu.Unlock()
				failed[place{able[i].Reservation, able[i].Host}] = true
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

// underWay says that the step is done by the event that the reservation of that status
// is in: an end takes its things away itself, and a start makes and opens its flavors.
func underWay(step fence.Step, its reservation.Status) bool {
	return its == reservation.Ending || its == reservation.Starting && step.Flavor.ID != ""
}

// overtaken says that the step is not to be done any more. One of a reservation was
// decided for a status that it no longer has, or is done by its event. One that opens
// a host to all was decided before the host was promised again.
func (s *Steward) overtaken(step fence.Step, decided reservation.Status) bool {
	if step.Reservation == "" {
		return !step.Adds() && s.needed(step, "")
	}
	r, live := s.Promises.Reservation(step.Reservation)
	return !live || r.Status != decided || underWay(step, r.Status)
}

// needed says that live reservations but one need by now what a step of the fence takes
// from its host.
func (s *Steward) needed(step fence.Step, but string) bool {
	live := slices.DeleteFunc(s.Promises.Live(always), func(r reservation.Reservation) bool {
		return r.ID == but || !slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == step.Host })
	})
	hosts, now := s.Snapshot(), s.Now()
	want := fence.Desired(live, hosts, now, s.Rules.Fence)
	return len(sparing([]fence.Step{step}, live, hosts, now)) == 0 ||
		slices.Contains(want.Aggregates[step.Aggregate.Name].Hosts, step.Host) ||
		slices.ContainsFunc(step.Traits, func(trait string) bool { return slices.Contains(want.Traits[step.Host], trait) })
}

// lookAround finds the strangers on promised hosts, says so, and tells them to go when
// it is time.
func (s *Steward) lookAround(ctx context.Context, live []reservation.Reservation) error {
	hosts, now := s.Snapshot(), s.Now()
	var worthwhile []watch
	for _, w := range watches(live, now, s.Rules) {
		if w.worthwhile(hosts, live, now, s.Rules) {
			worthwhile = append(worthwhile, w)
		}
	}
	s.warnings.forget(live)
	return each(ctx, s.preparing, len(worthwhile), func(i int) error {
		w := worthwhile[i]
		guests, err := s.Guests.On(ctx, w.host)
		if err != nil {
			return told(err, "look who is on host %s", w.host)
		}
		found := w.intruders(guests, live, now, s.Rules)
		s.warn(ctx, w, found)
		s.evict(ctx, w, found)
		return nil
	})
}

// warn tells the operator of strangers, once for each reservation and host. Where all of
// them are told to go before the start, that is no warning.
func (s *Steward) warn(ctx context.Context, w watch, found []inventory.Instance) {
	if len(found) == 0 || !s.warnings.first(w.r.ID, w.host) {
		return
	}
	var ids []string
	for _, i := range found {
		ids = append(ids, i.ID)
	}
	level := slog.LevelWarn
	// Where it is not known what a reservation has left, evict says so.
	left, err := s.leftOn(ctx, w.host, found)
	if err == nil && len(evictions(found, left, w.start, w.start, s.Rules)) == len(found) {
		level = slog.LevelInfo
	}
	s.Log.Log(ctx, level, "a host of a reservation is occupied by instances of others", "host", w.host, "reservation", w.r.ID,
		"project", w.r.ProjectID, "starts", w.start.String(), "instances", ids)
}

// warnings remembers of what the operator was told.
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

// clearUpAll clears up after those of the reservations that are over. One of which
// there are no records is an orphan, and the doctor's.
func (s *Steward) clearUpAll(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	known, err := s.Records.Recall(ctx, booking.Recall{Since: math.MaxInt64, IDs: ids})
	if err != nil {
		return told(err, "read the reservations of which something lies on the cloud")
	}
	over := slices.DeleteFunc(known.Reservations, func(r reservation.Reservation) bool {
		return r.Status.Live() || !slices.Contains(ids, r.ID)
	})
	return each(ctx, s.preparing, len(over), func(i int) error {
		if err := s.clearUp(ctx, over[i]); err != nil {
			return told(err, "clear up after reservation %s", over[i].ID)
		}
		return nil
	})
}
