// SPDX-License-Identifier: Apache-2.0

// Package nova calls Nova's compute API.
package nova

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// kind is Nova. Its services report unreachable cells since 2.69; servers contain their
// scheduler hints since 2.100.
var kind = openstack.Kind{
	Name: "nova", Type: "compute", Path: "v2.1",
	Least: openstack.Microversion{Major: 2, Minor: 69}, Most: openstack.Microversion{Major: 2, Minor: 100},
}

// Client is a client of Nova. It is safe for concurrent use. Its methods return the errors of
// openstack.Service.
type Client struct {
	service *openstack.Service
	// every reads the services of all hosts. It is what takes Nova longest in a large cloud, and ends of
	// reservations read it at the same time.
	every job.Shared[[]Service]
}

// everyLimit is how long a reading of the services of all hosts may take, with its repetitions.
const everyLimit = 5 * time.Minute

// New returns a client, without calling Nova. It returns an Invalid fault for unusable options.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	c := &Client{service: service}
	c.every.Limit = everyLimit
	c.every.Read = func(ctx context.Context) ([]Service, error) { return c.services(ctx, "list the compute services", "") }
	return c, nil
}

// Calls returns the number of requests sent to Nova so far.
func (c *Client) Calls() int64 { return c.service.Calls() }

// Microversion returns the microversion in use: Nova's highest up to 2.100.
func (c *Client) Microversion(ctx context.Context) (openstack.Microversion, error) {
	return c.service.Microversion(ctx)
}

// Release returns the release of Nova, by the highest microversion that Nova offers. It asks Nova
// each time.
func (c *Client) Release(ctx context.Context) (release.Release, error) {
	most, err := c.service.Highest(ctx)
	if err != nil {
		return release.Unknown, err
	}
	return release.OfMicroversion(most.Minor), nil
}
