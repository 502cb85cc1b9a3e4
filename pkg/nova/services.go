package nova

import (
	"context"
	"fmt"
	"net/url"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Service is a nova-compute.
type Service struct {
	ID   string // UUID
	Host string // the name by which Nova knows the host
	Zone string // availability zone
	// Up says that it has reported lately, and nobody has forced it down.
	Up, ForcedDown bool
	// Disabled says that it gets no new servers; Reason is why, where somebody said so.
	Disabled bool
	Reason   string
}

// Services gives the nova-compute services there are (GET /os-services,
// nova/api/openstack/compute/services.py). Where a cell does not answer, and its hosts
// are not known, it fails with an Unavailable fault.
func (c *Client) Services(ctx context.Context) ([]Service, error) {
	return c.services(ctx, "list the compute services", "")
}

// services gives that of a host, or all where host is empty.
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
		} `json:"services"`
	}
	if err := c.service.Get(ctx, doing, "os-services?"+query.Encode(), &body); err != nil {
		return nil, err
	}
	if body.Services == nil {
		return nil, c.service.Senseless(doing, "there is no list of services in it")
	}
	services := make([]Service, 0, len(body.Services))
	for _, s := range body.Services {
		switch {
		case s.Status == "UNKNOWN":
			return nil, cellAway(doing)
		case s.ID == "" || s.Host == "" || s.State == "" || s.Status == "":
			return nil, c.service.Senseless(doing, "a service has no id, host, state or status")
		}
		one := Service{
			ID: s.ID, Host: s.Host, Zone: s.Zone, Up: s.State == "up" && !s.ForcedDown, ForcedDown: s.ForcedDown,
			Disabled: s.Status != "enabled",
		}
		if s.Reason != nil {
			one.Reason = *s.Reason
		}
		services = append(services, one)
	}
	return services, nil
}

// cellAway is the fault where Nova answers without one of its cells (since 2.69).
func cellAway(doing string) error {
	return fmt.Errorf("%s: %w", doing,
		fault.New(fault.Unavailable, "a cell of nova does not answer, so that nova does not tell everything"))
}
