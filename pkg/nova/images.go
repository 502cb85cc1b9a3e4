// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// cachesImages is the first microversion with image caching.
var cachesImages = openstack.Microversion{Major: 2, Minor: 81}

// CacheImage asks Nova to put an image into the caches of all hosts of an aggregate (POST
// /os-aggregates/{id}/images, nova/conductor/manager.py cache_images), and returns before that
// is done: Nova goes from host to host, with the list of hosts at the time of the call.
// request, of the form req-UUID, becomes the global request id in Nova's notifications of this
// call.
func (c *Client) CacheImage(ctx context.Context, a inventory.Aggregate, image, request string) error {
	wanted := map[string]any{"cache": []map[string]string{{"id": image}}}
	return c.service.Change(ctx, "cache image "+image+" on the hosts of "+called(a), func(ctx context.Context, g *gophercloud.ServiceClient) error {
		if spoken, err := openstack.ParseMicroversion(g.Microversion); err != nil || spoken.Less(cachesImages) {
			return fault.New(fault.Unavailable, "Nova caches images from microversion %s on, but Almanac uses %s with it", cachesImages, g.Microversion)
		}
		_, err := g.Post(ctx, g.ServiceURL(aggregatePath(a), "images"), wanted, nil, &gophercloud.RequestOpts{
			OkCodes: []int{http.StatusAccepted}, MoreHeaders: map[string]string{"X-Openstack-Request-Id": request},
		})
		return err
	})
}

// SetHosts sets the hosts of an aggregate. refused contains the hosts that Nova did not add or
// remove although it accepted others, each with the reason, for example that it does not know
// the host. After an error the aggregate has some of the hosts.
func (c *Client) SetHosts(ctx context.Context, a inventory.Aggregate, hosts []string) (refused map[string]error, err error) {
	refused = map[string]error{}
	change := func(host string, change func(context.Context, inventory.Aggregate, string) error) error {
		err := change(ctx, a, host)
		if fault.Is(err, fault.Invalid) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
			refused[host] = err
			return nil
		}
		return err
	}
	for _, host := range a.Hosts {
		if !slices.Contains(hosts, host) {
			if err := change(host, c.RemoveHost); err != nil {
				return refused, err
			}
		}
	}
	for _, host := range hosts {
		if !slices.Contains(a.Hosts, host) {
			if err := change(host, c.AddHost); err != nil {
				return refused, err
			}
		}
	}
	return refused, nil
}
