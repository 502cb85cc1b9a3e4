// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// AddressPool is the floating IPs that can be reserved.
type AddressPool interface {
	// Enrolled returns the addresses of the pool of all networks, sorted by network, then address.
	Enrolled(ctx context.Context) ([]address.Enrolled, error)
	// Enroll adds an address. It fails with a Conflict fault if the pool has it already, or is full.
	Enroll(ctx context.Context, a address.Enrolled) error
	// Withdraw removes an address. It fails with a NotFound fault if there is none of that id, and with
	// a Conflict fault while a live reservation claims it.
	Withdraw(ctx context.Context, id string) error
}

// Neutron reads networks.
type Neutron interface {
	// Network returns a network with its subnets; a missing network is a NotFound fault.
	Network(ctx context.Context, id string) (address.Network, error)
}

// enrolledAddresses returns the pool; it is empty without a Neutron.
func (s *server) enrolledAddresses(c *gin.Context) ([]address.Enrolled, error) {
	if s.Blazar.Addresses == nil {
		return nil, nil
	}
	return s.Blazar.Addresses.Enrolled(c.Request.Context())
}

// listFloatingIPs handles GET /v1/floatingips.
func (s *server) listFloatingIPs(c *gin.Context) (any, error) {
	enrolled, err := s.enrolledAddresses(c)
	list := make([]blazar.FloatingIP, len(enrolled))
	for i, a := range enrolled {
		list[i] = blazar.FloatingIPOf(a)
	}
	return gin.H{"floatingips": list}, err
}

// showFloatingIP handles GET /v1/floatingips/{id}.
func (s *server) showFloatingIP(c *gin.Context) (any, error) {
	id := pathID(c)
	enrolled, err := s.enrolledAddresses(c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(enrolled, func(a address.Enrolled) bool { return a.ID == id })
	if i < 0 {
		return nil, address.NotEnrolled(id)
	}
	return gin.H{"floatingip": blazar.FloatingIPOf(enrolled[i])}, nil
}

// addFloatingIP handles POST /v1/floatingips.
func (s *server) addFloatingIP(c *gin.Context) (any, error) {
	body, err := s.blazarBody(c, s.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	id, ip, err := blazar.ReadFloatingIP(body)
	if err != nil {
		return nil, err
	}
	if s.Blazar.Neutron == nil {
		return nil, blazar.NoNeutron()
	}
	network, err := s.Blazar.Neutron.Network(c.Request.Context(), id)
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
	a := address.Enrolled{ID: s.Blazar.NewID(), Network: network.ID, Subnet: subnet, Address: ip, Created: s.Now()}
	if err := s.Blazar.Addresses.Enroll(c.Request.Context(), a); err != nil {
		return nil, err
	}
	c.Status(http.StatusCreated)
	return gin.H{"floatingip": blazar.FloatingIPOf(a)}, nil
}

// removeFloatingIP handles DELETE /v1/floatingips/{id}.
func (s *server) removeFloatingIP(c *gin.Context) (any, error) {
	if s.Blazar.Addresses == nil {
		return nil, address.NotEnrolled(pathID(c))
	}
	return nil, s.Blazar.Addresses.Withdraw(c.Request.Context(), pathID(c))
}
