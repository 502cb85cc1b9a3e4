package openstack

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// cleaned is for how many seconds a server has to be as it is: Nova, and Almanac's own
	// sweep, take what it has some moments after it has failed.
	cleaned = 120
	// mostUnplaced bounds how many servers one examination asks Placement about.
	mostUnplaced = 200
)

// Unplaced returns servers in ERROR that are on no host and have something in Placement all
// the same, which nobody can use.
func (c *Cloud) Unplaced(ctx context.Context, now span.Instant) (list []inventory.Instance, _ error) {
	servers, err := c.compute.Servers(ctx, nova.ServerQuery{Status: "ERROR"})
	if err != nil {
		return nil, err
	}
	asked := 0
	for i := range servers {
		s := &servers[i]
		if !unplaced(s) || now < s.Updated.Add(cleaned) {
			continue
		}
		if asked++; asked > mostUnplaced {
			break
		}
		has, err := c.placement.AllocationsOf(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		if len(has.Allocations) > 0 {
			list = append(list, s.Instance)
		}
	}
	return list, nil
}

func unplaced(s *nova.Server) bool { return s.Status == "ERROR" && s.Host == "" && s.Task == "" }

// Release takes what a server has that is Unplaced, if it still is.
func (c *Cloud) Release(ctx context.Context, id string) error {
	has, err := c.placement.AllocationsOf(ctx, id)
	if err != nil || len(has.Allocations) == 0 {
		return err
	}
	// Whoever claims for it after this look changes its generation.
	switch now, err := c.compute.Server(ctx, id); {
	case err == nil && unplaced(&now), fault.Is(err, fault.NotFound):
	case err == nil:
		return fault.New(fault.Conflict, "it is %s on host %q by now", now.Status, now.Host)
	default:
		return err
	}
	has.Allocations = nil
	return c.placement.Claim(ctx, []placing.Claim{has})
}
