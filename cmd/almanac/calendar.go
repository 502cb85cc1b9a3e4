package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

// hostClaim is a claim with the name of its host.
type hostClaim struct {
	host string
	v1.Claim
}

func claimFields(c hostClaim) []field {
	var instances any // empty for a claim of a whole host
	if c.Instances != 0 {
		instances = c.Instances
	}
	return []field{
		{"Host", c.host, inLists}, {"Start", c.Start, inLists}, {"End", c.End, inLists}, {"Kind", c.Kind, inLists},
		{"Instances", instances, inLists}, {"Reservation", c.ReservationID, inLists}, {"Name", c.Name, inLists},
		{"Project", c.ProjectID, inLongLists},
	}
}

func (p *process) calendarCommand() *cobra.Command {
	start, end := moment{clock: p.now}, moment{clock: p.now}
	var hosts []string
	c := &cobra.Command{
		Use:   "calendar",
		Short: "Show which hosts are reserved, and when",
		Example: `  almanac calendar
  almanac calendar --start 2026-12-01T00:00Z --end 2026-12-02T00:00Z --host node-01 --host node-02`,
	}
	listCommand(p, c, claimFields, func(ctx context.Context, almanac *client.Client) ([]hostClaim, v1.Calendar, error) {
		answer, err := almanac.Calendar(ctx, start.at, end.at, hosts...)
		var claims []hostClaim
		for _, h := range answer.Hosts {
			for _, claim := range h.Claims {
				claims = append(claims, hostClaim{h.Host, claim})
			}
		}
		if err == nil {
			p.inform("from %s to %s", stamp(answer.Start), stamp(answer.End))
		}
		return claims, answer, err
	})
	flags := c.Flags()
	flags.Var(&start, "start", "start of the period (default now)")
	flags.Var(&end, "end", "end of the period (default in 7 days)")
	flags.StringArrayVar(&hosts, "host", nil, "only this host (repeatable)")
	completeFlag(c, "host", p.completeHosts())
	return c
}
