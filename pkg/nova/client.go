// Package nova calls Nova's compute API.
package nova

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// kind is Nova. Services have told of cells that are away since 2.69; servers have told
// their scheduler hints since 2.100.
var kind = openstack.Kind{
	Name: "nova", Type: "compute", Path: "v2.1",
	Least: openstack.Microversion{Major: 2, Minor: 69}, Most: openstack.Microversion{Major: 2, Minor: 100},
}

// Client is a client of Nova. It is safe for concurrent use. The errors of its methods
// are those of openstack.Service.
type Client struct {
	service *openstack.Service
}

// New gives a client, which asks Nova nothing yet. It fails with an Invalid fault
// about options that cannot work.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	return &Client{service: service}, nil
}

// Calls is how many requests have been sent to Nova so far.
func (c *Client) Calls() int64 { return c.service.Calls() }

// Microversion gives the one that is spoken with Nova now: its highest up to 2.100.
func (c *Client) Microversion(ctx context.Context) (openstack.Microversion, error) {
	return c.service.Microversion(ctx)
}
