// SPDX-License-Identifier: Apache-2.0

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
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Healer is the part of booking.Service that healing uses.
type Healer interface {
	Live(w span.Span) []reservation.Reservation
	Snapshot() *inventory.Snapshot
	Heal(ctx context.Context, id string, failed planning.Failed) (r reservation.Reservation, changed bool, err error)
}

// HealingRules determine when a host is replaced. Times are in seconds.
type HealingRules struct {
	// Grace is for how many seconds, without a break, a host must have failed before it is
	// replaced.
	Grace int64
	// Settle is the longer grace, in seconds, for a host that this process has never seen working,
	// since the process cannot know whether the inventory was untrusted before.
	Settle int64
	// Window is how many seconds before their start reservations are healed. Later ones wait, since
	// the host may work again by then.
	Window int64
}

// HealingOptions configure Healing.
type HealingOptions struct {
	Booking Healer
	Leases  job.Leases
	// Untrusted returns why the inventory is untrusted; empty if it is trusted.
	Untrusted func() string
	// Read returns when the hosts were read. A Snapshot of Booking that is requested after the call
	// of Read is not older than that.
	Read  func() span.Instant
	Rules HealingRules
	Now   func() span.Instant
	Log   *slog.Logger
}

const (
	healEvery = 5 * time.Second
	// longestBreak is the maximum number of seconds between two checks. After a longer break it is
	// unknown whether a host has worked in the meantime.
	longestBreak = int64(6 * healEvery / time.Second)
)

// Healing returns the job that replaces failed hosts, those of the earliest reservations first.
// Each replica observes the hosts, and one of them acts. While the inventory is untrusted nothing
// is healed, and this time does not count as failed. Only the time between readings counts, not the
// time since the last one.
func Healing(o HealingOptions) job.Job {
	h := &healing{HealingOptions: o, working: make(map[string]bool)}
	return job.Job{Name: "healing", Every: healEvery, Step: h.step}
}

// healing is the state of the job. It is used by one step at a time.
type healing struct {
	HealingOptions
	outages  outages
	working  map[string]bool // the hosts that were seen working
	lastStep span.Instant    // when the last step ran
	counted  span.Instant    // the instant until which outages were counted, or skipped while untrusted
}

func (h *healing) step(ctx context.Context) error {
	now := h.Now()
	if now > h.lastStep.Add(longestBreak) {
		h.outages = nil
	}
	h.lastStep = now
	if h.Untrusted() != "" {
		h.counted = now
		return nil
	}
	live := h.Booking.Live(span.Span{Start: now, End: span.Forever})
	h.observe(live, now)
	ailing := slices.DeleteFunc(live, func(r reservation.Reservation) bool { return !h.needsHealing(&r, now) })
	if len(ailing) == 0 {
		return nil
	}
	return job.Leased(h.Leases, "healing", leaseTTL, func(ctx context.Context, _ *job.Held) error {
		return h.heal(ctx, ailing)
	})(ctx)
}

// observe records which hosts have failed, and for how long.
func (h *healing) observe(live []reservation.Reservation, now span.Instant) {
	read := h.Read()
	s := h.Booking.Snapshot()
	for _, host := range s.Hosts() {
		if host.Failure() == "" {
			h.working[host.Name] = true
		}
	}
	counted := min(h.counted, now) // the clock may have been set back
	h.counted = max(counted, read)
	h.outages = h.outages.next(failures(s, live), int64(h.counted-counted))
}

func (h *healing) heal(ctx context.Context, ailing []reservation.Reservation) error {
	var errs []error
	for _, was := range ailing {
		r, changed, err := h.Booking.Heal(ctx, was.ID, h.failedLongEnough)
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

// failures returns the failed hosts of live reservations, with the reason for each. A sleeping or
// waking host has not failed.
func failures(s *inventory.Snapshot, live []reservation.Reservation) map[string]string {
	failed := make(map[string]string)
	for i := range live {
		for _, host := range live[i].HostNames() {
			if reason := failureOf(s, host); reason != "" {
				failed[host] = reason
			}
		}
	}
	return failed
}

// outages contains the failed hosts, by name.
type outages map[string]outage

// outage is the reason why a host has failed, and the number of seconds for which it has been
// observed as failed.
type outage struct {
	reason  string
	seconds int64
}

// next returns the outages after the next reading of the hosts, seconds later.
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

// failedLongEnough reports whether a host has failed for long enough, and the reason.
func (h *healing) failedLongEnough(host string) (reason string, yes bool) {
	found, failed := h.outages[host]
	enough := h.Rules.Grace
	if !h.working[host] {
		enough = max(enough, h.Rules.Settle)
	}
	return found.reason, failed && found.seconds >= enough
}

// reasons returns, for operators, a sentence about each failed host of r.
func (h *healing) reasons(r *reservation.Reservation) (list []string) {
	for _, host := range r.HostNames() {
		if why, failed := h.failedLongEnough(host); failed {
			list = append(list, host+": "+why)
		}
	}
	return list
}

// needsHealing reports whether hosts of r must be replaced, or r may no longer be degraded. A
// degraded reservation stays degraded while one of its hosts has failed only recently, because
// after a restart all failures look recent. Maintenance needs no other hosts.
func (h *healing) needsHealing(r *reservation.Reservation, now span.Instant) bool {
	lacks, waits := false, false
	for _, c := range r.Claims {
		_, failed := h.outages[c.Host]
		_, settled := h.failedLongEnough(c.Host)
		lacks = lacks || settled
		waits = waits || failed && !settled
	}
	switch {
	case r.Status == reservation.Ending, r.Maintenance:
		return false
	case r.Degraded != "":
		return lacks || !waits
	default:
		return lacks && r.Span.Start <= now.Add(h.Rules.Window)
	}
}
