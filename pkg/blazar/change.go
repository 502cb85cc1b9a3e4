// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Change reads the body of PUT /v1/leases/{id} for the lease before it.
func (r Reader) Change(o Object, before reservation.LeaseRecord) (c reservation.LeaseChange, err error) {
	if o["name"] != nil {
		text, err := name(o)
		if err != nil {
			return c, err
		}
		c.Name = &text
	}
	for _, t := range []struct {
		key   string
		field **span.Instant
	}{{"start_date", &c.Start}, {"end_date", &c.End}, {"before_end_date", &c.BeforeEnd}} {
		if !o.has(t.key) {
			continue
		}
		at, _, err := r.instant(o, t.key)
		if err != nil {
			return c, err
		}
		*t.field = &at
	}
	if err := r.extend(o, &c); err != nil {
		return c, err
	}
	members, err := o.objects("reservations")
	if err != nil {
		return c, err
	}
	for _, m := range members {
		change, err := r.memberChange(m, before)
		if err != nil {
			return c, err
		}
		c.Members = append(c.Members, change)
	}
	return c, nil
}

// memberChange reads the change of one reservation.
func (r Reader) memberChange(o Object, lease reservation.LeaseRecord) (c reservation.MemberChange, err error) {
	id, ok, err := o.text("id")
	if err != nil {
		return c, err
	}
	if !ok {
		return c, missing("reservation ID")
	}
	for i := range lease.Reservations {
		m := &lease.Reservations[i]
		if m.ID != id {
			continue
		}
		c.ID = id
		if kind, ok, err := o.text("resource_type"); err != nil || ok && kind != resourceType(m) {
			return c, fault.New(fault.Conflict, "resource_type cannot be updated")
		}
		if err := promised(o); err != nil {
			return c, err
		}
		switch m.Kind {
		case reservation.Hosts:
			return c, r.hostsChange(o, m, &c)
		case reservation.Addresses:
			return c, floatingIPsChange(o, m, &c)
		}
		return c, r.instancesChange(o, m, &c)
	}
	return c, fault.New(fault.Invalid, "Please enter valid reservation IDs. Invalid reservation IDs are: %s", shorten(id))
}

func (r Reader) hostsChange(o Object, m *reservation.Reservation, c *reservation.MemberChange) error {
	if o.has("min") || o.has("max") {
		least, most := quantities(m)
		least, most, err := bounds(o, least, most)
		if err != nil {
			return err
		}
		c.Min, c.Max = &least, &most
	}
	if action, sent, err := o.text("before_end"); err != nil || sent && action != m.Membership.EndAction {
		return malformed("before_end (it cannot be changed)")
	}
	return r.filterChange(o, m, c)
}

func (r Reader) instancesChange(o Object, m *reservation.Reservation, c *reservation.MemberChange) error {
	if err := cmp.Or(withoutHostKeys(o), r.fixed(o, m)); err != nil {
		return err
	}
	if n, ok, err := o.number("amount"); err != nil || ok && n < 1 {
		return malformed("amount")
	} else if ok {
		c.Min, c.Max = &n, &n
	}
	size := m.Resources
	changed := false
	for _, s := range []struct {
		key   string
		field *int64
	}{{"vcpus", &size.VCPUs}, {"memory_mb", &size.MemoryMB}, {"disk_gb", &size.DiskGB}} {
		n, ok, err := o.number(s.key)
		if err != nil || n < 0 {
			return malformed(s.key)
		}
		if ok {
			*s.field, changed = int64(n), true
		}
	}
	if changed {
		if size.IsZero() {
			return malformed("vcpus (an instance must have some resources)")
		}
		c.Resources = new(resource.Vector)
		*c.Resources = size
	}
	if o.has("affinity") {
		chosen, err := affinity(o)
		if err != nil {
			return err
		}
		c.Affinity = &chosen
	}
	return r.filterChange(o, m, c)
}

// fixed refuses what cannot change: the flavor that was reserved, and the affinity of a server group.
func (r Reader) fixed(o Object, m *reservation.Reservation) error {
	if m.Membership.Flavor != "" {
		for _, key := range []string{"vcpus", "memory_mb", "disk_gb", "affinity", "flavor_id", "resource_properties"} {
			if o.has(key) && o[key] != m.Membership.Flavor {
				return malformed(key + " (it cannot be changed, since a flavor is reserved)")
			}
		}
	}
	if m.Membership.ServerGroup == "" || !o.has("affinity") {
		return nil
	}
	if chosen, err := affinity(o); err != nil || chosen != m.Affinity {
		return malformed("affinity (it cannot be changed, since the reservation has a server group)")
	}
	return nil
}

// filterChange reads new queries. A query that is not sent stays.
func (r Reader) filterChange(o Object, m *reservation.Reservation, c *reservation.MemberChange) error {
	hypervisor, properties := writtenBy(m)
	changed := false
	for _, q := range []struct {
		key  string
		text *string
	}{{"hypervisor_properties", &hypervisor}, {"resource_properties", &properties}} {
		if o[q.key] == nil || m.Membership.Flavor != "" || q.key == "hypervisor_properties" && m.Kind == reservation.Instances {
			continue
		}
		query, err := o.written(q.key)
		if err != nil {
			return err
		}
		changed = changed || query != *q.text
		*q.text = query
	}
	if !changed {
		return nil
	}
	filter, err := queries{r.Hosts, r.SeesHidden}.filter(hypervisor, properties)
	if err != nil {
		return err
	}
	c.HostProperties, c.HypervisorProperties, c.ResourceProperties = &filter, &hypervisor, &properties
	return nil
}
