// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"net/http"
	"net/url"

	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ServerRequest is a request for a server (POST /servers).
type ServerRequest struct {
	Name          string
	Flavor, Image string // ids
	// Networks are "none" or "auto", or the ids of networks.
	Networks []string
	KeyName  string
	UserData string // base64
	Metadata map[string]string
	Hints    map[string]string // for the scheduler
}

// CreateServer requests a server on behalf of the client's user, and does not wait for it. A
// request that Nova rejects, for example for a missing flavor, is an Invalid fault, an exceeded
// quota a Denied one.
func (c *Client) CreateServer(ctx context.Context, r ServerRequest) (id string, err error) {
	server := map[string]any{"name": r.Name, "flavorRef": r.Flavor, "imageRef": r.Image, "networks": networks(r.Networks)}
	for name, value := range map[string]string{"key_name": r.KeyName, "user_data": r.UserData} {
		if value != "" {
			server[name] = value
		}
	}
	if len(r.Metadata) > 0 {
		server["metadata"] = r.Metadata
	}
	body := map[string]any{"server": server}
	if len(r.Hints) > 0 {
		body["os:scheduler_hints"] = r.Hints
	}
	const doing = "create a server"
	var made struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
	}
	err = c.service.Send(ctx, doing, http.MethodPost, "servers", body, &made, http.StatusAccepted)
	if err == nil && made.Server.ID == "" {
		err = c.service.Malformed(doing, "it contains no server id")
	}
	return made.Server.ID, err
}

// networks returns the networks of a new server as Nova reads them: none, auto, or a list of ids.
func networks(named []string) any {
	if len(named) == 1 && (named[0] == "none" || named[0] == "auto") {
		return named[0]
	}
	list := make([]map[string]string, len(named))
	for i, id := range named {
		list[i] = map[string]string{"uuid": id}
	}
	return list
}

// Action is an action on a server, when it began, and on whose behalf it was done.
type Action struct {
	Action, RequestID string
	UserID, ProjectID string
	Start             span.Instant
}

// ActionsOf returns the actions on a server, the last first (GET
// /servers/{id}/os-instance-actions). Since 2.21 Nova also returns those of a deleted server,
// until it forgets it; then the result is a NotFound fault.
func (c *Client) ActionsOf(ctx context.Context, id string) ([]Action, error) {
	doing := "read the actions on server " + id
	var body struct {
		Acts []struct {
			Action    string  `json:"action"`
			RequestID string  `json:"request_id"`
			UserID    string  `json:"user_id"`
			ProjectID string  `json:"project_id"`
			Start     instant `json:"start_time"`
		} `json:"instanceActions"`
	}
	if err := c.service.Get(ctx, doing, serverPath(id)+"/os-instance-actions", &body); err != nil {
		return nil, err
	}
	if body.Acts == nil {
		return nil, c.service.Malformed(doing, "it contains no list of actions")
	}
	list := make([]Action, len(body.Acts))
	for i, a := range body.Acts {
		list[i] = Action{a.Action, a.RequestID, a.UserID, a.ProjectID, span.Instant(a.Start)}
	}
	return list, nil
}

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

// The methods below order an action on a server and do not wait for it. A missing server is no
// error, since it is on no host then. They return a Conflict fault if the server's state does
// not allow the action, for example during another task. An admin's orders work on locked
// servers too (nova/compute/api.py check_instance_lock).

// DeleteServer deletes a server at once, even if Nova keeps deleted ones for a while ([DEFAULT]
// reclaim_instance_interval), since its host is needed.
func (c *Client) DeleteServer(ctx context.Context, id string) error {
	return c.order(ctx, "delete server "+id, id, map[string]any{"forceDelete": nil})
}

// ResetServer sets the status of a server to ERROR and clears its task, whatever Nova does with it
// (nova/api/openstack/compute/admin_actions.py).
func (c *Client) ResetServer(ctx context.Context, id string) error {
	return c.order(ctx, "reset the state of server "+id, id, map[string]any{"os-resetState": map[string]string{"state": "error"}})
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

// ImageServer makes an image of a server with its owner's rights to it, while the server runs on.
func (c *Client) ImageServer(ctx context.Context, id, image string) error {
	return c.order(ctx, "make an image of server "+id, id, map[string]any{"createImage": map[string]any{"name": image}})
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

// SuspendServer writes the memory of a server to its host's disk and stops it. It is resumed on
// the same host.
func (c *Client) SuspendServer(ctx context.Context, id string) error {
	return c.order(ctx, "suspend server "+id, id, map[string]any{"suspend": nil})
}

// ResumeServer continues a suspended server.
func (c *Client) ResumeServer(ctx context.Context, id string) error {
	return c.order(ctx, "resume server "+id, id, map[string]any{"resume": nil})
}

// LockServer keeps the owner of a server from acting on it. The owner can read the reason if
// Nova speaks 2.73. Only an admin unlocks what an admin has locked (nova/compute/api.py lock).
func (c *Client) LockServer(ctx context.Context, id, reason string) error {
	spoken, err := c.Microversion(ctx)
	if err != nil {
		return err
	}
	action := map[string]any{"lock": nil}
	if !spoken.Less(openstack.Microversion{Major: 2, Minor: 73}) {
		action["lock"] = map[string]any{"locked_reason": reason}
	}
	return c.order(ctx, "lock server "+id, id, action)
}

// UnlockServer lets the owner of a server act on it again.
func (c *Client) UnlockServer(ctx context.Context, id string) error {
	return c.order(ctx, "unlock server "+id, id, map[string]any{"unlock": nil})
}

func (c *Client) order(ctx context.Context, doing, id string, action map[string]any) error {
	return openstack.UnlessMissing(c.service.Send(ctx, doing, http.MethodPost, serverPath(id)+"/action", action, nil,
		http.StatusAccepted, http.StatusNoContent))
}

func serverPath(id string) string { return "servers/" + url.PathEscape(id) }

// DeleteServerGroup deletes the server group with the id (DELETE /os-server-groups/{id}). A missing
// group is no error. Servers keep running.
func (c *Client) DeleteServerGroup(ctx context.Context, id string) error {
	return openstack.UnlessMissing(c.service.Send(ctx, "delete server group "+id, http.MethodDelete, "os-server-groups/"+url.PathEscape(id), nil, nil,
		http.StatusNoContent))
}
