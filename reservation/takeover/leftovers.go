// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// Leftovers returns the findings about what Blazar has left in the cloud of reservations that its
// database does not have any more. classes are resource classes with
// fence.BlazarClass.
func Leftovers(db Database, aggregates []inventory.Aggregate, flavors []inventory.Flavor, classes []string) []Finding {
	var p planner
	known := make(map[string]bool)
	for _, r := range db.Reservations {
		known[r.ID], known[fence.BlazarsClass(r.ID)] = true, true
	}
	for _, a := range aggregates {
		if fence.IsBlazars(a) && !known[a.Name] {
			p.find(Leftover, "", "openstack aggregate delete "+a.Name, "the aggregate %s is of no reservation in Blazar's database; it has the hosts %v", a.Name, a.Hosts)
		}
	}
	for _, f := range flavors {
		id, is := strings.CutPrefix(f.Name, flavorPrefix)
		if _, ours := f.ExtraSpecs[inventory.ReservationMark]; is && f.ID == id && !ours && !known[id] {
			p.find(Leftover, "", "openstack flavor delete "+f.ID, "the flavor %s is of no reservation in Blazar's database", f.Name)
		}
	}
	for _, class := range slices.Sorted(slices.Values(classes)) {
		if !known[class] {
			p.find(Leftover, "", "openstack resource class delete "+class, "the resource class %s is of no reservation in Blazar's database", class)
		}
	}
	return p.plan.Findings
}
