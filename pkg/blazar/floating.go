// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"slices"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// FloatingIP is an address of the pool in an answer.
type FloatingIP struct {
	ID         string  `json:"id"`
	NetworkID  string  `json:"floating_network_id"`
	SubnetID   string  `json:"subnet_id"`
	Address    string  `json:"floating_ip_address"`
	Reservable bool    `json:"reservable"`
	CreatedAt  string  `json:"created_at"`
	UpdatedAt  *string `json:"updated_at"` // null: an address does not change
}

// FloatingIPOf returns an address of the pool for an answer.
func FloatingIPOf(a address.Enrolled) FloatingIP {
	return FloatingIP{ID: a.ID, NetworkID: a.Network, SubnetID: a.Subnet, Address: a.Address, Reservable: true, CreatedAt: RowTime(a.Created)}
}

// ReadFloatingIP reads the body of POST /v1/floatingips.
func ReadFloatingIP(o Object) (network, ip string, err error) {
	var lacking []string
	for _, key := range []string{"floating_network_id", "floating_ip_address"} {
		if !o.has(key) {
			lacking = append(lacking, key)
		}
	}
	if len(lacking) > 0 {
		return "", "", missing(lacking...)
	}
	if network, err = o.network("floating_network_id"); err != nil {
		return "", "", err
	}
	text, _, err := o.text("floating_ip_address")
	if err == nil {
		ip, err = address.Canonical(text)
	}
	return network, ip, err
}

// NoNetwork returns the error for a network that Neutron does not have, with Blazar's text.
func NoNetwork(id string) error {
	return fault.New(fault.Invalid, "Failed to find network %s", id)
}

// NoNeutron returns the error for what requires Neutron where there is none.
func NoNeutron() error {
	return fault.New(fault.Invalid, "The %s resource type is not supported without Neutron, which Almanac finds in the catalog of the Keystone in [keystone_authtoken]", FloatingIPs)
}

// longestID is the largest length of the id of a network.
const longestID = 64

// network returns the id of a network; an error if it is too long to be one.
func (o Object) network(key string) (string, error) {
	id, _, err := o.text(key)
	if err == nil && utf8.RuneCountInString(id) > longestID {
		err = malformed(key)
	}
	return id, err
}

// floatingIPs reads a reservation of floating IPs.
func (r Reader) floatingIPs(o Object, m *reservation.MemberRequest) (err error) {
	if !r.Neutron {
		return NoNeutron()
	}
	var lacking []string
	for _, key := range []string{"network_id", "amount"} {
		if !o.has(key) {
			lacking = append(lacking, key)
		}
	}
	if len(lacking) > 0 {
		return missing(lacking...)
	}
	if m.Network, err = o.network("network_id"); err != nil {
		return err
	}
	amount, _, err := o.number("amount")
	if err != nil || amount < 1 {
		return malformed("amount")
	}
	m.Min, m.Max = amount, amount
	m.RequiredAddresses, err = o.addresses("required_floatingips")
	return err
}

// addresses returns a list of IP addresses, each once; none if there is no list.
func (o Object) addresses(key string) (list []string, err error) {
	if nothing(o[key]) {
		return nil, nil
	}
	values, ok := o[key].([]any)
	if !ok || len(values) > address.MostEnrolled {
		return nil, malformed(key)
	}
	for _, value := range values {
		text, ok := value.(string)
		if !ok {
			return nil, malformed(key)
		}
		ip, err := address.Canonical(text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, ip) {
			return nil, malformed(key + " (it has an address twice)")
		}
		list = append(list, ip)
	}
	return list, nil
}

// floatingIPsChange reads a change of a reservation of floating IPs.
func floatingIPsChange(o Object, m *reservation.Reservation, c *reservation.MemberChange) error {
	const cannot = "Floating IP reservation cannot be updated with requested parameters. "
	if id, sent, err := o.text("network_id"); err != nil || sent && (len(m.Addresses) == 0 || id != m.Addresses[0].Network) {
		return fault.New(fault.Invalid, cannot+"Updating network_id is not supported")
	}
	if n, ok, err := o.number("amount"); err != nil || ok && n < 1 {
		return malformed("amount")
	} else if ok {
		c.Min, c.Max = &n, &n
	}
	if o["required_floatingips"] == nil {
		return nil
	}
	asked, err := o.addresses("required_floatingips")
	if err != nil {
		return err
	}
	before := requiredOf(m)
	switch {
	case len(asked) == 0:
		c.AnyAddress = true
	case !slices.Equal(slices.Sorted(slices.Values(asked)), slices.Sorted(slices.Values(before))):
		return fault.New(fault.Invalid, cannot+"Updating required_floatingips is not supported except with an empty list")
	}
	return nil
}

// floatingFields are the fields that only resource type virtual:floatingip has.
type floatingFields struct {
	NetworkID           string   `json:"network_id"`
	RequiredFloatingIPs []string `json:"required_floatingips"`
}

// floatingFieldsOf returns the fields that only a reservation of floating IPs has.
func floatingFieldsOf(r *reservation.Reservation) *floatingFields {
	f := &floatingFields{RequiredFloatingIPs: requiredOf(r)}
	if len(r.Addresses) > 0 {
		f.NetworkID = r.Addresses[0].Network
	}
	return f
}

// requiredOf returns the addresses that the owner required by name; not nil.
func requiredOf(r *reservation.Reservation) []string {
	list := []string{}
	for _, a := range r.Addresses {
		if a.Required {
			list = append(list, a.Address)
		}
	}
	return list
}
