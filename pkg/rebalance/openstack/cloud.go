// SPDX-License-Identifier: Apache-2.0

// Package openstack moves instances through Nova, and reads from Nova what package
// rebalance needs to know of them.
package openstack

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
)

// Migrator implements rebalance.Migrator.
type Migrator struct {
	Compute *nova.Client
}

// Look implements rebalance.Migrator. It reads the migrations before the server, so that the server
// shows the result of every migration that had ended.
func (c Migrator) Look(ctx context.Context, instance string) (rebalance.Sight, error) {
	migrations, err := c.Compute.MigrationsOf(ctx, instance)
	if err != nil {
		return rebalance.Sight{}, err
	}
	s, err := c.Compute.Server(ctx, instance)
	if err != nil {
		return rebalance.Sight{}, err
	}
	sight := rebalance.Sight{Host: s.Host, Status: s.Status, Task: s.Task, Locked: s.Locked}
	if len(migrations) > 0 {
		m := migrations[0]
		sight.Migration = rebalance.Migration{ID: m.ID, Status: m.Status, Over: m.Over()}
	}
	return sight, nil
}

// Move implements rebalance.Migrator.
func (c Migrator) Move(ctx context.Context, instance, host string) error {
	return c.Compute.LiveMigrateServerTo(ctx, instance, host)
}

// Abort implements rebalance.Migrator.
func (c Migrator) Abort(ctx context.Context, instance string) error {
	return c.Compute.AbortLiveMigration(ctx, instance)
}

// Groups returns the server group of each server that is a member of one, by the id of the server.
func (c Migrator) Groups(ctx context.Context) (map[string]placing.Group, error) {
	all, err := c.Compute.ServerGroups(ctx)
	if err != nil {
		return nil, err
	}
	groups := map[string]placing.Group{}
	for _, g := range all {
		for _, member := range g.Members {
			groups[member] = g
		}
	}
	return groups, nil
}
