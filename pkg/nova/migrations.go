package nova

import (
	"context"
	"net/url"
)

// Migration is a move of a server from one host to another.
type Migration struct {
	ID     string // with which it holds a place on the source, as a consumer of Placement
	Server string
	// Type is live-migration, migration, resize or evacuation.
	Type, Status string
	Source, Dest string // hosts
}

// MigrationsFrom gives the latest migrations away from a host, the last one first: as
// many as Nova gives at once, which is more than can be under way.
func (c *Client) MigrationsFrom(ctx context.Context, host string) ([]Migration, error) {
	return c.migrations(ctx, "list the migrations from host "+host, url.Values{"source_compute": {host}})
}

// MigrationsOn gives the latest migrations to a host or from it, as MigrationsFrom does.
func (c *Client) MigrationsOn(ctx context.Context, host string) ([]Migration, error) {
	return c.migrations(ctx, "list the migrations on host "+host, url.Values{"host": {host}})
}

// Over says that nobody has anything on either host because of the migration, other than
// the server itself where it is now. One of a server that waits for its resize to be
// confirmed is not over (nova/db/main/api.py migration_get_in_progress_by_host_and_node).
func (m *Migration) Over() bool {
	switch m.Status {
	case "confirmed", "reverted", "error", "failed", "completed", "cancelled", "done":
		return true
	}
	return false
}

// MigrationsOf gives the latest migrations of a server, the last one first.
func (c *Client) MigrationsOf(ctx context.Context, server string) ([]Migration, error) {
	return c.migrations(ctx, "list the migrations of server "+server, url.Values{"instance_uuid": {server}})
}

// migrations reads a list of them (nova/api/openstack/compute/migrations.py).
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
		return nil, c.service.Senseless(doing, "no migrations in it")
	}
	all := make([]Migration, len(list.Migrations))
	for i, m := range list.Migrations {
		all[i] = Migration{ID: m.UUID, Server: m.Server, Type: m.Type, Status: m.Status, Source: m.Source, Dest: m.Dest}
	}
	return all, nil
}
