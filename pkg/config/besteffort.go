package config

import "time"

// BestEffort is section [besteffort]: work that has no start time. Names are those of
// Haizea's section [scheduling] where it has them.
type BestEffort struct {
	Enabled        bool
	WakeupInterval time.Duration

	Backfilling             string // "off", "aggressive", "intermediate" or "conservative"
	BackfillingReservations int
	Suspension              string // "all" or "none"
	Migration               string // "no"
	Threshold               float64

	SuspendRate, ResumeRate               int // MB a second
	BootTime, ShutdownTime, OperationTime time.Duration

	BuildTimeout, OrderTimeout time.Duration
	Retries                    int
	RetryInterval              time.Duration
	MaxVMsPerProject           int
	Retention                  time.Duration
}

func bestEffortOptions(b *BestEffort) []option {
	return []option{
		boolean(&b.Enabled, "enabled", false,
			"Take requests for best-effort work. It takes [inventory] source = openstack, and a service user with a password. "+
				"What was taken is worked off in any case."),
		duration(&b.WakeupInterval, "wakeup_interval", 5*time.Second, time.Second, time.Minute,
			"How often the queue is looked at. While something is under way, every second."),
		choice(&b.Backfilling, "backfilling", "aggressive", []string{"off", "aggressive", "intermediate", "conservative"},
			"Whether work that fits into a gap overtakes what waits before it. Promised a start that others may not delay are: "+
				"with aggressive the first that waits, with intermediate as many as backfilling_reservations says, with conservative all."),
		integer(&b.BackfillingReservations, "backfilling_reservations", 4, 1, 100_000,
			"How many of those that wait are promised a start, with backfilling = intermediate."),
		choice(&b.Suspension, "suspension", "all", []string{"all", "none"},
			"Whether work runs up to a reservation, is suspended for it and resumed after it. With none it is only started "+
				"where it ends before; for a reservation that is booked later it is suspended all the same."),
		choice(&b.Migration, "migration", "no", []string{"no"},
			"Whether what is suspended may be resumed on another host. Nova does not migrate a suspended server."),
		float(&b.Threshold, "scheduling_threshold_factor", 1,
			"How many times as long as its suspension and its resumption take, work must be able to run to be started before a "+
				"reservation. Not negative."),
		integer(&b.SuspendRate, "suspend_rate", 50, 1, 1_000_000,
			"How many MB of memory a host writes in a second when it suspends a server. Too high a rate makes suspensions "+
				"late: a server that is late is deleted, and its work begun anew."),
		integer(&b.ResumeRate, "resume_rate", 50, 1, 1_000_000, "How many MB of memory it reads in a second when it resumes one."),
		duration(&b.BootTime, "boot_time", 30*time.Second, 0, time.Hour,
			"How long a server takes from its request until it is ACTIVE, for the plan."),
		duration(&b.ShutdownTime, "shutdown_time", 10*time.Second, 0, time.Hour, "How long it takes to delete one, for the plan."),
		duration(&b.OperationTime, "operation_time", 10*time.Second, 0, 10*time.Minute,
			"How long Nova and Almanac take for an order beside that, for each server of a request that is suspended or resumed "+
				"at once."),
		duration(&b.BuildTimeout, "build_timeout", 10*time.Minute, time.Second, day,
			"How long after its request a server that is not ACTIVE counts as failed."),
		duration(&b.OrderTimeout, "order_timeout", 2*time.Minute, time.Second, day,
			"How much longer than planned a suspension or a resumption may take. One for a reservation gets no more than half "+
				"of [reservation] eviction_time."),
		integer(&b.Retries, "retries", 3, 0, 1000, "How often a server that has failed is begun anew."),
		duration(&b.RetryInterval, "retry_interval", 30*time.Second, time.Second, time.Hour,
			"How long after it failed; it doubles each time, up to an hour."),
		integer(&b.MaxVMsPerProject, "max_vms_per_project", 100, 0, 1_000_000,
			"Most servers of best-effort work that a project may have in the queue, running or not. 0 means no limit."),
		duration(&b.Retention, "retention", 30*day, time.Hour, longest,
			"How long requests that are over are kept."),
	}
}
