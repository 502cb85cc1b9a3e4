package takeover

import (
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
)

const (
	// ClassPrefix begins the names of Blazar's resource classes; the reservation's id follows in
	// capitals, with _ for - (blazar/utils/openstack/placement.py).
	ClassPrefix = "CUSTOM_RESERVATION_"
	// Freepool is the aggregate of the hosts of Blazar's pool that have no reservation now.
	Freepool = "freepool"
	// ownerKey is the metadata of an aggregate of Blazar that names the project
	// (blazar/utils/openstack/nova.py, [nova] blazar_owner), zonePrefix begins its availability zone.
	ownerKey, zonePrefix = "blazar:owner", "blazar_"
)

// IsBlazars reports whether an aggregate is one that Blazar makes for a reservation, whose id is its
// name.
func IsBlazars(a inventory.Aggregate) bool {
	return a.Metadata[ownerKey] != "" || a.Zone == zonePrefix+a.Name
}

// Leftovers returns the findings about what Blazar has left in the cloud of reservations that its
// database does not have any more. classes are resource classes with ClassPrefix.
func Leftovers(db Database, aggregates []inventory.Aggregate, flavors []inventory.Flavor, classes []string) []Finding {
	var p planner
	known := make(map[string]bool)
	for _, r := range db.Reservations {
		known[r.ID] = true
	}
	for _, a := range aggregates {
		if IsBlazars(a) && !known[a.Name] {
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
		if id := reservationOf(class); !known[id] {
			p.find(Leftover, "", "openstack resource class delete "+class, "the resource class %s is of no reservation in Blazar's database", class)
		}
	}
	return p.plan.Findings
}

// reservationOf returns the reservation of a resource class with ClassPrefix.
func reservationOf(class string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(class, ClassPrefix), "_", "-"))
}
