// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const demoServersPath = "/v1/demo/servers"

// DemoServers returns the servers of a simulated cloud. It fails with a NotFound fault if the cloud
// is not simulated.
func (c *Client) DemoServers(ctx context.Context) (v1.DemoServers, error) {
	return answer[v1.DemoServers](ctx, c, call{method: http.MethodGet, path: demoServersPath})
}

// CreateDemoServer creates a server in a simulated cloud, and returns it when a host was chosen for
// it or none was found.
func (c *Client) CreateDemoServer(ctx context.Context, r v1.DemoServerRequest) (v1.DemoServer, error) {
	return answer[v1.DemoServer](ctx, c, call{method: http.MethodPost, path: demoServersPath, body: r})
}

// DeleteDemoServer begins to delete a server of a simulated cloud.
func (c *Client) DeleteDemoServer(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: demoServersPath, id: &id})
}
