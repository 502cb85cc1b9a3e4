// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"time"

	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// BestEffort is section [besteffort]: work without a start time. Names are those of
// Haizea's section [scheduling] where Haizea has the same option.
type BestEffort struct {
	Enabled          bool
	WakeupInterval   time.Duration
	Rules            besteffort.Rules
	Limits           state.Limits // Unanswered follows from [nova] timeout
	MaxVMsPerProject int
	Retention        int64 // seconds
}

// backfillings are Haizea's words for the kinds of backfilling.
var backfillings = []word[besteffort.Backfilling]{
	{"off", besteffort.None}, {"aggressive", besteffort.Aggressive}, {"intermediate", besteffort.Intermediate}, {"conservative", besteffort.Conservative},
}

func bestEffortOptions(b *BestEffort) []option {
	r, times, l := &b.Rules, &b.Rules.Overheads, &b.Limits
	return []option{
		boolean(&b.Enabled, "enabled", false,
			"Accept requests for best-effort work. Requires [inventory] source = openstack and a service user with a password, or source = simulated. "+
				"Requests accepted earlier are served even if this is false."),
		duration(&b.WakeupInterval, "wakeup_interval", 5*time.Second, time.Second, time.Minute,
			"How often Almanac checks the queue. While an operation is in progress it checks every second."),
		named(&r.Backfilling, "backfilling", besteffort.Aggressive, backfillings,
			"Which queued requests may start before earlier ones. off: none. aggressive: those that do not delay the first queued "+
				"request. intermediate: those that delay none of the first backfilling_reservations requests. conservative: those that "+
				"delay no earlier request."),
		integer(&r.Promises, "backfilling_reservations", 4, 1, 100_000,
			"With backfilling = intermediate: number of queued requests whose planned start no later request may delay."),
		named(&r.Suspend, "suspension", true, []word[bool]{{"all", true}, {"none", false}},
			"all: work runs until a reservation needs its host, is suspended and resumes afterwards. none: work starts only if it "+
				"ends before the next reservation; a reservation booked later still suspends it."),
		named(&r.Migrate, "migration", false, []word[bool]{{"no", false}},
			"Whether suspended work may resume on another host. Nova cannot migrate a suspended server."),
		number(in(&r.Worthwhile), "scheduling_threshold_factor", 1, 0, math.MaxFloat64,
			"Work starts before a reservation only if it can run at least this many times as long as its suspension and "+
				"resumption take."),
		integer(&times.SuspendRate, "suspend_rate", 50, 1, 1_000_000,
			"MB of memory that a host writes per second when it suspends a server. If this is too high, suspensions end late, "+
				"and a late server is deleted and its work restarted."),
		integer(&times.ResumeRate, "resume_rate", 50, 1, 1_000_000, "MB of memory that a host reads per second when it resumes a server."),
		duration(&times.Boot, "boot_time", 30*time.Second, 0, time.Hour,
			"Planned time from the request for a server until it is ACTIVE."),
		duration(&times.Shutdown, "shutdown_time", 10*time.Second, 0, time.Hour, "Planned time for deleting a server."),
		duration(&times.Operation, "operation_time", 10*time.Second, 0, 10*time.Minute,
			"Planned overhead of Nova and Almanac per operation, in addition to the time for memory, for each server of a request "+
				"that is suspended or resumed at the same time."),
		duration(&l.Build, "build_timeout", 10*time.Minute, time.Second, day,
			"A server that is not ACTIVE this long after its request counts as failed."),
		duration(&l.Order, "order_timeout", 2*time.Minute, time.Second, day,
			"How much longer than planned a suspension or resumption may take. A suspension for a reservation may take at most half "+
				"of [reservation] eviction_time longer."),
		integer(&l.Retries, "retries", 3, 0, 1000,
			"How many times Almanac starts the work of a failed server over, on a new server, before the work has failed. A first "+
				"failure does not count if there are other hosts."),
		duration(&l.Backoff, "retry_interval", 30*time.Second, time.Second, time.Hour,
			"Wait before the first restart of a failed server; doubles each time, up to one hour."),
		integer(&b.MaxVMsPerProject, "max_vms_per_project", 100, 0, 1_000_000,
			"Maximum number of queued and running best-effort servers per project. 0 means no limit."),
		duration(&b.Retention, "retention", 30*day, time.Hour, longest,
			"How long finished requests are kept."),
	}
}
