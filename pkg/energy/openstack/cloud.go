// SPDX-License-Identifier: Apache-2.0

// Package openstack connects the energy controller to OpenStack: it disables and enables
// compute services in Nova, and asks Nova and Placement whether a host is empty.
package openstack

import (
	"context"
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// ComputeServices implements controller.ComputeServices and controller.Vacancy.
type ComputeServices struct {
	nova      *nova.Client
	placement *placement.Client
}

var (
	_ controller.ComputeServices = (*ComputeServices)(nil)
	_ controller.Vacancy         = (*ComputeServices)(nil)
)

// New returns the cloud that the two clients reach.
func New(n *nova.Client, p *placement.Client) *ComputeServices {
	return &ComputeServices{nova: n, placement: p}
}

// Services returns the nova-compute of each host, by the name of the host.
func (c *ComputeServices) Services(ctx context.Context) (map[string]controller.Service, error) {
	all, err := c.nova.Services(ctx)
	if err != nil {
		return nil, err
	}
	services := make(map[string]controller.Service, len(all))
	for _, s := range all {
		services[s.Host] = controller.Service{
			Up: s.Up, Disabled: s.Disabled, Reason: s.Reason, Reported: s.Reported,
		}
	}
	return services, nil
}

// Disable closes a host to new instances. The reason must begin with
// controller.ReasonPrefix. It fails with a Conflict fault if the host is closed for a
// reason that is not the controller's. Nova does not check the previous state of a service:
// if two clients disable a host at the same moment, the later reason remains.
func (c *ComputeServices) Disable(ctx context.Context, host, reason string) error {
	doing := "close host " + host
	if !controller.Ours(reason) {
		return fmt.Errorf("%s: %w", doing, fault.New(fault.Invalid, "the reason %q is not one of the energy controller", reason))
	}
	s, err := c.nova.ServiceOf(ctx, host)
	switch {
	case err != nil:
	case s.Disabled && s.Reason == reason:
	case s.Disabled && !controller.Ours(s.Reason):
		err = others(s)
	default:
		err = c.nova.DisableService(ctx, s.ID, reason)
	}
	return during(doing, err)
}

// Enable opens a host that Disable has closed for the operation, or for any operation if it
// is "". It fails with a Conflict fault if the host is closed for another reason.
func (c *ComputeServices) Enable(ctx context.Context, host, operation string) error {
	s, err := c.nova.ServiceOf(ctx, host)
	switch {
	case err != nil:
	case !s.Disabled:
	case !strings.HasPrefix(s.Reason, controller.ReasonPrefix+operation):
		err = others(s)
	default:
		err = c.nova.EnableService(ctx, s.ID)
	}
	return during("open host "+host, err)
}

// others returns the fault that someone else has disabled the compute service, with their reason.
func others(s nova.Service) error {
	if s.Reason == "" {
		return fault.New(fault.Conflict, "someone else has disabled its compute service, without a reason")
	}
	return fault.New(fault.Conflict, "someone else has disabled its compute service: %s", s.Reason)
}

// during adds to an error what was being done; nil stays nil.
func during(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
