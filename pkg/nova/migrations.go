package nova

import (
	"context"
	"net/url"
)

// Migration is a move of a server from one host to another.
type Migration struct {
	ID     string // its consumer id in Placement, which holds the allocation on the source
	Server string
	// Type is live-migration, migration, resize or evacuation.
	Type, Status string
	Source, Dest string // hosts
}

// MigrationsFrom returns the latest migrations away from a host, the last one first: one page
// of Nova's, which is more than can be in progress.
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

// MigrationsOf returns the latest migrations of a server, the last one first.
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
