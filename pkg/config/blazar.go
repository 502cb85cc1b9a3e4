// SPDX-License-Identifier: Apache-2.0

package config

// Blazar is section [blazar]: the calls in Blazar's form. Names are Blazar's where it has the same
// option.
type Blazar struct {
	Enabled               bool
	MinutesBeforeEndLease int
	ListAllForAdmin       bool
	// OnlyEnrolled is pool = enrolled.
	OnlyEnrolled bool
	// MirrorAggregates maintains the aggregates that Blazar has in Nova; FreePool is the name of the
	// one with the free hosts.
	MirrorAggregates bool
	FreePool         string
}

func blazarOptions(b *Blazar) []option {
	const year = 366 * 24 * 60
	return []option{
		boolean(&b.Enabled, "enabled", true,
			"Serve Blazar's API beside Almanac's own, under the same URL."),
		integer(&b.MinutesBeforeEndLease, "minutes_before_end_lease", 60, 0, year,
			"Number of minutes before its end at which the owner of a lease is warned, if the request names no time. 0 means never."),
		boolean(&b.ListAllForAdmin, "list_all_for_admin", true,
			"List the leases of all projects for an admin. Otherwise the list is the project's, unless the request has all_tenants=True."),
		named(&b.OnlyEnrolled, "pool", false, []word[bool]{{"all", false}, {"enrolled", true}},
			"all: Blazar's API lists every host. enrolled: it lists only the hosts of the pool, and a host is in the pool only after it was added, by "+
				"this API or the native one. All replicas need the same value."),
		boolean(&b.MirrorAggregates, "mirror_aggregates", false,
			"Maintain the aggregates that scripts for Blazar look for in Nova: one with the free hosts of the pool, and for each active reservation "+
				"of hosts one whose name is the reservation's id. Nova's scheduler ignores them."),
		text(&b.FreePool, "freepool_aggregate", "freepool",
			"Name of the aggregate with the free hosts of the pool, if mirror_aggregates is true. If Nova has one of that name, Almanac takes it over "+
				"and deletes it when mirror_aggregates is false again."),
	}
}
