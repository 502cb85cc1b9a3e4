package nova

import (
	"context"
	"net/http"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// LiveMigrateServerTo moves a running server to a host, which Nova's scheduler must accept
// (since 2.68 a host cannot be forced; nova/api/openstack/compute/migrate_server.py). It
// returns before that is done; the server then has the task migrating. A missing server is a
// NotFound fault; other errors are those of the orders in servers_order.go.
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
