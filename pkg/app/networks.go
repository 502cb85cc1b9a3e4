// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/neutron"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// networks carries out the reservations of floating IPs.
type networks struct {
	upkeep.Networks
	client *neutron.Client
}

// openNetworks opens the client of Neutron; nil if Almanac has no Keystone, in whose catalog Neutron
// is. The hosts may come from a file. Promises, Leases and the job follow when the booking service is open.
func openNetworks(p process, cloud *cloud, db *store.Store) (n *networks, f feature, err error) {
	f.metrics.counter("almanac_cloud_calls_total", "Requests sent to an OpenStack service.", prometheus.Labels{"service": "neutron"},
		func() float64 {
			if n == nil {
				return 0
			}
			return float64(n.client.Calls())
		})
	var session *keystone.Session
	switch {
	case cloud != nil && cloud.session != nil:
		session = cloud.session
	case p.config.API.AuthStrategy == "keystone":
		if session, err = keystone.NewSession(p.config.Keystone.Connection, time.Now, p.logOf("keystone")); err != nil {
			return nil, f, err
		}
	default:
		return nil, f, nil
	}
	client, err := neutron.New(session, p.config.Neutron)
	if err != nil {
		return nil, f, fmt.Errorf("[neutron]: %w", err)
	}
	n = &networks{upkeep.Networks{Floating: client, Pool: db, Records: db, Now: p.clock.now, Log: p.logOf("upkeep")}, client}
	return n, f, nil
}

// Network implements leases.Neutron.
func (n *networks) Network(ctx context.Context, id string) (address.Network, error) {
	found, err := n.client.Network(ctx, id)
	if errors.Is(err, keystone.ErrNoService) {
		err = blazar.NoNeutron()
	}
	return found, err
}
