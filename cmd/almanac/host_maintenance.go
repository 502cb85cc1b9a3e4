// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

// maintenance contains the flags of "host maintenance".
type maintenance struct {
	start, end  moment
	duration    period
	reason, key string
	dryRun      bool
}

func (p *process) hostMaintenanceCommand() *cobra.Command {
	m := &maintenance{}
	c := &cobra.Command{
		Use:   "maintenance NAME...",
		Short: "Plan maintenance of hosts",
		Long: `Plan maintenance of hosts. An argument is a name, a list such as
'node-[01-16,18],gpu-01', or a pattern with * and ?. From now on nothing is reserved on
these hosts for that time. At the start they are closed and preemptible instances are
evicted; the start waits until all other instances are gone. With --dry-run the offer
lists those to move.

If a host has a reservation, nothing is planned, and the answer names the reservation
and the earliest start. With --start, --end and --duration, the maintenance starts as
early as it can between the two times.

'almanac reservation list --maintenance --all-projects' lists the maintenance that is
planned; 'almanac reservation change' and 'delete' change its time and cancel it.`,
		Example: `  almanac host maintenance node-07 node-08 --start +1d --duration 4h --reason 'new memory'
  almanac host maintenance 'node-[01-16]' --duration 2h --end +7d --reason firmware --dry-run`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeHosts(),
		RunE:              func(c *cobra.Command, args []string) error { return p.maintain(c, args, m) },
	}
	flags := c.Flags()
	flags.Var(&m.start, "start", "the earliest start (default now)")
	flags.Var(&m.end, "end", "the latest end")
	flags.Var(&m.duration, "duration", "how long; required without --end")
	flags.StringVar(&m.reason, "reason", "", "reason, which operators see")
	flags.BoolVar(&m.dryRun, "dry-run", false, "only show what would be planned")
	flags.StringVar(&m.key, "idempotency-key", "", "key that identifies the request: the same key never plans twice (default random)")
	_ = c.MarkFlagRequired("reason") // fails only for a flag that does not exist
	c.MarkFlagsOneRequired("end", "duration")
	return c
}

func maintenanceOfferFields(a v1.OfferAnswer) []field {
	return append(offerFields(a), field{"Servers To Move", lines(each(a.Offer.Servers, hostServerLine)), inLists})
}

func hostServerLine(s v1.HostServer) string {
	return strings.Join([]string{s.ID, s.Name, s.Status, "on " + s.Host, "project " + s.ProjectID}, " ")
}

// maintain plans the maintenance of the hosts that args select, or shows the offer.
func (p *process) maintain(c *cobra.Command, args []string, m *maintenance) error {
	request := func(ctx context.Context, almanac *client.Client) (v1.ReservationRequest, error) {
		hosts, err := hostNames(ctx, almanac, args)
		return v1.ReservationRequest{
			Name: m.reason, Maintenance: true, Hosts: hosts, StartTime: m.start.ahead(),
			EndTime: given(c, "end", &m.end.at), Duration: given(c, "duration", (*v1.Duration)(&m.duration)),
		}, err
	}
	if !m.dryRun {
		return show(p, c, reservationFields, func(ctx context.Context, almanac *client.Client) (v1.Reservation, error) {
			req, err := request(ctx, almanac)
			if err != nil {
				return v1.Reservation{}, err
			}
			return almanac.CreateReservation(ctx, req, idempotent(m.key))
		})
	}
	return show(p, c, maintenanceOfferFields, func(ctx context.Context, almanac *client.Client) (offer v1.OfferAnswer, err error) {
		req, err := request(ctx, almanac)
		if err != nil {
			return offer, err
		}
		if offer.Offer, err = almanac.OfferReservation(ctx, req); err == nil {
			p.inform("dry run: nothing is planned")
		}
		return offer, err
	})
}
