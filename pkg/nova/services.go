// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Service is a nova-compute.
type Service struct {
	ID   string // UUID
	Host string // the host's name in Nova
	Zone string // availability zone
	// Up reports whether it has reported lately and nobody has forced it down.
	Up, ForcedDown bool
	// Disabled reports whether it gets no new servers; Reason is the operator's reason, if any.
	Disabled bool
	Reason   string
	// Reported is when it last reported, or was disabled, enabled or forced down, by Nova's
	// clock; 0: never (nova/servicegroup/drivers/db.py updated_time).
	Reported span.Instant
}

// Services returns the nova-compute services (GET /os-services,
// nova/api/openstack/compute/services.py). It returns an Unavailable fault if a cell does not
// answer, whose hosts are then unknown.
func (c *Client) Services(ctx context.Context) ([]Service, error) {
	return c.services(ctx, "list the compute services", "")
}

// cellsAnswer returns an Unavailable fault if the cell of a host, or one of all cells if host is empty,
// does not answer. Callers who ask about all cells at the same time share one reading.
func (c *Client) cellsAnswer(ctx context.Context, doing, host string) error {
	if host != "" {
		_, err := c.services(ctx, doing, host)
		return err
	}
	if _, err := c.every.Get(ctx); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// services returns the service of a host, or all if host is empty.
func (c *Client) services(ctx context.Context, doing, host string) ([]Service, error) {
	query := url.Values{"binary": {"nova-compute"}}
	if host != "" {
		query.Set("host", host)
	}
	var body struct {
		Services []struct {
			ID, Host, Zone, State, Status string
			ForcedDown                    bool    `json:"forced_down"`
			Reason                        *string `json:"disabled_reason"`
			Reported                      instant `json:"updated_at"`
		} `json:"services"`
	}
	if err := c.service.Get(ctx, doing, "os-services?"+query.Encode(), &body); err != nil {
		return nil, err
	}
	if body.Services == nil {
		return nil, c.service.Malformed(doing, "it contains no list of services")
	}
	services := make([]Service, 0, len(body.Services))
	for _, s := range body.Services {
		switch {
		case s.Status == "UNKNOWN":
			return nil, cellAway(doing)
		case s.ID == "" || s.Host == "" || s.State == "" || s.Status == "":
			return nil, c.service.Malformed(doing, "a service has no id, host, state or status")
		}
		one := Service{
			ID: s.ID, Host: s.Host, Zone: s.Zone, Up: s.State == "up" && !s.ForcedDown, ForcedDown: s.ForcedDown,
			Disabled: s.Status != "enabled", Reported: span.Instant(s.Reported),
		}
		if s.Reason != nil {
			one.Reason = *s.Reason
		}
		services = append(services, one)
	}
	return services, nil
}

// ServiceOf returns the nova-compute of a host. A host without one is a NotFound fault, a cell
// that does not answer an Unavailable one.
func (c *Client) ServiceOf(ctx context.Context, host string) (Service, error) {
	doing := "show the compute service of " + host
	if host == "" { // Nova treats it as all hosts
		return Service{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "it has no name"))
	}
	found, err := c.services(ctx, doing, host)
	switch {
	case err != nil:
		return Service{}, err
	case len(found) == 0:
		return Service{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "Nova has no compute service on it"))
	case len(found) > 1:
		return Service{}, c.service.Malformed(doing, "there are %d of them", len(found))
	}
	return found[0], nil
}

// DisableService makes Nova place no new servers on the host of the nova-compute with the UUID,
// for a reason of at most 255 characters, whatever its present state. If the nova-compute is
// up, Nova waits until it has told Placement (nova/compute/api.py HostAPI.service_update).
func (c *Client) DisableService(ctx context.Context, id, reason string) error {
	return c.updateService(ctx, "disable compute service "+id, id, map[string]string{"status": "disabled", "disabled_reason": reason})
}

// EnableService undoes DisableService, by any user.
func (c *Client) EnableService(ctx context.Context, id string) error {
	return c.updateService(ctx, "enable compute service "+id, id, map[string]string{"status": "enabled"})
}

func (c *Client) updateService(ctx context.Context, doing, id string, to map[string]string) error {
	return c.service.Send(ctx, doing, http.MethodPut, "os-services/"+url.PathEscape(id), to, nil, http.StatusOK)
}

// cellAway is the fault for an answer that lacks one of Nova's cells (since 2.69).
func cellAway(doing string) error {
	return fmt.Errorf("%s: %w", doing,
		fault.New(fault.Unavailable, "a cell of nova does not answer, so nova's answer is incomplete"))
}
