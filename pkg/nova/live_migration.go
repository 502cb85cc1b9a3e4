// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// LiveMigrateServerTo moves a running server to a host, which Nova's scheduler must accept
// (since 2.68 a host cannot be forced; nova/api/openstack/compute/migrate_server.py). It
// returns before that is done; the server then has the task migrating. A missing server is a
// NotFound fault; other errors are those of the orders in servers_change.go.
func (c *Client) LiveMigrateServerTo(ctx context.Context, id, host string) error {
	action := map[string]any{"os-migrateLive": map[string]any{"host": host, "block_migration": "auto"}}
	return c.service.Send(ctx, "live-migrate server "+id+" to "+host, http.MethodPost, serverPath(id)+"/action", action, nil, http.StatusAccepted)
}

// AbortLiveMigration aborts the live migrations of a server that are in progress and can be
// aborted (DELETE /servers/{id}/migrations/{id}, since 2.24).
func (c *Client) AbortLiveMigration(ctx context.Context, id string) error {
	doing := "abort the live migration of server " + id
	var body struct{ Migrations []struct{ ID int64 } }
	path := serverPath(id) + "/migrations"
	if err := c.service.Get(ctx, doing, path, &body); err != nil {
		return err
	}
	for _, m := range body.Migrations {
		err := c.service.Send(ctx, doing, http.MethodDelete, path+"/"+strconv.FormatInt(m.ID, 10), nil, nil, http.StatusAccepted)
		if err := openstack.UnlessMissing(err); err != nil {
			return err
		}
	}
	return nil
}

// CPUTime is the CPU usage of a server since it was started.
type CPUTime struct {
	// Busy is the run time of all its CPUs, Up the time since the start, in seconds. Up is 0 if
	// the driver does not report it.
	Busy, Up float64
}

// CPUTime returns the CPU usage of a server, from its host (GET /servers/{id}/diagnostics,
// since 2.48 the same for all drivers; nova/objects/diagnostics.py). A server that does not run
// is a Conflict fault, a driver that does not report it an Invalid one.
func (c *Client) CPUTime(ctx context.Context, id string) (CPUTime, error) {
	doing := "read the diagnostics of server " + id
	var body struct {
		Uptime *float64
		CPUs   []struct {
			Time *float64 // ns
		} `json:"cpu_details"`
	}
	if err := c.service.Get(ctx, doing, serverPath(id)+"/diagnostics", &body); err != nil {
		return CPUTime{}, err
	}
	var t CPUTime
	if body.Uptime != nil {
		t.Up = *body.Uptime
	}
	told := false
	for _, cpu := range body.CPUs {
		if cpu.Time != nil {
			t.Busy, told = t.Busy+*cpu.Time/1e9, true
		}
	}
	if !told {
		return CPUTime{}, fault.New(fault.Invalid, "the driver of server %s does not report its CPU time", id)
	}
	return t, nil
}

// Migration is a move of a server from one host to another.
type Migration struct {
	ID     string // its consumer id in Placement, which holds the allocation on the source
	Server string
	// Type is live-migration, migration, resize or evacuation.
	Type, Status string
	Source, Dest string // hosts
}

// MigrationsFrom returns the latest migrations away from a host, newest first: one page of Nova's,
// which is more than can be in progress.
func (c *Client) MigrationsFrom(ctx context.Context, host string) ([]Migration, error) {
	return c.migrations(ctx, "list the migrations from host "+host, url.Values{"source_compute": {host}})
}

// MigrationsOn returns the latest migrations to or from a host, like MigrationsFrom.
func (c *Client) MigrationsOn(ctx context.Context, host string) ([]Migration, error) {
	return c.migrations(ctx, "list the migrations on host "+host, url.Values{"host": {host}})
}

// Over reports whether the migration no longer holds anything on either host, apart from the
// server itself where it is now. The migration of a server that waits for the confirmation of
// its resize is not over (nova/db/main/api.py migration_get_in_progress_by_host_and_node).
func (m *Migration) Over() bool {
	switch m.Status {
	case "confirmed", "reverted", "error", "failed", "completed", "cancelled", "done":
		return true
	}
	return false
}

// MigrationsOf returns the latest migrations of a server, newest first.
func (c *Client) MigrationsOf(ctx context.Context, server string) ([]Migration, error) {
	return c.migrations(ctx, "list the migrations of server "+server, url.Values{"instance_uuid": {server}})
}

// migrations returns the migrations of a query (nova/api/openstack/compute/migrations.py).
func (c *Client) migrations(ctx context.Context, doing string, query url.Values) ([]Migration, error) {
	var list struct {
		Migrations []struct {
			UUID   string
			Server string `json:"instance_uuid"`
			Type   string `json:"migration_type"`
			Status string
			Source string `json:"source_compute"`
			Dest   string `json:"dest_compute"`
		}
	}
	if err := c.service.Get(ctx, doing, "os-migrations?"+query.Encode(), &list); err != nil {
		return nil, err
	}
	if list.Migrations == nil {
		return nil, c.service.Malformed(doing, "it contains no list of migrations")
	}
	all := make([]Migration, len(list.Migrations))
	for i, m := range list.Migrations {
		all[i] = Migration{ID: m.UUID, Server: m.Server, Type: m.Type, Status: m.Status, Source: m.Source, Dest: m.Dest}
	}
	return all, nil
}
