// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
)

// Moves implements rebalance.Migrator.
type Moves struct{ Cloud *Cloud }

// Look implements rebalance.Migrator.
func (m Moves) Look(ctx context.Context, instance string) (rebalance.Sight, error) {
	s, err := m.Cloud.Server(ctx, instance)
	return rebalance.Sight{Host: s.Host, Status: s.Status, Task: s.Task, Locked: s.Locked, Migration: s.Migration}, err
}

// Move implements rebalance.Migrator.
func (m Moves) Move(_ context.Context, instance, host string) error {
	defer m.Cloud.enter()()
	s, err := m.Cloud.server(instance)
	if err != nil {
		return err
	}
	if err := s.idle(active, "PAUSED"); err != nil {
		return err
	}
	return m.Cloud.migrate(s, host)
}

// Abort implements rebalance.Migrator.
func (m Moves) Abort(_ context.Context, instance string) error {
	defer m.Cloud.enter()()
	s, err := m.Cloud.server(instance)
	if err != nil {
		return err
	}
	if s.Task != migrating || s.to == "" {
		return fault.New(fault.Conflict, "no live migration of server %s is running", instance)
	}
	m.Cloud.restore(s)
	m.Cloud.endMigration(s, "cancelled")
	s.Task, s.to, s.then = "", "", nil
	return nil
}

// Groups returns no server groups: the cloud has none.
func (m Moves) Groups(context.Context) (map[string]placing.Group, error) { return nil, nil }
