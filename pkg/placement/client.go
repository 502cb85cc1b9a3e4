// Package placement calls the Placement API.
package placement

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// kind is Placement. Allocation candidates have had traits and parents of all
// providers in a tree since 1.29; nothing after 1.39 is used.
var kind = openstack.Kind{
	Name: "placement", Type: "placement",
	Least: openstack.Microversion{Major: 1, Minor: 29}, Most: openstack.Microversion{Major: 1, Minor: 39},
}

// Client is a client of Placement. It is safe for concurrent use. The errors of its
// methods are those of openstack.Service; where Placement gave a code, such as
// placement.concurrent_update, the *openstack.Answer in the error has it.
type Client struct {
	service *openstack.Service
}

// New gives a client, which asks Placement nothing yet. It fails with an Invalid fault
// about options that cannot work.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	return &Client{service: service}, nil
}

// Calls is how many requests have been sent to Placement so far.
func (c *Client) Calls() int64 { return c.service.Calls() }

// Microversion gives the one that is spoken with Placement now: its highest up to 1.39.
func (c *Client) Microversion(ctx context.Context) (openstack.Microversion, error) {
	return c.service.Microversion(ctx)
}
