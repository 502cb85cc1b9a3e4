package nova

import (
	"context"
	"net/http"
	"net/url"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// The methods below order an action on a server and do not wait for it. A missing server is no
// error, since it is on no host then. They return a Conflict fault if the server's state does
// not allow the action, for example during another task. An admin's orders work on locked
// servers too (nova/compute/api.py check_instance_lock).

// DeleteServer deletes a server at once, even if Nova keeps deleted ones for a while ([DEFAULT]
// reclaim_instance_interval), since its host is needed.
func (c *Client) DeleteServer(ctx context.Context, id string) error {
	return c.order(ctx, "delete server "+id, id, map[string]any{"forceDelete": nil})
}

// StopServer powers a server off.
func (c *Client) StopServer(ctx context.Context, id string) error {
	return c.order(ctx, "stop server "+id, id, map[string]any{"os-stop": nil})
}

// ShelveServer powers a server off and makes an image of it. Nova then removes it from its
// host, at once or after [DEFAULT] shelved_offload_time; if that is -1, only OffloadServer
// does.
func (c *Client) ShelveServer(ctx context.Context, id string) error {
	return c.order(ctx, "shelve server "+id, id, map[string]any{"shelve": nil})
}

// OffloadServer removes a shelved server from its host.
func (c *Client) OffloadServer(ctx context.Context, id string) error {
	return c.order(ctx, "offload server "+id, id, map[string]any{"shelveOffload": nil})
}

// LiveMigrateServer moves a running server to a host that the scheduler chooses.
func (c *Client) LiveMigrateServer(ctx context.Context, id string) error {
	return c.order(ctx, "live-migrate server "+id, id, map[string]any{
		"os-migrateLive": map[string]any{"host": nil, "block_migration": "auto"},
	})
}

// MigrateServer stops a server, moves it to a host that the scheduler chooses, and starts it.
// It keeps its allocation on the old host until ConfirmMigration.
func (c *Client) MigrateServer(ctx context.Context, id string) error {
	return c.order(ctx, "migrate server "+id, id, map[string]any{"migrate": nil})
}

// ConfirmMigration frees the allocation that a server has kept since MigrateServer.
func (c *Client) ConfirmMigration(ctx context.Context, id string) error {
	return c.order(ctx, "confirm the migration of server "+id, id, map[string]any{"confirmResize": nil})
}

func (c *Client) order(ctx context.Context, doing, id string, action map[string]any) error {
	return openstack.UnlessMissing(c.service.Send(ctx, doing, http.MethodPost, serverPath(id)+"/action", action, nil,
		http.StatusAccepted, http.StatusNoContent))
}

func serverPath(id string) string { return "servers/" + url.PathEscape(id) }
