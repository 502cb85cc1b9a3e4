// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/glance"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	simulated "github.com/almanac-cloud/almanac/pkg/sim/cloud"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// onOpenStack reports whether the hosts are those of an OpenStack cloud.
func onOpenStack(c config.Config) bool { return c.Inventory.Source == config.SourceOpenStack }

// cloud contains the clients for the services of an OpenStack cloud, or a simulated cloud; ports.go
// has what the features use of both.
type cloud struct {
	session   *keystone.Session
	compute   *nova.Client
	placement *placement.Client
	glance    *glance.Client         // nil if no images are staged
	simulated *simulated.Cloud       // nil on OpenStack; otherwise all other fields are nil
	unheard   atomic.Pointer[string] // why Nova's notifications are no longer received; nil while they are
}

// openCloud opens the clients of the cloud, or the simulated cloud; nil if the hosts come from a
// file.
func openCloud(p process) (c *cloud, f feature, err error) {
	switch {
	case simulates(p.config):
		c = &cloud{simulated: newSimulated(p)}
	case onOpenStack(p.config):
		session, err := keystone.NewSession(p.config.Keystone.Connection, time.Now, p.logOf("keystone"))
		if err != nil {
			return nil, f, err
		}
		if c, err = newCloud(session, p.config); err != nil {
			return nil, f, err
		}
	}
	for _, service := range []string{"nova", "placement", "glance"} {
		f.metrics.counter("almanac_cloud_calls_total", "Requests sent to an OpenStack service.", prometheus.Labels{"service": service},
			func() float64 { return float64(c.calls(service)) })
	}
	return c, f, nil
}

// newCloud returns clients of Nova and Placement, and of Glance if images are put on hosts.
func newCloud(session *keystone.Session, c config.Config) (*cloud, error) {
	compute, err := nova.New(session, c.Nova.Options)
	if err != nil {
		return nil, fmt.Errorf("[nova]: %w", err)
	}
	placements, err := placement.New(session, c.Placement)
	if err != nil {
		return nil, fmt.Errorf("[placement]: %w", err)
	}
	clients := &cloud{session: session, compute: compute, placement: placements}
	if !stages(c) {
		return clients, nil
	}
	if clients.glance, err = glance.New(session, c.Glance); err != nil {
		return nil, fmt.Errorf("[glance]: %w", err)
	}
	return clients, nil
}

// calls returns how many requests were sent to nova, glance or placement; 0 without an OpenStack cloud.
func (c *cloud) calls(service string) int64 {
	switch {
	case c == nil || c.simulated != nil:
		return 0
	case service == "nova":
		return c.compute.Calls()
	case service == "glance" && c.glance == nil:
		return 0
	case service == "glance":
		return c.glance.Calls()
	default:
		return c.placement.Calls()
	}
}

func preemptibleRule(c config.Config) inventory.PreemptibleRule {
	rule := c.Preemptible.Rule
	rule.Leaves = leaves[c.Preemptible.Action]
	return rule
}

// leaves are the statuses in which Nova shelves or migrates an instance, by [preemptible]
// preempt_action (nova/compute/api.py shelve, shelve_offload, live_migrate, resize). Nova deletes
// instances in any status.
var leaves = map[upkeep.Order][]string{
	upkeep.OrderShelve:  {"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED"},
	upkeep.OrderMigrate: {"ACTIVE", "SHUTOFF", "PAUSED", "SHELVED"},
}
