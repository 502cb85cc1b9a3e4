// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// Scheduler is section [scheduler]: whether Almanac answers Nova's requests for hosts.
// Options that Nova has too keep their names.
type Scheduler struct {
	Mode                string // one of modes
	ForwardTransportURL string // broker of the nova-scheduler; may hold a password; empty: none
	Workers             int
	MaxAttempts         int
	DecisionRetention   int64 // seconds
}

// The modes of serving Nova's topic scheduler.
const (
	ModeOff       = "off"
	ModeInterpose = "interpose"
	ModeReplace   = "replace"
)

var modes = []string{ModeOff, ModeInterpose, ModeReplace}

// Cells locates the cell of each host, which Nova's API does not report.
type Cells struct {
	APIDatabase string // [api_database] connection; may hold a password; empty: not used
	File        string // empty: none
	UUID        string // of the only cell; empty: several cells
}

func schedulerOptions(s *Scheduler) []option {
	return []option{
		choice(&s.Mode, "mode", ModeOff, modes,
			"Whether Almanac serves Nova's RPC topic scheduler on the message broker of [nova] transport_url. interpose: it "+
				"restricts each request to the hosts that reservations allow and forwards it to the nova-scheduler at "+
				"forward_transport_url. replace: it chooses the hosts and forwards only requests that it cannot decide."),
		text(&s.ForwardTransportURL, "forward_transport_url", "",
			"Message broker of the nova-scheduler to which Almanac forwards requests; it must be another virtual host than Nova's own.").asSecret(),
		integer(&s.Workers, "workers", 64, 1, 10_000, "Maximum number of concurrent requests."),
		integer(&s.MaxAttempts, "max_attempts", 3, 1, 100,
			"Number of hosts on which Nova tries to build an instance: the selected host and its alternates. As in Nova."),
		duration(&s.DecisionRetention, "decision_retention", 7*day, time.Hour, 365*day,
			"How long placement decisions and their reasons are kept."),
	}
}

func apiDatabaseOptions(c *Cells) []option {
	return []option{
		text(&c.APIDatabase, "connection", "",
			"Nova's API database, as in Nova's configuration. Almanac reads only the cell of each host from it; SELECT on "+
				"host_mappings and cell_mappings is enough.").asSecret(),
	}
}

func cellOptions(c *Cells) []option {
	return []option{
		text(&c.File, "cells_file", "",
			"File with the output of `nova-manage cell_v2 list_hosts`, instead of [api_database] connection. Almanac reads it again when it changes."),
		text(&c.UUID, "cell", "", "UUID of the cell if there is only one, instead of both, as printed by `nova-manage cell_v2 list_cells`."),
	}
}
