// SPDX-License-Identifier: Apache-2.0

// Package glance calls Glance's image API.
package glance

import "github.com/almanac-cloud/almanac/pkg/openstack"

// kind is Glance, which has no microversions.
var kind = openstack.Kind{Name: "glance", Type: "image", Path: "v2"}

// Client is a client of Glance. It is safe for concurrent use. Its methods return the errors of
// openstack.Service.
type Client struct {
	service *openstack.Service
}

// New returns a client, without calling Glance. It returns an Invalid fault for unusable
// options.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	return &Client{service: service}, nil
}

// Calls returns the number of requests sent to Glance so far.
func (c *Client) Calls() int64 { return c.service.Calls() }
