package main

import (
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// largestPage is the most elements that the API gives at once.
const largestPage = 1000

func (p *process) reservationListCommand() *cobra.Command {
	var filter client.ReservationFilter
	var limit int
	var long bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List reservations by start",
		Example: `  almanac reservation list
  almanac reservation list --status active,pending --kind host --long
  almanac reservation list -f value -c ID --name training`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, reservationColumns, listed(long))
			if err != nil {
				return err
			}
			filter.PageSize, err = pageSize(limit)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := collect(almanac.ListReservations(c.Context(), filter), limit)
			if err != nil {
				return err
			}
			return out.list(found, v1.Reservations{Reservations: found})
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&filter.Statuses, "status", nil, "only those in this state (repeatable; default all but cancelled)")
	flags.StringVar(&filter.Name, "name", "", "only those with exactly this name")
	flags.StringVar(&filter.Kind, "kind", "", "only those of this kind: host or instance")
	flags.BoolVar(&filter.AllProjects, "all-projects", false, "those of all projects (admins)")
	flags.IntVar(&limit, "limit", 0, "at most this many; 0 is all")
	flags.BoolVar(&long, "long", false, "print more columns")
	completeFlag(c, "status", oneOf(reservation.Statuses))
	completeFlag(c, "kind", oneOf(reservation.Kinds))
	return c
}

func listed(long bool) place {
	if long {
		return inLongLists
	}
	return inLists
}

// pageSize is how many elements to ask for at once, to have limit of them.
func pageSize(limit int) (int, error) {
	if limit < 0 {
		return 0, fault.Field("--limit", "must not be negative; 0 is all")
	}
	if limit == 0 {
		return largestPage, nil
	}
	return min(limit, largestPage), nil
}

func (p *process) reservationShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID|NAME",
		Short: "Show a reservation with its hosts and events",
		Example: `  almanac reservation show training
  almanac reservation show training -f value -c Hosts`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: p.completeOneReservation,
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, reservationColumns, inShows)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := find(c.Context(), almanac, args[0])
			if err != nil {
				return err
			}
			return out.one(found, found)
		},
	}
}
