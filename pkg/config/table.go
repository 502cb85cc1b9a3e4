package config

import (
	"slices"
	"time"
)

const (
	day = 24 * time.Hour
	// longest is a limit that nobody reaches and that no sum of times overflows.
	longest = 100 * 365 * day
)

// section is one [section] of a file.
type section struct {
	name    string
	options []option
}

// table gives every option there is, bound to its field of c, in the order of
// the sample. It leaves c as it is.
func table(c *Config) []section {
	return []section{
		{"DEFAULT", slices.Concat(logOptions(&c.Default), transportOptions(&c.Default), zoneOptions(&c.Scheduler))},
		{"api", apiOptions(&c.API)},
		{"oslo_middleware", []option{
			boolean(&c.API.ParseProxyHeaders, "enable_proxy_headers_parsing", false,
				"Believe the X-Forwarded-* headers: only behind a proxy that sets them."),
		}},
		{"keystone_authtoken", keystoneOptions(&c.Keystone)},
		{"oslo_policy", policyOptions(&c.Policy)},
		{"noauth", []option{
			text(&c.NoAuth.ProjectID, "project_id", "demo",
				"Project of every caller."),
			text(&c.NoAuth.UserID, "user_id", "demo",
				"User that every caller is."),
			list(&c.NoAuth.Roles, "roles", []string{"admin"},
				"Roles of every caller."),
		}},
		{"database", slices.Concat([]option{
			text(&c.Database.Connection, "connection", "sqlite:///var/almanac.db",
				"Where the database is, as an SQLAlchemy URL: mysql+pymysql://user:password@host/almanac, or "+
					"sqlite:/// before a relative path and sqlite://// before an absolute one. Go's forms are taken too.").asSecret(),
			duration(&c.Database.BusyTimeout, "busy_timeout", 5*time.Second, 0, time.Minute,
				"How long a transaction of SQLite waits for another to release the database before it gives up."),
		}, serverOptions(&c.Database))},
		{"oslo_messaging_rabbit", rabbitOptions(&c.Rabbit)},
		{"oslo_messaging_notifications", notificationOptions(&c.Notifications)},
		{"inventory", inventoryOptions(&c.Inventory)},
		{"nova", slices.Concat(novaOptions(&c.Nova), cellOptions(&c.Cells))},
		{"api_database", apiDatabaseOptions(&c.Cells)},
		{"placement", clientOptions(&c.Placement, "Placement")},
		{"preemptible", preemptibleOptions(&c.Preemptible)},
		{"scheduler", slices.Concat(schedulerOptions(&c.Scheduler), prefilterOptions(&c.Prefilters))},
		{"filter_scheduler", slices.Concat(filterSchedulerOptions(&c.Filters), weigherOptions(&c.Weighers))},
		{"metrics", metricsOptions(&c.Weighers)},
		{"reservation", slices.Concat(reservationOptions(&c.Reservation), instanceOptions(&c.Reservation))},
		{"limits", limitOptions(&c.Limits)},
		{"lifecycle", []option{
			duration(&c.Lifecycle.PollInterval, "poll_interval", time.Second, time.Second, time.Minute,
				"How often reservations are looked over for starts, warnings and ends that are due."),
		}},
		{"healing", healingOptions(&c.Healing)},
		{"energy", energyOptions(&c.Energy)},
		{"packing", packingOptions(&c.Packing)},
		{"besteffort", bestEffortOptions(&c.BestEffort)},
		{"glance", clientOptions(&c.Glance, "Glance")},
		{"staging", stagingOptions(&c.Staging)},
	}
}

func logOptions(d *Default) []option {
	return []option{
		boolean(&d.Debug, "debug", false,
			"Write debug messages to the log.").asMutable(),
		text(&d.LogFile, "log_file", "",
			"File that the log is written to, opened anew at SIGHUP. Empty means standard error, unless log_dir is set."),
		text(&d.LogDir, "log_dir", "",
			"Folder of the log: a relative log_file lies there; without log_file the file has the program's name."),
		boolean(&d.UseJSON, "use_json", false,
			"Write the log as JSON, one object a line."),
	}
}

func reservationOptions(r *Reservation) []option {
	return []option{
		choice(&r.DefaultPolicy, "default_policy", "first-fit", []string{
			"first-fit", "pe-best-fit", "pe-worst-fit", "duration-best-fit", "duration-worst-fit",
			"pe-duration-best-fit", "pe-duration-worst-fit",
		}, "Policy that chooses among the feasible starts where a request names none.").asMutable(),
		choice(&r.Fence, "fence", "always", []string{"always", "lead_time"},
			"When a promised host is closed to the instances of others: always, from the booking on; or only "+
				"from lead_time before the start. Preemptible instances may always use it until the start."),
		duration(&r.LeadTime, "lead_time", 15*time.Minute, 0, 30*day,
			"How long before the start of a reservation its hosts are made ready."),
		duration(&r.BeforeEnd, "before_end", time.Hour, 0, 30*day,
			"How long before the end of a reservation its owner is warned, where the request does not say. A "+
				"reservation shorter than twice that has its warning after half of its time."),
		choice(&r.OnEnd, "on_end", "delete", []string{"delete", "stop", "shelve", "leave"},
			"What happens at the end of a reservation to the instances that run in it, where the request does "+
				"not say. It must be among on_end_choices.").asMutable(),
		list(&r.OnEndChoices, "on_end_choices", []string{"delete", "shelve"},
			"What a request may choose of delete, stop, shelve and leave. Instances that stop or leave keep on a host that is "+
				"promised to others next. Reservations that are booked keep what they have.").asMutable(),
		duration(&r.IdempotencyKeyTTL, "idempotency_key_ttl", day, time.Minute, 30*day,
			"How long an Idempotency-Key and the answer to it are remembered."),
	}
}

// instanceOptions are about what runs on the hosts of a cloud.
func instanceOptions(r *Reservation) []option {
	return []option{
		choice(&r.RunningInstances, "running_instances", "wait", []string{"wait", "migrate"},
			"What happens, from lead_time before the start on, to instances of others on the hosts of a reservation: "+
				"wait until somebody takes them away, or migrate them. The start is late while one is there."),
		choice(&r.EndedInstances, "ended_instances", "migrate", []string{"migrate", "shelve", "delete", "wait"},
			"What happens, from lead_time before the start on, to instances that a reservation which is over has left on the "+
				"hosts (on_end stop or leave). With migrate, those that are still there at eviction_time before the start are shelved."),
		choice(&r.PreemptibleInstances, "preemptible_instances", "delete", []string{"delete", "shelve", "migrate", "wait"},
			"What happens to preemptible ones, from eviction_time before the start on."),
		duration(&r.EvictionTime, "eviction_time", 2*time.Minute, 0, day,
			"How long before the start preemptible instances are taken away."),
		duration(&r.EndGrace, "end_grace", time.Minute, 0, time.Hour,
			"How long instances that are deleted at the end get to shut down. They get none where that would make "+
				"the next reservation of a host late."),
		integer(&r.RootDisk, "root_disk", 20, 0, 1_000_000,
			"Size in GB of the root disk of the flavor that takes a whole host. The flavor takes all of the host's disk in Placement "+
				"all the same. Nova resizes a server to no flavor with a smaller root disk than its own. 0 is all of the host's disk."),
		list(&r.Flavors, "flavors", nil,
			"Names of flavors that the owner of a reservation of hosts gets, each in a form that is placed on these hosts "+
				"only, beside the one that takes a whole host."),
	}
}

func inventoryOptions(i *Inventory) []option {
	return []option{
		choice(&i.Source, "source", "file", []string{"file", "openstack"},
			"Where the hosts come from: the hosts_file, or Nova and Placement. It is read where the role inventory is; "+
				"processes with the role api need the same value."),
		text(&i.HostsFile, "hosts_file", "etc/almanac/hosts.yaml",
			"YAML file that lists the hosts, read where the role inventory is."),
		duration(&i.RefreshInterval, "refresh_interval", 10*time.Second, time.Second, time.Hour,
			"How often the hosts are read again."),
		duration(&i.FullPollInterval, "full_poll_interval", 10*time.Minute, time.Minute, day,
			"How often everything is read from Nova and Placement; in between, what has changed."),
		integer(&i.MaxChangePercent, "max_change_percent", 20, 0, 100,
			"Share of the hosts that may vanish or fail within settle_time, at once or one after the other; one host "+
				"always. When there are more, the reading is doubted: nothing is healed or cleaned up until it settles."),
		duration(&i.SettleTime, "settle_time", 10*time.Minute, 0, day,
			"How long a doubtful reading must stay as it is to be believed."),
	}
}

func limitOptions(l *Limits) []option {
	return []option{
		duration(&l.MaxDuration, "max_duration", 30*day, 0, longest,
			"Longest time that a reservation may last. 0 means no limit.").asMutable(),
		duration(&l.MaxStartAhead, "max_start_ahead", 365*day, 0, longest,
			"Farthest from now that a reservation may start. 0 means no limit.").asMutable(),
		integer(&l.MaxHostsPerProject, "max_hosts_per_project", 0, 0, 1_000_000,
			"Most hosts that a project may hold at any one time, instances included; reservations at different "+
				"times do not add up. 0 means no limit.").asMutable(),
		integer(&l.MaxHostHoursPerProject, "max_host_hours_per_project", 0, 0, 1_000_000_000,
			"Most host-hours that a project may hold, counted over all its reservations that have not ended, "+
				"whenever they are. 0 means no limit.").asMutable(),
		duration(&l.ExtensionWindow, "extension_window", 0, 0, longest,
			"How long before its end a reservation may be extended; earlier than that it may not. 0 means no "+
				"limit: it may be extended at any time.").asMutable(),
	}
}

// restore gives every option its default.
func restore(sections []section) {
	for _, s := range sections {
		for _, o := range s.options {
			o.restore()
		}
	}
}
