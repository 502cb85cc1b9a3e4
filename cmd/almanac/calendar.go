package main

import (
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// hostClaim is a claim with the name of its host.
type hostClaim struct {
	host string
	v1.Claim
}

var claimColumns = []column[hostClaim]{
	{"Host", func(c hostClaim) any { return c.host }, inLists},
	{"Start", func(c hostClaim) any { return c.Start }, inLists},
	{"End", func(c hostClaim) any { return c.End }, inLists},
	{"Kind", func(c hostClaim) any { return c.Kind }, inLists},
	{"Instances", func(c hostClaim) any { return instances(c) }, inLists},
	{"Reservation", func(c hostClaim) any { return c.ReservationID }, inLists},
	{"Name", func(c hostClaim) any { return c.Name }, inLists},
	{"Project", func(c hostClaim) any { return c.ProjectID }, inLongLists},
}

// instances is nothing for a claim of a whole host.
func instances(c hostClaim) any {
	if c.Instances == 0 {
		return nil
	}
	return c.Instances
}

func (p *process) calendarCommand() *cobra.Command {
	start, end := moment{clock: p.now}, moment{clock: p.now}
	var hosts []string
	var long bool
	c := &cobra.Command{
		Use:   "calendar",
		Short: "Show which hosts are promised, and when",
		Example: `  almanac calendar
  almanac calendar --start 2026-12-01T00:00Z --end 2026-12-02T00:00Z --host node-01 --host node-02`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, claimColumns, listed(long))
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			answer, err := almanac.Calendar(c.Context(), start.at, end.at, hosts...)
			if err != nil {
				return err
			}
			var claims []hostClaim
			for _, h := range answer.Hosts {
				for _, claim := range h.Claims {
					claims = append(claims, hostClaim{h.Host, claim})
				}
			}
			p.inform("from %s to %s", stamp(answer.Start), stamp(answer.End))
			return out.list(claims, answer)
		},
	}
	flags := c.Flags()
	flags.Var(&start, "start", "show from here on (default now)")
	flags.Var(&end, "end", "show up to here (default 7 days on)")
	flags.StringArrayVar(&hosts, "host", nil, "only this host (repeatable)")
	flags.BoolVar(&long, "long", false, "print more columns")
	completeFlag(c, "host", p.completeHosts)
	return c
}
