package nova

import (
	"context"
	"net/http"
	"net/url"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// SetServerMetadata writes items of a server's metadata; others stay. It returns a Conflict
// fault if the server's state does not allow it, and a Denied one if there would be too many
// items (nova/compute/api.py update_instance_metadata).
func (c *Client) SetServerMetadata(ctx context.Context, id string, items map[string]string) error {
	return c.service.Send(ctx, "write metadata of server "+id, http.MethodPost, serverPath(id)+"/metadata", map[string]any{"metadata": items}, nil, http.StatusOK)
}

// DeleteServerMetadata deletes an item of a server's metadata. A missing item or server is no
// error. It returns a Conflict fault if the server's state does not allow it.
func (c *Client) DeleteServerMetadata(ctx context.Context, id, key string) error {
	path := serverPath(id) + "/metadata/" + url.PathEscape(key)
	return openstack.UnlessMissing(c.service.Send(ctx, "delete metadata of server "+id, http.MethodDelete, path, nil, nil, http.StatusNoContent))
}
