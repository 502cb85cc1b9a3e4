package nova

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// LiveMigrateServerTo has Nova move a running server to a host, which its scheduler must
// accept (since 2.68 a host cannot be forced; nova/api/openstack/compute/migrate_server.py).
// It returns before that is done: the server has the task migrating by then. It fails with a
// NotFound fault where there is no such server, and as the orders of servers do.
func (c *Client) LiveMigrateServerTo(ctx context.Context, id, host string) error {
	action := map[string]any{"os-migrateLive": map[string]any{"host": host, "block_migration": "auto"}}
	return c.service.Change(ctx, "live-migrate server "+id+" to "+host, func(ctx context.Context, g *gophercloud.ServiceClient) error {
		return discard(g.Post(ctx, g.ServiceURL("servers", url.PathEscape(id), "action"), action, nil,
			&gophercloud.RequestOpts{OkCodes: []int{http.StatusAccepted}}))
	})
}

// AbortLiveMigration has Nova give up the live migration of a server that is under way, if
// there is one and it can be (DELETE /servers/{id}/migrations/{id}, since 2.24).
func (c *Client) AbortLiveMigration(ctx context.Context, id string) error {
	doing := "abort the live migration of server " + id
	var body struct{ Migrations []struct{ ID int64 } }
	path := "servers/" + url.PathEscape(id) + "/migrations"
	if err := c.service.Get(ctx, doing, path, &body); err != nil {
		return err
	}
	for _, m := range body.Migrations {
		err := c.service.Change(ctx, doing, func(ctx context.Context, g *gophercloud.ServiceClient) error {
			return discard(g.Delete(ctx, g.ServiceURL("servers", url.PathEscape(id), "migrations", strconv.FormatInt(m.ID, 10)),
				&gophercloud.RequestOpts{OkCodes: []int{http.StatusAccepted}}))
		})
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// CPUTime is what a server has used since its guest was started.
type CPUTime struct {
	// Busy is how long its CPUs have run, together, and Up how long the guest has, in seconds.
	// Up is 0 where the driver does not tell it.
	Busy, Up float64
}

// CPUTime asks the host of a server (GET /servers/{id}/diagnostics, since 2.48 the same for
// all drivers; nova/objects/diagnostics.py). It fails with a Conflict fault where the server
// does not run, and where its driver does not tell with an Invalid one.
func (c *Client) CPUTime(ctx context.Context, id string) (CPUTime, error) {
	doing := "read the diagnostics of server " + id
	var body struct {
		Uptime *float64
		CPUs   []struct {
			Time *float64 // ns
		} `json:"cpu_details"`
	}
	if err := c.service.Get(ctx, doing, "servers/"+url.PathEscape(id)+"/diagnostics", &body); err != nil {
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
		return CPUTime{}, fault.New(fault.Invalid, "the driver of server %s does not tell its CPU time", id)
	}
	return t, nil
}
