package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/ironic"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/power"
	ironicpower "github.com/almanac-cloud/almanac/pkg/power/ironic"
)

// owner is the Ironic that may own hosts.
type owner struct{ client *ironic.Client }

func openIronic(cfg config.PowerAgent) (*owner, error) {
	session, err := keystone.NewSession(app.KeystoneConnection(cfg.Keystone), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("[keystone_authtoken]: %w", err)
	}
	c := cfg.Ironic.Client
	client, err := ironic.New(session, openstack.Options{
		Region: c.RegionName, Interfaces: c.ValidInterfaces, Override: c.EndpointOverride, CAFile: c.CAFile, Insecure: c.Insecure, Timeout: c.Timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("[ironic]: %w", err)
	}
	return &owner{client}, nil
}

type ironicEntry struct {
	Head `yaml:",inline"`
	Node string `yaml:"node"`
}

func (e *ironicEntry) open(host, _ string, ironic *owner) (power.Machine, error) {
	if ironic == nil {
		return nil, fault.New(fault.Invalid, "the driver ironic needs [ironic] enabled = true")
	}
	return ironicpower.New(ironic.client, host, e.Node, nil), nil
}

// owned says in which sentence a driver must leave a host of Ironic alone.
func owned(host string) error {
	return fault.New(fault.Denied, "Ironic has host %s as a node and would switch it back; give its machine the driver ironic", host)
}

// check refuses machines that Ironic owns and another driver would switch. Where Ironic
// does not answer nothing is refused: the machines ask again before they are switched off.
func (o *owner) check(ctx context.Context, driven map[string]power.Driven, log *slog.Logger) error {
	for _, host := range slices.Sorted(maps.Keys(driven)) {
		if _, guarded := driven[host].Machine.(*guarded); !guarded {
			continue
		}
		known, err := ironicpower.Knows(ctx, o.client, host)
		if err != nil {
			log.Warn("Ironic does not say which hosts it owns; those of other drivers are not switched off while it does not", "error", err)
			return nil
		}
		if known {
			return owned(host)
		}
	}
	return nil
}

// guard gives the machine with Ironic asked before it is switched.
func (o *owner) guard(host string, m power.Machine) power.Machine {
	return &guarded{Machine: m, host: host, owns: func(ctx context.Context) (bool, error) { return ironicpower.Knows(ctx, o.client, host) }}
}

// guarded is a machine that Ironic may come to own. While that is in doubt it is woken and
// not switched off.
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
		return fault.New(fault.Denied, "Ironic does not say whether it owns host %s: %v", g.host, err)
	}
	return g.Machine.Switch(ctx, to, how)
}

// Close ends what the machine holds.
func (g *guarded) Close() error {
	if held, ok := g.Machine.(io.Closer); ok {
		return held.Close()
	}
	return nil
}
