// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"github.com/almanac-cloud/almanac/pkg/fault"
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
		is    span.Instant
	}{{"start_date", &c.Start, before.Span.Start}, {"end_date", &c.End, before.Span.End}, {"before_end_date", &c.BeforeEnd, before.BeforeEnd}} {
		if !o.has(t.key) {
			continue
		}
		at, _, err := r.instant(o, t.key)
		if err != nil {
			return c, err
		}
		// A time of this form has no seconds, so that one in the same minute is the same. Only the word
		// now ends a lease whose last minute it is.
		if at == minute(t.is) && !(t.key == "end_date" && isNow(o[t.key])) {
			at = t.is
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

// hostsChange reads what a change of a lease asks of a reservation of hosts into c.
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

// instancesChange reads what a change of a lease asks of a reservation of instances into c.
func (r Reader) instancesChange(o Object, m *reservation.Reservation, c *reservation.MemberChange) error {
	if err := withoutHostKeys(o); err != nil {
		return err
	}
	if n, ok, err := o.number("amount"); err != nil || ok && n < 1 {
		return malformed("amount")
	} else if ok {
		c.Min, c.Max = &n, &n
	}
	size := m.Resources
	for _, s := range []struct {
		key   string
		field *int64
	}{{"vcpus", &size.VCPUs}, {"memory_mb", &size.MemoryMB}, {"disk_gb", &size.DiskGB}} {
		n, ok, err := o.number(s.key)
		if err != nil || n < 0 {
			return malformed(s.key)
		}
		if ok && m.Membership.Flavor != "" && int64(n) != *s.field {
			return ofFlavor(s.key)
		}
		if ok {
			*s.field = int64(n)
		}
	}
	if size.IsZero() {
		return malformed("vcpus (an instance must have some resources)")
	}
	c.Resources = &size
	if o.has("affinity") {
		chosen, err := affinity(o)
		if err != nil {
			return err
		}
		c.Affinity = &chosen
	}
	if err := fixed(o, m, c); err != nil {
		return err
	}
	return r.filterChange(o, m, c)
}

// ofFlavor returns the error for a change of what a flavor determines.
func ofFlavor(key string) error {
	return malformed(key + " (it cannot be changed, since a flavor is reserved)")
}

// fixed refuses what cannot change: the flavor that was reserved, and the affinity of a server group.
// Clients may send back the values of an answer.
func fixed(o Object, m *reservation.Reservation, c *reservation.MemberChange) error {
	moved := c.Affinity != nil && *c.Affinity != m.Affinity
	if m.Membership.ServerGroup != "" && moved {
		return malformed("affinity (it cannot be changed, since the reservation has a server group)")
	}
	if m.Membership.Flavor == "" {
		return nil
	}
	properties, err := o.written("resource_properties")
	switch {
	case err != nil || properties != "" && !sameQuery(properties, m.Membership.Flavor):
		return ofFlavor("resource_properties")
	case o.has("flavor_id") && o["flavor_id"] != m.ID:
		return ofFlavor("flavor_id")
	case moved:
		return ofFlavor("affinity")
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
		if !sameQuery(query, *q.text) {
			*q.text, changed = query, true
		}
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
