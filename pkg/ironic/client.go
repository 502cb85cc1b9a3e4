// SPDX-License-Identifier: Apache-2.0

// Package ironic calls the API of Ironic, which manages bare-metal nodes.
package ironic

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// kind is Ironic. Nodes report since 1.48 whether they are protected, since 1.61 whether they
// are retired, and since 1.95 whether they may be powered off.
var kind = openstack.Kind{
	Name: "ironic", Type: "baremetal", Path: "v1",
	Least: openstack.Microversion{Major: 1, Minor: 46}, Most: openstack.Microversion{Major: 1, Minor: 95},
}

// Client is a client of Ironic. It is safe for concurrent use. Its methods return the errors of
// openstack.Service.
type Client struct {
	service *openstack.Service
	wait    func(ctx context.Context, d time.Duration) error
}

// New returns a client, without calling Ironic. It returns an Invalid fault for unusable
// options.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	return &Client{service: service, wait: o.Wait}, nil
}

// Calls returns the number of requests sent to Ironic so far.
func (c *Client) Calls() int64 { return c.service.Calls() }

// Microversion returns the microversion in use: Ironic's highest up to 1.95.
func (c *Client) Microversion(ctx context.Context) (openstack.Microversion, error) {
	return c.service.Microversion(ctx)
}
