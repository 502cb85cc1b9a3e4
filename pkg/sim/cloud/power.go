// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Power implements controller.ComputeServices and controller.Vacancy.
type Power struct{ Cloud *Cloud }

// SetUp starts or stops the nova-compute of a host, whose machine was switched.
func (c *Cloud) SetUp(host string, up bool) {
	defer c.enter()()
	if m := c.machines[host]; m != nil {
		m.down, m.changed = !up, c.o.Now()
		job.Poke(c.changed)
	}
}

// Services implements controller.ComputeServices.
func (p Power) Services(context.Context) (map[string]controller.Service, error) {
	c := p.Cloud
	defer c.enter()()
	all := make(map[string]controller.Service, len(c.machines))
	for name, m := range c.machines {
		reported := c.o.Now()
		if m.down {
			reported = m.changed
		}
		all[name] = controller.Service{Up: !m.down, Disabled: m.closed, Reason: m.reason, Reported: span.At(reported)}
	}
	return all, nil
}

// Disable implements controller.ComputeServices.
func (p Power) Disable(_ context.Context, host, reason string) error {
	defer p.Cloud.enter()()
	m, err := p.Cloud.machineNamed(host)
	switch {
	case err != nil:
	case m.closed && !controller.Ours(m.reason):
		err = m.others()
	default:
		m.closed, m.reason, m.changed = true, reason, p.Cloud.o.Now()
	}
	return during("close host "+host, err)
}

// Enable implements controller.ComputeServices.
func (p Power) Enable(_ context.Context, host, operation string) error {
	defer p.Cloud.enter()()
	m, err := p.Cloud.machineNamed(host)
	switch {
	case err != nil || !m.closed:
	case !strings.HasPrefix(m.reason, controller.ReasonPrefix+operation):
		err = m.others()
	default:
		m.closed, m.reason, m.changed = false, "", p.Cloud.o.Now()
	}
	return during("open host "+host, err)
}

func (m *machine) others() error {
	return fault.New(fault.Conflict, "someone else has disabled its compute service: %s", m.reason)
}

func during(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Occupied implements controller.Vacancy.
func (p Power) Occupied(_ context.Context, host string) (string, error) {
	c := p.Cloud
	defer c.enter()()
	m, err := c.machineNamed(host)
	if err != nil {
		return "", err
	}
	if on := c.list(func(s *Server) bool { return s.Host == host || s.to == host }); len(on) > 0 {
		return fmt.Sprintf("server %s (%s) is on it, %s", on[0].ID, on[0].Name, on[0].Status), nil
	}
	held := c.placement.ByProvider()
	if n := len(held[m.provider]) + len(held[m.child()]); n > 0 {
		return fmt.Sprintf("Placement has allocations of %s on it", fault.Counted(n, "consumer")), nil
	}
	return "", nil
}
