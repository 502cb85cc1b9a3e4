// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// This file has what differs for maintenance: a reservation of kind host on the hosts that it names,
// which may be out of order, asleep or outside the pool, and to which the limits of a project do not
// apply.

// name sets the hosts of maintenance, which must exist, and the quantity. Each of lists is a name or
// a list of hosts.
func (a *request) name(lists []string, known *HostIndex) error {
	if !a.Maintenance {
		if len(lists) > 0 {
			return fault.Field("hosts", "is allowed for maintenance only; choose hosts by their properties with host_properties")
		}
		return nil
	}
	if a.OnEnd != "" {
		return noInstances()
	}
	if len(lists) == 0 {
		return fault.Field("hosts", "is required for maintenance: the names of the hosts")
	}
	hosts, err := inventory.ExpandNames(strings.Join(lists, ","))
	if err != nil {
		return fault.Field("hosts", "%v", err)
	}
	a.named = setOf(hosts)
	for _, host := range hosts {
		if number, is := known.numbers[host]; !is || known.Host(number) == nil {
			return fault.Field("hosts", "%s", fault.Unknown("host", host, known.present()))
		}
	}
	a.Quantity = len(a.named)
	return nil
}

func checkMaintenance(t reservation.Terms) error {
	switch {
	case t.Kind != reservation.Hosts:
		return fault.Field("kind", "must be %s for maintenance", reservation.Hosts)
	case t.HostProperties != "":
		return fault.Field("host_properties", "is not allowed for maintenance, which names its hosts")
	case t.Image != "":
		return fault.Field("image", "is not allowed for maintenance")
	}
	return nil
}

// noInstances returns the error for a choice about the instances of maintenance.
func noInstances() error {
	return fault.Field("on_end", "is not allowed for maintenance, which has no instances of its own")
}

// admits reports whether the request may have the host if it is free and passes the filter.
func (a *request) admits(h *inventory.Host) bool {
	if a.Maintenance {
		return a.named[h.Name]
	}
	return h.Reservable
}

// forTerms returns the view for a decision on terms: no limit applies to maintenance.
func (v View) forTerms(t reservation.Terms) View {
	if t.Maintenance {
		v.Limits = Limits{}
	}
	return v
}
