// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

const (
	day = 24 * time.Hour
	// longest is the largest allowed value of durations without a natural limit. Sums of such
	// durations do not overflow.
	longest = 100 * 365 * day
)

// section is one [section] of a file.
type section struct {
	name    string
	options []option
}

// option returns the option with a name, or nil.
func (s *section) option(name string) *option {
	at := slices.IndexFunc(s.options, func(o option) bool { return o.name == name })
	if at < 0 {
		return nil
	}
	return &s.options[at]
}

// table returns every option, bound to its field of c, in the order of the sample.
// It does not change c.
func table(c *Config) []section {
	return []section{
		{"DEFAULT", slices.Concat(logOptions(&c.Default), transportOptions(&c.Default), zoneOptions(&c.Filters))},
		{"api", apiOptions(&c.API)},
		{"oslo_middleware", []option{
			boolean(&c.API.ParseProxyHeaders, "enable_proxy_headers_parsing", false,
				"Trust the X-Forwarded-* headers. Set this only behind a proxy that sets them."),
		}},
		{"keystone_authtoken", keystoneOptions(&c.Keystone)},
		{"oslo_policy", policyOptions(&c.Policy)},
		{"noauth", []option{
			text(&c.NoAuth.ProjectID, "project_id", "demo",
				"Project of every caller."),
			text(&c.NoAuth.UserID, "user_id", "demo",
				"User of every caller."),
			list(&c.NoAuth.Roles, "roles", []string{"admin"},
				"Roles of every caller."),
		}},
		{"database", slices.Concat([]option{
			text(&c.Database.Connection, "connection", "sqlite:///var/almanac.db",
				"SQLAlchemy URL of the database: mysql+pymysql://user:password@host/almanac, or sqlite:/// followed by a relative path, "+
					"sqlite://// by an absolute one. The URLs of Go's drivers work too. Of several hosts, as in host1:3306,host2:3306, Almanac "+
					"uses the first one that answers, until it fails.").asSecret(),
			duration(&c.Database.BusyTimeout, "busy_timeout", 5*time.Second, 0, time.Minute,
				"How long an SQLite transaction waits for another one to release the database before it fails."),
		}, serverOptions(&c.Database))},
		{"oslo_messaging_rabbit", rabbitOptions(&c.Rabbit)},
		{"oslo_messaging_notifications", notificationOptions(&c.Notifications)},
		{"inventory", inventoryOptions(&c.Inventory)},
		{"nova", slices.Concat(novaOptions(&c.Nova), cellOptions(&c.Cells))},
		{"api_database", apiDatabaseOptions(&c.Cells)},
		{"placement", clientOptions(&c.Placement, "Placement")},
		{"preemptible", preemptibleOptions(&c.Preemptible)},
		{"scheduler", slices.Concat(schedulerOptions(&c.Scheduler), tenantOptions(&c.Filters), prefilterOptions(&c.Prefilters))},
		{"filter_scheduler", slices.Concat(filterSchedulerOptions(&c.Filters), weigherOptions(&c.Weighers))},
		{"metrics", metricsOptions(&c.Weighers)},
		{"reservation", slices.Concat(reservationOptions(&c.Reservation), instanceOptions(&c.Reservation))},
		{"limits", limitOptions(&c.Limits)},
		{"tariff", tariffOptions(&c.Tariff)},
		{"enforcement", enforcementOptions(&c.Enforcement)},
		{"lifecycle", []option{
			duration(&c.Lifecycle.PollInterval, "poll_interval", time.Second, time.Second, time.Minute,
				"How often Almanac reads what other replicas have stored, and tries starts, warnings and ends again that are overdue. They begin at their time in any case."),
		}},
		{"healing", healingOptions(&c.Healing)},
		{"energy", energyOptions(&c.Energy)},
		{"packing", packingOptions(&c.Packing)},
		{"besteffort", bestEffortOptions(&c.BestEffort)},
		{"blazar", blazarOptions(&c.Blazar)},
		{"glance", clientOptions(&c.Glance, "Glance")},
		{"neutron", clientOptions(&c.Neutron, "Neutron")},
		{"staging", stagingOptions(&c.Staging)},
		{"webhooks", webhookOptions(&c.Webhooks)},
		{"tracing", tracingOptions(&c.Tracing)},
	}
}

func logOptions(d *Default) []option {
	return []option{
		boolean(&d.Debug, "debug", false,
			"Write debug messages to the log.").asMutable(),
		text(&d.LogFile, "log_file", "",
			"Log file, reopened on SIGHUP. Empty means standard error, unless log_dir is set."),
		text(&d.LogDir, "log_dir", "",
			"Folder for log files: a relative log_file is in it. Without log_file, the file is named after the program."),
		boolean(&d.UseJSON, "use_json", false,
			"Write the log as JSON, one object per line."),
	}
}

func reservationOptions(r *Reservation) []option {
	d := &r.Defaults
	return []option{
		choice(&d.Policy, "default_policy", calendar.PolicyFirstFit, calendar.Policies,
			"Policy that chooses among the feasible starts if the request names none.").asMutable(),
		choice(&r.Fence, "fence", filters.FenceAlways, filters.Fences,
			"When a host is closed to instances of no reservation. always: from the booking of a reservation on it. lead_time: from lead_time "+
				"before the start. pool: always, if it can be reserved. Preemptible instances may use it until the start in all cases."),
		duration(&r.Rules.LeadTime, "lead_time", 15*time.Minute, 0, 30*day,
			"How long before the start of a reservation Almanac prepares its hosts."),
		duration(&r.BeforeEnd, "before_end", time.Hour, 0, 30*day,
			"How long before the end of a reservation Almanac warns its owner, unless the request sets it. A reservation "+
				"shorter than twice this time has its warning at half of its duration."),
		choice(&d.OnEnd, "on_end", reservation.OnEndDelete, reservation.OnEnds,
			"Action on the instances of a reservation at its end, unless the request sets it. It must be one of on_end_choices.").asMutable(),
		subset(&d.OnEndChoices, "on_end_choices", []reservation.OnEnd{reservation.OnEndDelete, reservation.OnEndShelve}, reservation.OnEnds,
			"Actions that a request may choose: "+strings.Join(fault.Texts(reservation.OnEnds), ", ")+". With stop and leave, instances stay on "+
				"a host that the next reservation may need. Existing reservations keep their action.").asMutable(),
		duration(&r.IdempotencyKeyTTL, "idempotency_key_ttl", day, time.Minute, 30*day,
			"How long an Idempotency-Key and its response are stored."),
	}
}

// instanceOptions returns the options for the instances on the hosts of a cloud.
func instanceOptions(r *Reservation) []option {
	rules := &r.Rules
	return []option{
		choice(&rules.Normal, "running_instances", upkeep.OrderWait, upkeep.NormalOrders,
			"Action on other instances on the hosts of a reservation, from lead_time before the start. wait: none, until their "+
				"owners remove them. migrate: move them. The reservation starts late if one is still there."),
		choice(&rules.Left, "ended_instances", upkeep.OrderMigrate, upkeep.LeftOrders,
			"Action on instances that an ended reservation left on the hosts (on_end stop or leave), from lead_time before the "+
				"start. With migrate, instances that are still there at eviction_time before the start are shelved."),
		choice(&rules.Preemptible, "preemptible_instances", upkeep.OrderDelete, upkeep.PreemptibleOrders,
			"Action on preemptible instances, from eviction_time before the start."),
		duration(&rules.Eviction, "eviction_time", 2*time.Minute, 0, day,
			"How long before the start Almanac evicts preemptible instances."),
		duration(&rules.EndGrace, "end_grace", time.Minute, 0, time.Hour,
			"Time that instances have to shut down before they are deleted at the end. It is skipped if the next reservation of "+
				"the host would start late."),
		integer(&rules.Fence.RootDisk, "root_disk", 20, 0, 1_000_000,
			"Root disk in GB of the flavor that occupies a whole host. In Placement the flavor still consumes the whole disk of the "+
				"host. Nova cannot resize a server to a flavor with a smaller root disk. 0 means the whole disk of the host."),
		list(&r.Flavors, "flavors", nil,
			"Names of flavors. The owner of a host reservation receives a copy of each that runs on the reserved hosts only, in "+
				"addition to the flavor that occupies a whole host."),
	}
}

func inventoryOptions(i *Inventory) []option {
	return []option{
		choice(&i.Source, "source", SourceFile, Sources,
			"Source of the hosts. file: hosts_file. openstack: Nova and Placement. simulated: a cloud in the memory of the process, "+
				"on the hosts of hosts_file, for trying everything; see docs/demo.md. The processes with the role inventory read it; "+
				"those with the role api must have the same value."),
		text(&i.HostsFile, "hosts_file", "etc/almanac/hosts.yaml",
			"YAML file with the hosts, read by the processes with the role inventory."),
		duration(&i.RefreshInterval, "refresh_interval", 10*time.Second, time.Second, time.Hour,
			"How often the hosts are read."),
		duration(&i.FullPollInterval, "full_poll_interval", 10*time.Minute, time.Minute, day,
			"How often everything is read from Nova and Placement. In between, only changes are read."),
		integer(&i.Trust.MaxChangePercent, "max_change_percent", 20, 0, 100,
			"Percentage of hosts, but at least one host, that may disappear or fail within trust_after. If more do, Almanac does "+
				"not trust the inventory: it heals and cleans up nothing until the inventory settles."),
		duration(&i.Trust.SettleTime, "trust_after", 10*time.Minute, 0, day,
			"How long an untrusted inventory must stay unchanged before Almanac trusts it."),
	}
}

func limitOptions(l *planning.Limits) []option {
	return []option{
		duration(&l.Duration, "max_duration", 30*day, 0, longest,
			"Maximum duration of a reservation. 0 means no limit.").asMutable(),
		duration(&l.StartAhead, "max_start_ahead", 365*day, 0, longest,
			"How far in the future a reservation may start. 0 means no limit.").asMutable(),
		integer(&l.Hosts, "max_hosts_per_project", 0, 0, 1_000_000,
			"Maximum number of hosts that a project may hold at the same time; a reserved instance counts as one host. 0 means no "+
				"limit.").asMutable(),
		scaled(&l.HostSeconds, 3600, "max_host_hours_per_project", 0, 0, 1_000_000_000,
			"Maximum host-hours of all reservations of a project that have not ended. 0 means no limit.").asMutable(),
		integer(&l.EmptyLeases, "max_empty_leases_per_project", 100, 0, 1_000_000,
			"Maximum number of leases without reservations that a project may have, ended ones included; they hold no hosts, so no "+
				"other limit bounds them. 0 means no limit.").asMutable(),
		duration(&l.ExtensionWindow, "extension_window", 0, 0, longest,
			"A reservation may be extended only this long before its end or later. 0 means at any time.").asMutable(),
		duration(&l.Hold, "max_hold", 15*time.Minute, 0, day,
			"How long a reservation may be held at most before it is confirmed. 0 means that nothing can be held.").asMutable(),
		integer(&l.Holds, "max_holds_per_project", 3, 0, 1_000_000,
			"Maximum number of reservations that a project may hold at the same time without having confirmed them. 0 means no limit.").asMutable(),
		integer(&l.Waiting, "max_waiting_per_project", 20, 0, 100_000,
			"Maximum number of reservations of a project that wait for room at the same time. 0 means that none can wait.").asMutable(),
	}
}

// restore sets every option to its default.
func restore(sections []section) {
	for _, s := range sections {
		for _, o := range s.options {
			o.restore()
		}
	}
}
