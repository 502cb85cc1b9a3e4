package nova

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// SetServerMetadata writes items of a server's metadata; others stay. It returns a Conflict
// fault if the server's state does not allow it, and a Denied one if there would be too many
// items (nova/compute/api.py update_instance_metadata).
func (c *Client) SetServerMetadata(ctx context.Context, id string, items map[string]string) error {
	return c.service.Change(ctx, "write metadata of server "+id, func(ctx context.Context, g *gophercloud.ServiceClient) error {
		return discard(g.Post(ctx, g.ServiceURL("servers", url.PathEscape(id), "metadata"), map[string]any{"metadata": items}, nil,
			&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}}))
	})
}

// DeleteServerMetadata deletes an item of a server's metadata. A missing item or server is no
// error. It returns a Conflict fault if the server's state does not allow it.
func (c *Client) DeleteServerMetadata(ctx context.Context, id, key string) error {
	err := c.service.Change(ctx, "delete metadata of server "+id, func(ctx context.Context, g *gophercloud.ServiceClient) error {
		return discard(g.Delete(ctx, g.ServiceURL("servers", url.PathEscape(id), "metadata", url.PathEscape(key)),
			&gophercloud.RequestOpts{OkCodes: []int{http.StatusNoContent}}))
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
