// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/ironic"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/power"
	ironicpower "github.com/almanac-cloud/almanac/pkg/power/ironic"
)

// owner is the Ironic that may own hosts.
type owner struct{ client *ironic.Client }

// openIronic returns what finds out which hosts Ironic owns, with the configured user of Keystone.
func openIronic(cfg config.PowerAgent) (*owner, error) {
	session, err := keystone.NewSession(cfg.Keystone.Connection, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("[keystone_authtoken]: %w", err)
	}
	client, err := ironic.New(session, cfg.Ironic.Options)
	if err != nil {
		return nil, fmt.Errorf("[ironic]: %w", err)
	}
	return &owner{client}, nil
}

// owned returns the error for a host that Ironic owns.
func owned(host string) error {
	return fault.New(fault.Denied, "Ironic has host %s as a node and would switch it back; set the driver of its machine to ironic", host)
}

// check returns an error if another driver would switch a machine that Ironic owns. If Ironic does
// not answer, check accepts all machines: each of them asks Ironic again before it is switched off.
func (o *owner) check(ctx context.Context, driven map[string]power.Driven, log *slog.Logger) error {
	for _, host := range slices.Sorted(maps.Keys(driven)) {
		if _, guarded := driven[host].Machine.(*guarded); !guarded {
			continue
		}
		known, err := ironicpower.Knows(ctx, o.client, host)
		if err != nil {
			log.Warn("could not find out which hosts Ironic owns; until it answers, hosts of other drivers are not switched off", "error", err)
			return nil
		}
		if known {
			return owned(host)
		}
	}
	return nil
}

// guard returns a machine that asks Ironic before it switches.
func (o *owner) guard(host string, m power.Machine) power.Machine {
	return &guarded{Machine: m, host: host, owns: func(ctx context.Context) (bool, error) { return ironicpower.Knows(ctx, o.client, host) }}
}

// guarded is a machine that Ironic may own. While that is unknown, the machine can be switched on
// but not off.
type guarded struct {
	power.Machine
	host string
	owns func(ctx context.Context) (bool, error)
}

// Switch asks Ironic first.
func (g *guarded) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	switch known, err := g.owns(ctx); {
	case known:
		return owned(g.host)
	case err != nil && to != energy.On:
		return fault.New(fault.Denied, "could not find out whether Ironic owns host %s: %v", g.host, err)
	}
	return g.Machine.Switch(ctx, to, how)
}

// Close closes the machine.
func (g *guarded) Close() error {
	if held, ok := g.Machine.(io.Closer); ok {
		return held.Close()
	}
	return nil
}
