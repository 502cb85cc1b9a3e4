package config

import "time"

// Scheduler is section [scheduler]: whether Nova's requests for hosts are answered.
// Options that Nova has there too keep their names.
type Scheduler struct {
	Mode                string // "off", "interpose" or "replace"
	ForwardTransportURL string // of the nova-scheduler behind; may hold a password; empty: none
	Workers             int
	MaxAttempts         int
	DecisionRetention   time.Duration

	LimitTenants, TenantAggregateRequired bool
	IsolateAggregates                     bool
	DefaultZone                           string // [DEFAULT] default_availability_zone
}

// Cells says in which cell a host is, which Nova's API does not tell.
type Cells struct {
	APIDatabase string // [api_database] connection; may hold a password; empty: not asked
	File        string // empty: none
	UUID        string // of the only cell; empty: several
}

func schedulerOptions(s *Scheduler) []option {
	return []option{
		choice(&s.Mode, "mode", "off", []string{"off", "interpose", "replace"},
			"Whether Almanac serves Nova's topic scheduler, on the message broker of [nova] transport_url. interpose: each "+
				"request is narrowed to the hosts it may use and passed on to the nova-scheduler at forward_transport_url. "+
				"replace: Almanac decides, and passes on only what it cannot judge."),
		text(&s.ForwardTransportURL, "forward_transport_url", "",
			"Message broker of the nova-scheduler that requests are passed on to: another virtual host than Nova's own.").asSecret(),
		integer(&s.Workers, "workers", 64, 1, 10_000, "How many requests are under way at once."),
		integer(&s.MaxAttempts, "max_attempts", 3, 1, 100,
			"On how many hosts Nova tries to build an instance: one more than the alternates it is given."),
		duration(&s.DecisionRetention, "decision_retention", 7*day, time.Hour, 365*day,
			"How long it is kept why instances were placed where they are."),
		boolean(&s.LimitTenants, "limit_tenants_to_placement_aggregate", false,
			"A project that aggregates name in filter_tenant_id uses their hosts only. As in Nova."),
		boolean(&s.TenantAggregateRequired, "placement_aggregate_required_for_tenants", false,
			"With it, a project that no aggregate names uses no host at all. As in Nova."),
		boolean(&s.IsolateAggregates, "enable_isolated_aggregate_filtering", false,
			"Hosts of aggregates with trait:X=required in their metadata are for instances that require X. As in Nova; "+
				"the hosts of reservations are kept for them in any case."),
	}
}

func zoneOptions(s *Scheduler) []option {
	return []option{
		text(&s.DefaultZone, "default_availability_zone", "nova", "Availability zone of hosts that no aggregate gives one. As in Nova."),
	}
}

func apiDatabaseOptions(c *Cells) []option {
	return []option{
		text(&c.APIDatabase, "connection", "",
			"Nova's API database, as Nova's own configuration names it. Almanac reads in it which host is in which cell, "+
				"and nothing else; a user who may SELECT on host_mappings and cell_mappings will do.").asSecret(),
	}
}

func cellOptions(c *Cells) []option {
	return []option{
		text(&c.File, "cells_file", "",
			"Instead of [api_database] connection: a file with what `nova-manage cell_v2 list_hosts` prints, read again when it changes."),
		text(&c.UUID, "cell", "", "Instead of both, where all hosts are in one cell: its UUID, as `nova-manage cell_v2 list_cells` prints it."),
	}
}
