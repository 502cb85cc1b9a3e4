// Package glance calls Glance's image API.
package glance

import "github.com/almanac-cloud/almanac/pkg/openstack"

// kind is Glance, which has no microversions.
var kind = openstack.Kind{Name: "glance", Type: "image", Path: "v2"}

// Client is a client of Glance. It is safe for concurrent use. The errors of its methods
// are those of openstack.Service.
type Client struct {
	service *openstack.Service
}

// New gives a client, which asks Glance nothing yet. It fails with an Invalid fault about
// options that cannot work.
func New(session openstack.Session, o openstack.Options) (*Client, error) {
	service, err := openstack.NewService(session, kind, o)
	if err != nil {
		return nil, err
	}
	return &Client{service: service}, nil
}

// Calls is how many requests have been sent to Glance so far.
func (c *Client) Calls() int64 { return c.service.Calls() }
