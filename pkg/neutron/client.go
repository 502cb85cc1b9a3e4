// SPDX-License-Identifier: Apache-2.0

// Package neutron calls Neutron's network API.
package neutron

import "github.com/almanac-cloud/almanac/pkg/openstack"

// kind is Neutron, which has no microversions.
var kind = openstack.Kind{Name: "neutron", Type: "network", Path: "v2.0"}

// Client is a client of Neutron. It is safe for concurrent use. Its methods return the errors of
// openstack.Service.
type Client struct {
	service *openstack.Service
}

// New returns a client, without calling Neutron. It returns an Invalid fault for unusable options.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	return &Client{service: service}, nil
}

// Calls returns the number of requests sent to Neutron so far.
func (c *Client) Calls() int64 { return c.service.Calls() }
