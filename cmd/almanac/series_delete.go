// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// seriesDeletion has the flags of "series delete".
type seriesDeletion struct {
	from        since
	dryRun, yes bool
	only        expected
}

func (p *process) seriesDeleteCommand() *cobra.Command {
	d := &seriesDeletion{}
	c := &cobra.Command{
		Use:        "delete ID|NAME",
		Aliases:    []string{"cancel"},
		SuggestFor: []string{"remove", "rm", "end", "release"},
		Short:      "Cancel the reservations of a series",
		Long: `Cancel the reservations of a series that are not over, or with --from those of them
from then on. --from is the local time or the date of an occurrence, or a time with
its zone. 'almanac reservation delete' cancels one occurrence alone.

Before servers are deleted, the command lists them and asks for confirmation; without a
terminal it needs --yes. --dry-run only lists the reservations and the servers.`,
		Example: `  almanac series delete lab --dry-run
  almanac series delete lab --from +30d`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(everySeries.complete(p)),
		RunE: func(c *cobra.Command, args []string) error {
			return with(p, c, seriesFields, inShows, func(ctx context.Context, almanac *client.Client, _ printer[v1.Series]) error {
				found, err := wholeSeries(ctx, almanac, args[0])
				if err != nil {
					return err
				}
				return p.deleteSeries(ctx, d.only.of(almanac), found.Series, d.from.text(), d)
			})
		},
	}
	c.Flags().Var(&d.from, "from", "only the occurrences from then on")
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "only show what would be canceled, and what would happen to its servers")
	c.Flags().BoolVarP(&d.yes, "yes", "y", false, "delete servers without confirmation")
	d.only.add(c, "series")
	return c
}

// deleteSeries cancels the reservations of a series from an occurrence on, unless that deletes servers and the user does not confirm it.
func (p *process) deleteSeries(ctx context.Context, almanac *client.Client, s v1.Series, from string, d *seriesDeletion) error {
	what := "series " + s.ID + " " + plain(s.Name)
	if from != "" {
		what += " from " + from + " on"
	}
	if !d.yes || d.dryRun {
		foreseen, err := almanac.OfferSeriesDeletion(ctx, s.ID, from)
		if err != nil {
			return err
		}
		local := map[string]string{}
		for _, o := range s.Occurrences {
			local[o.ReservationID] = o.Local
		}
		deleted := 0
		for _, one := range foreseen.Reservations {
			if d.dryRun || len(one.Servers) > 0 {
				p.inform("reservation %s at %s, which is %s, would be canceled", one.ID, local[one.ID], one.Status)
			}
			deleted += p.nameServers(one)
		}
		if d.dryRun {
			p.inform("dry run: nothing is canceled")
			return nil
		}
		if deleted > 0 && !p.agreed(what, deleted) {
			return fault.New(fault.Conflict, "%s stays: canceling it would delete servers; add --yes to delete them", what)
		}
	}
	if err := almanac.DeleteSeries(ctx, s.ID, from); err != nil {
		return err
	}
	p.inform("%s is canceled", what)
	return nil
}
