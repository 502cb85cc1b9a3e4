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
	// Settle is that, where longer, of a host that this process has never seen well:
	// nobody here knows whether what it reads was in doubt before.
	Settle int64
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
	// Read is when the hosts were read. A Snapshot of Desk that is asked for after it is
	// no older.
	Read  func() span.Instant
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
// While the inventory is in doubt, nothing is done, and the time does not count. What
// counts is the time between readings, not that after the last.
func Healing(o HealingOptions) job.Job {
	h := &healing{HealingOptions: o, well: make(map[string]bool)}
	return job.Job{Name: "healing", Every: healEvery, Step: h.step}
}

// healing is used by one step at a time.
type healing struct {
	HealingOptions
	outages outages
	well    map[string]bool // the hosts that were seen well
	looked  span.Instant
	counted span.Instant // until when outages count, or would but for doubt
}

func (h *healing) step(ctx context.Context) error {
	now := h.Now()
	if now > h.looked.Add(longestBlink) {
		h.outages = nil
	}
	h.looked = now
	if h.Doubt() != "" {
		h.counted = now
		return nil
	}
	live := h.Desk.Live(span.Span{Start: now, End: span.Forever})
	h.look(live, now)
	ailing := slices.DeleteFunc(live, func(r reservation.Reservation) bool { return !h.ail(&r, now) })
	if len(ailing) == 0 {
		return nil
	}
	return job.Leased(h.Leases, "healing", leaseTTL, func(ctx context.Context, _ *job.Held) error {
		return h.heal(ctx, ailing)
	})(ctx)
}

// look notes which hosts have failed, and for how long.
func (h *healing) look(live []reservation.Reservation, now span.Instant) {
	read := h.Read()
	s := h.Desk.Snapshot()
	for _, host := range s.Hosts() {
		if host.Failure() == "" {
			h.well[host.Name] = true
		}
	}
	counted := min(h.counted, now) // the clock may have been set back
	h.counted = max(counted, read)
	h.outages = h.outages.next(failures(s, live), int64(h.counted-counted))
}

func (h *healing) heal(ctx context.Context, ailing []reservation.Reservation) error {
	var errs []error
	for _, was := range ailing {
		r, changed, err := h.Desk.Heal(ctx, was.ID, h.settled)
		if err != nil {
			errs = append(errs, fmt.Errorf("heal reservation %s: %w", was.ID, err))
		}
		if changed {
			h.Log.Warn("reservation healed", "reservation", r.ID, "project", r.ProjectID,
				"hosts_before", was.HostNames(), "hosts", r.HostNames(), "failed", h.reasons(&was), "degraded", r.Degraded)
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
			if reason := unfit(s, host); reason != "" {
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

// next gives the outages after another look, at hosts that were read seconds after those
// of the look before.
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

// settled says that a host has failed for long enough, and why.
func (h *healing) settled(host string) (reason string, yes bool) {
	found, failed := h.outages[host]
	enough := h.Rules.Grace
	if !h.well[host] {
		enough = max(enough, h.Rules.Settle)
	}
	return found.reason, failed && found.seconds >= enough
}

// reasons says of each host of r that has failed why, for operators.
func (h *healing) reasons(r *reservation.Reservation) (list []string) {
	for _, host := range r.HostNames() {
		if why, failed := h.settled(host); failed {
			list = append(list, host+": "+why)
		}
	}
	return list
}

// ail says that there is something to heal of r, or to take back. What is degraded stays
// so while one of its hosts has just failed: after a restart all seem to have.
func (h *healing) ail(r *reservation.Reservation, now span.Instant) bool {
	lacks, waits := false, false
	for _, c := range r.Claims {
		_, failed := h.outages[c.Host]
		_, settled := h.settled(c.Host)
		lacks = lacks || settled
		waits = waits || failed && !settled
	}
	switch {
	case r.Status == reservation.Ending:
		return false
	case r.Degraded != "":
		return lacks || !waits
	default:
		return lacks && r.Span.Start <= now.Add(h.Rules.Window)
	}
}
