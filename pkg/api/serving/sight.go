// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"math"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/precondition"
	"github.com/almanac-cloud/almanac/reservation"
)

// Begun reports whether the hosts of the reservation are final.
func Begun(r *reservation.Reservation) bool {
	return r.Status != reservation.Waiting && r.Status != reservation.Pending && r.Status != reservation.Starting
}

// SeesHosts reports whether the asker, who may see the reservation, may also see its hosts.
func (a *Asker) SeesHosts(r *reservation.Reservation) bool {
	return Begun(r) || a.May("reservations:get_hosts", r.ProjectID)
}

// Sees reports whether the asker may see a reservation.
func (a *Asker) Sees(r *reservation.Reservation) bool {
	return r.BelongsTo(a.ProjectID) || a.May("reservations:get_all_projects", r.ProjectID)
}

// Knows reports whether the asker may learn which hosts a reservation has.
func (a *Asker) Knows(r *reservation.Reservation) bool { return a.Sees(r) && a.SeesHosts(r) }

// Sight states what an asker may see of hosts.
type Sight struct {
	Properties map[string]bool // by name
	Instances  bool            // and what their problems are
}

// SightOf returns what the asker may see of the hosts of a snapshot.
func (a *Asker) SightOf(snapshot *inventory.Snapshot) Sight {
	s := Sight{Properties: make(map[string]bool), Instances: a.May("hosts:get_instances", a.ProjectID)}
	for _, p := range snapshot.Properties() {
		s.Properties[p.Name] = !p.Hidden || a.SeesHidden()
	}
	return s
}

// HostVersion returns the version of what is seen of a host and can be changed.
func (s Sight) HostVersion(h *inventory.Host) string {
	seen := make(map[string]any, len(h.Properties))
	for name, value := range h.Properties {
		if s.Properties[name] {
			seen[name] = value.Any()
		}
	}
	return precondition.Hash([]any{h.Reservable, cmp.Or(h.Power, inventory.PowerOn), seen})
}

// Host returns what is seen of a host, without its instances.
func (s Sight) Host(h *inventory.Host) v1.Host {
	out := v1.Host{
		Name: h.Name, Resources: v1.Resources(h.Capacity), Used: v1.Resources(h.Used), InstanceCount: h.InstanceCount, Zone: h.Zone,
		Aggregates: append([]string{}, h.Aggregates...), Traits: append([]string{}, h.Traits...),
		Properties: make(map[string]any), Reservable: h.Reservable, Power: string(cmp.Or(h.Power, inventory.PowerOn)), BootSeconds: h.BootSeconds,
	}
	if !math.IsInf(h.FlopsPerWatt, 0) && !math.IsNaN(h.FlopsPerWatt) {
		out.FlopsPerWatt = h.FlopsPerWatt
	}
	if out.Problem = h.Failure(); out.Problem != "" && !s.Instances {
		out.Problem = "it accepts no instances now"
	}
	for name, value := range h.Properties {
		if s.Properties[name] {
			out.Properties[name] = value.Any()
		}
	}
	return out
}
