// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"maps"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
)

// This file has what Almanac takes over from OpenStack Blazar in the cloud. Blazar makes an aggregate
// for each reservation, named by its id. One that Almanac has taken over has the reservation's id in
// its metadata too: it is adopted. It stays while the reservation lives, since Nova does not take a host
// with instances out of an availability zone, and since Blazar needs it if it goes on.

const (
	// BlazarClass begins the names of Blazar's resource classes; the reservation's id follows as in
	// OwnName (blazar/utils/openstack/placement.py).
	BlazarClass = "CUSTOM_RESERVATION_"
	// BlazarProvider begins the names of Blazar's child providers, which have the inventories of these
	// classes; the name of the compute node follows.
	BlazarProvider = "blazar_"
	// BlazarGroup is the metadata of an aggregate of Blazar that has the id of a server group
	// (blazar/plugins/instances/instance_plugin.py).
	BlazarGroup = "affinity_id"

	// OwnerKey is the metadata of an aggregate of Blazar that names the project
	// (blazar/utils/openstack/nova.py, [nova] blazar_owner). Almanac's mirrors have it too.
	OwnerKey = "blazar:owner"

	// blazarZone begins the availability zone ([nova] blazar_az_prefix).
	blazarZone = "blazar_"
)

// IsBlazars reports whether Blazar has made the aggregate for the reservation whose id is its name.
func IsBlazars(a inventory.Aggregate) bool {
	return !IsMirror(a) && (a.Metadata[OwnerKey] != "" || a.Zone == blazarZone+a.Name)
}

// IsAdopted reports whether the aggregate is one of Blazar that Almanac has taken over.
func IsAdopted(a inventory.Aggregate) bool {
	return a.Name != "" && a.Metadata[inventory.ReservationMark] == a.Name
}

// TakesAdopted reports whether a step takes something adopted away, which instances may still need.
func (s *Step) TakesAdopted() bool {
	return s.Aggregate.Name != "" && s.Aggregate.Name == s.Reservation && !s.Adds()
}

// BlazarsClass returns the name of Blazar's resource class of a reservation.
func BlazarsClass(reservation string) string {
	return BlazarClass + strings.ToUpper(strings.ReplaceAll(reservation, "-", "_"))
}

// keepAdopted returns desired with the adopted aggregates of live reservations as they are.
func keepAdopted(actual, desired Layout) Layout {
	kept := maps.Clone(desired.Aggregates)
	for name, a := range actual.Aggregates {
		if desired.Live[name] && IsAdopted(a) {
			kept[name] = a
		}
	}
	desired.Aggregates = kept
	return desired
}

// Withdraw returns the steps that remove everything of Almanac. Adopted objects stay as Blazar has made
// them, so that Blazar can go on with them.
func Withdraw(actual Layout) []Step {
	var back diff
	rest := actual
	rest.Aggregates, rest.Flavors = maps.Clone(actual.Aggregates), maps.Clone(actual.Flavors)
	for _, name := range sorted(actual.Aggregates) {
		if a := actual.Aggregates[name]; IsAdopted(a) {
			delete(rest.Aggregates, name)
			back.add(Step{Action: UnmarkAggregate, Reservation: name, Aggregate: bare(a, map[string]string{inventory.ReservationMark: name}), Reason: "it is Blazar's"})
		}
	}
	for _, id := range sorted(actual.Flavors) {
		f := actual.Flavors[id]
		if _, blazars := f.ExtraSpecs["resources:"+BlazarsClass(id)]; !blazars {
			continue
		}
		delete(rest.Flavors, id)
		f.ExtraSpecs = maps.Clone(f.ExtraSpecs)
		maps.DeleteFunc(f.ExtraSpecs, func(key, _ string) bool { return !added(key) })
		back.add(Step{Action: UnmarkFlavor, Reservation: id, Flavor: f, Reason: "it is Blazar's"})
	}
	return append(back, Diff(rest, Layout{})...)
}

// added reports whether Almanac adds the extra spec to an adopted flavor.
func added(key string) bool {
	return key == inventory.ReservationMark || key == ProjectMark ||
		strings.HasPrefix(key, required(OwnPrefix)) || strings.HasPrefix(key, "resources:"+OwnPrefix)
}
