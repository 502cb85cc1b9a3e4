// SPDX-License-Identifier: Apache-2.0

// Package placement calls the Placement API.
package placement

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// kind is Placement. Allocation candidates contain the traits and parents of all providers in a
// tree since 1.29; Almanac uses nothing newer than 1.39.
var kind = openstack.Kind{
	Name: "placement", Type: "placement",
	Least: openstack.Microversion{Major: 1, Minor: 29}, Most: openstack.Microversion{Major: 1, Minor: 39},
}

// Client is a client of Placement. It is safe for concurrent use. Its methods return the errors
// of openstack.Service; an error code of Placement, such as placement.concurrent_update, is in
// their *openstack.Answer.
type Client struct {
	service *openstack.Service
}

// New returns a client, without calling Placement. It returns an Invalid fault for unusable
// options.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	return &Client{service: service}, nil
}

// Calls returns the number of requests sent to Placement so far.
func (c *Client) Calls() int64 { return c.service.Calls() }

// Microversion returns the microversion in use: Placement's highest up to 1.39.
func (c *Client) Microversion(ctx context.Context) (openstack.Microversion, error) {
	return c.service.Microversion(ctx)
}
