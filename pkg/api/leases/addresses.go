// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"net/http"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// enrolled returns the pool; it is empty without a Neutron.
func (s addresses) enrolled(c *serving.Call) ([]address.Enrolled, error) {
	if s.Addresses == nil {
		return nil, nil
	}
	return s.Addresses.Enrolled(c.Request.Context())
}

// list handles GET /v1/floatingips.
func (s addresses) list(c *serving.Call) (any, error) {
	enrolled, err := s.enrolled(c)
	list := make([]blazar.FloatingIP, len(enrolled))
	for i, a := range enrolled {
		list[i] = blazar.FloatingIPOf(a)
	}
	return map[string]any{"floatingips": list}, err
}

// show handles GET /v1/floatingips/{id}.
func (s addresses) show(c *serving.Call) (any, error) {
	id := c.PathID()
	enrolled, err := s.enrolled(c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(enrolled, func(a address.Enrolled) bool { return a.ID == id })
	if i < 0 {
		return nil, address.NotEnrolled(id)
	}
	return map[string]any{"floatingip": blazar.FloatingIPOf(enrolled[i])}, nil
}

// add handles POST /v1/floatingips.
func (s addresses) add(c *serving.Call) (any, error) {
	body, err := bodyOf(c, serving.AnyBody)
	if err != nil {
		return nil, err
	}
	id, ip, err := blazar.ReadFloatingIP(body)
	if err != nil {
		return nil, err
	}
	if s.Neutron == nil {
		return nil, blazar.NoNeutron()
	}
	network, err := s.Neutron.Network(c.Request.Context(), id)
	if fault.Is(err, fault.NotFound) {
		err = blazar.NoNetwork(id)
	}
	if err != nil {
		return nil, err
	}
	subnet, err := address.SubnetFor(network, ip)
	if err != nil {
		return nil, err
	}
	a := address.Enrolled{ID: s.NewID(), Network: network.ID, Subnet: subnet, Address: ip, Created: s.Now()}
	if err := s.Addresses.Enroll(c.Request.Context(), a); err != nil {
		return nil, err
	}
	c.Status(http.StatusCreated)
	return map[string]any{"floatingip": blazar.FloatingIPOf(a)}, nil
}

// remove handles DELETE /v1/floatingips/{id}.
func (s addresses) remove(c *serving.Call) (any, error) {
	if s.Addresses == nil {
		return nil, address.NotEnrolled(c.PathID())
	}
	return nil, s.Addresses.Withdraw(c.Request.Context(), c.PathID())
}
