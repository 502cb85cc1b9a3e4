// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/reservation"
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
		{"Maintenance", c.Maintenance, inLists}, {"Project", c.ProjectID, inLongLists}, {"Mine", c.Mine, inLongLists}, {"Status", c.Status, inLongLists},
		{"On End", c.OnEnd, inLongLists}, {"Share", c.Share, inLongLists},
	}
}

func (p *process) calendarCommand() *cobra.Command {
	var start, end moment
	var hosts []string
	var properties string
	var facts bool
	c := &cobra.Command{
		Use:   "calendar",
		Short: "Show which hosts are reserved, and when",
		Example: `  almanac calendar
  almanac calendar --start +1d --end +2d --host node-01 --host node-02
  almanac calendar --filter '["=", "$gpu", "a100"]' --facts -f api`,
	}
	listCommand(p, c, claimFields, func(ctx context.Context, almanac *client.Client) ([]hostClaim, v1.Calendar, error) {
		filter, err := p.filter(properties)
		if err != nil {
			return nil, v1.Calendar{}, err
		}
		names, err := hostNames(ctx, almanac, hosts)
		if err != nil {
			return nil, v1.Calendar{}, err
		}
		answer, err := almanac.Calendar(ctx, client.CalendarQuery{Start: start.at, End: end.at, Hosts: names, Filter: string(filter), Facts: facts})
		var claims []hostClaim
		for _, h := range answer.Hosts {
			for _, claim := range h.Claims {
				claims = append(claims, hostClaim{h.Host, claim})
			}
		}
		if err == nil {
			p.warnUnknown(answer.UnknownProperties)
			p.inform("%s", spanText(answer.Start, answer.End))
			if answer.KeptFrom != nil {
				p.inform("old reservations were purged; the claims from before %s are not all kept", stamp(*answer.KeptFrom))
			}
		}
		return claims, answer, err
	})
	flags := c.Flags()
	flags.Var(&start, "start", "start of the period, which may be past (default now)")
	flags.Var(&end, "end", "end of the period (default in 7 days)")
	flags.StringVar(&properties, "filter", "", "only hosts that pass this filter: JSON, or @FILE that contains it")
	flags.BoolVar(&facts, "facts", false, "with facts about each host, in the format api")
	flags.StringArrayVar(&hosts, "host", nil, "only these hosts: a name, a list or a pattern (repeatable)")
	completeFlag(c, "host", p.completeHosts())
	return c
}

func windowFields(w v1.Window) []field {
	return []field{{"Start", w.Start, inLists}, {"Latest Start", w.LatestStart, inLists}, {"End", w.End, inLists}, {"Free", w.Free, inLists}}
}

func (p *process) availabilityCommand() *cobra.Command {
	var quantity int
	var duration period
	var properties string
	var start, end moment
	var rule togetherFlags
	c := &cobra.Command{
		Use:   "availability",
		Short: "Show when enough hosts are free for a duration",
		Long: `Show when enough hosts are free for a duration. A reservation may start at any time
from Start to Latest Start. Free is the number of hosts that are free at Start; with the
rule same, on the value that has most of them.`,
		Example: `  almanac availability --quantity 2 --duration 2h
  almanac availability --quantity 4 --duration 1d --start +1d --end +2w --properties '[">=", "$memory_mb", 262144]'
  almanac availability --quantity 8 --duration 12h --together rack`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := p.filter(properties)
			if err != nil {
				return err
			}
			question := client.AvailabilityQuery{
				Quantity: quantity, Duration: v1.Duration(duration), End: end.at, HostProperties: string(filter),
				Together: rule.asked(c.Flags()),
			}
			if at := start.ahead(); at != nil {
				question.Start = *at
			}
			return list(p, c, windowFields, inLists, func(ctx context.Context, almanac *client.Client) ([]v1.Window, v1.Availability, error) {
				together, err := identified(ctx, almanac, question.Together)
				if err != nil {
					return nil, v1.Availability{}, err
				}
				question.Together = together
				answer, err := almanac.Availability(ctx, question)
				if err == nil {
					p.warnUnknown(answer.UnknownProperties)
					p.inform("matching hosts: %d", answer.Matched)
				}
				if err == nil && answer.NextStart != nil {
					p.inform("no room in this time; the next start is %s", stamp(*answer.NextStart))
				}
				return answer.Windows, answer, err
			})
		},
	}
	flags := c.Flags()
	flags.IntVar(&quantity, "quantity", 1, "number of hosts")
	flags.Var(&duration, "duration", "how long")
	flags.Var(&start, "start", "start of the search (default now)")
	flags.Var(&end, "end", "end of the search (default in 7 days)")
	flags.StringVar(&properties, "properties", "", "filter that hosts must pass: JSON, or @FILE that contains it")
	rule.required(flags)
	completeFlag(c, "together-rule", oneOf([]reservation.TogetherRule{reservation.TogetherSame, reservation.TogetherSpread}))
	return c
}
