package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Healer is what healing needs of the booking desk.
type Healer interface {
	Live(w span.Span) []reservation.Reservation
	Snapshot() *inventory.Snapshot
	Heal(ctx context.Context, id string, failed booking.Failed) (r reservation.Reservation, changed bool, err error)
}

// HealingRules say when a host is replaced.
type HealingRules struct {
	// Grace is for how many seconds a host must have failed without a break.
	Grace int64
	// Window is for how many seconds ahead reservations are healed; one that starts later
	// waits, as its host may be back by then.
	Window int64
}

// HealingOptions are what healing works on.
type HealingOptions struct {
	Desk   Healer
	Leases job.Leases
	// Doubt says why the inventory is not to be trusted now; empty where it is.
	Doubt func() string
	Rules HealingRules
	Now   func() span.Instant
	Log   *slog.Logger
}

const (
	healEvery = 5 * time.Second
	// longestBlink is how many seconds may lie between two looks. After a longer break
	// nobody knows whether a host has been well in between.
	longestBlink = int64(6 * healEvery / time.Second)
)

// Healing gives the job that has failed hosts replaced, those of the reservation that
// starts first before the others. Each replica watches the hosts; one of them acts.
// While the inventory is in doubt, nothing is done, and the time does not count.
func Healing(o HealingOptions) job.Job {
	h := &healing{HealingOptions: o}
	return job.Job{Name: "healing", Every: healEvery, Step: h.step}
}

// healing is used by one step at a time.
type healing struct {
	HealingOptions
	outages outages
	looked  span.Instant
}

func (h *healing) step(ctx context.Context) error {
	now := h.Now()
	elapsed := max(0, int64(now-h.looked))
	h.looked = now
	if h.Doubt() != "" {
		return nil
	}
	live := h.Desk.Live(span.Span{Start: now, End: span.Forever})
	if elapsed > longestBlink {
		h.outages = nil
	}
	h.outages = h.outages.next(failures(h.Desk.Snapshot(), live), elapsed)
	ailing := slices.DeleteFunc(live, func(r reservation.Reservation) bool { return !h.outages.ail(&r, now, h.Rules) })
	if len(ailing) == 0 {
		return nil
	}
	return job.Leased(h.Leases, "healing", leaseTTL, func(ctx context.Context, _ job.Lease) error {
		return h.heal(ctx, ailing)
	})(ctx)
}

func (h *healing) heal(ctx context.Context, ailing []reservation.Reservation) error {
	failed := func(host string) (string, bool) { return h.outages.settled(host, h.Rules.Grace) }
	var errs []error
	for _, was := range ailing {
		r, changed, err := h.Desk.Heal(ctx, was.ID, failed)
		if err != nil {
			errs = append(errs, fmt.Errorf("heal reservation %s: %w", was.ID, err))
		}
		if changed {
			h.Log.Warn("reservation healed", "reservation", r.ID, "project", r.ProjectID,
				"hosts_before", was.HostNames(), "hosts", r.HostNames(), "degraded", r.Degraded)
		}
	}
	return errors.Join(errs...)
}

// failures gives the hosts promised to live reservations that have failed, and why. One
// that sleeps or wakes has not.
func failures(s *inventory.Snapshot, live []reservation.Reservation) map[string]string {
	failed := make(map[string]string)
	for i := range live {
		for _, host := range live[i].HostNames() {
			reason := "it has left the cloud"
			if at, there := s.Index(host); there {
				reason = s.Host(at).Failure()
			}
			if reason != "" {
				failed[host] = reason
			}
		}
	}
	return failed
}

// outages are the hosts that have failed, by name.
type outages map[string]outage

// outage is why a host has failed, and for how many seconds it has been seen so.
type outage struct {
	reason  string
	seconds int64
}

// next gives the outages after another look, seconds after the one before.
func (o outages) next(failed map[string]string, seconds int64) outages {
	next := make(outages, len(failed))
	for host, reason := range failed {
		lasts := int64(0)
		if before, known := o[host]; known {
			lasts = before.seconds + seconds
		}
		next[host] = outage{reason, lasts}
	}
	return next
}

// settled says that a host has failed for at least grace seconds, and why.
func (o outages) settled(host string, grace int64) (reason string, yes bool) {
	found, failed := o[host]
	return found.reason, failed && found.seconds >= grace
}

// ail says that there is something to heal of r, or to take back. What is degraded stays
// so while one of its hosts has just failed: after a restart all seem to have.
func (o outages) ail(r *reservation.Reservation, now span.Instant, rules HealingRules) bool {
	lacks, waits := false, false
	for _, c := range r.Claims {
		_, failed := o[c.Host]
		_, settled := o.settled(c.Host, rules.Grace)
		lacks = lacks || settled
		waits = waits || failed && !settled
	}
	switch {
	case r.Status == reservation.Ending:
		return false
	case r.Degraded != "":
		return lacks || !waits
	default:
		return lacks && r.Span.Start <= now.Add(rules.Window)
	}
}
