package config

// Blazar is section [blazar]: the calls in Blazar's form. Names are Blazar's where it has the same
// option.
type Blazar struct {
	Enabled               bool
	MinutesBeforeEndLease int
	ListAllForAdmin       bool
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
	}
}
