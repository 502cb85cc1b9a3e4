package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func (p *process) reservationExtendCommand() *cobra.Command {
	var by period
	until := moment{clock: p.now}
	var dryRun bool
	c := &cobra.Command{
		Use:   "extend ID|NAME",
		Short: "Move the end of a reservation to later",
		Example: `  almanac reservation extend training --by 2h
  almanac reservation extend training --until 2026-12-01T18:00+01:00 --dry-run`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: p.completeOneReservation,
		RunE: func(c *cobra.Command, args []string) error {
			return p.change(c.Context(), args[0], dryRun, func(r v1.Reservation) (v1.ReservationChange, error) {
				end := until.at
				if end.IsZero() {
					end = r.End.Add(by.time())
				}
				if !end.After(r.End) {
					return v1.ReservationChange{}, fault.New(fault.Invalid,
						"the reservation ends at %s; give a later end, or shorten it with 'almanac reservation change --end'", stamp(r.End))
				}
				return v1.ReservationChange{EndTime: &end}, nil
			})
		},
	}
	c.Flags().Var(&by, "by", "by how much")
	c.Flags().Var(&until, "until", "the new end")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be reserved")
	c.MarkFlagsMutuallyExclusive("by", "until")
	c.MarkFlagsOneRequired("by", "until")
	return c
}

func (p *process) reservationChangeCommand() *cobra.Command {
	start, end := moment{clock: p.now}, moment{clock: p.now}
	var name string
	var quantity int
	var dryRun bool
	c := &cobra.Command{
		Use:   "change ID|NAME",
		Short: "Rename, move, grow or shrink a reservation",
		Long: `Rename, move, grow or shrink a reservation. What is not given stays as it is; a
change that is refused leaves all as it is. The start can be changed until the
reservation begins, and then stays.`,
		Example: `  almanac reservation change training --quantity 4
  almanac reservation change training --start 2026-12-01T09:00Z --end 2026-12-01T12:00Z --dry-run`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: p.completeOneReservation,
		RunE: func(c *cobra.Command, args []string) error {
			if start.now || end.now {
				return fault.New(fault.Invalid, "a reservation can only be moved to a time ahead; write +1m, or delete it to end it now")
			}
			return p.change(c.Context(), args[0], dryRun, func(v1.Reservation) (v1.ReservationChange, error) {
				return v1.ReservationChange{
					Name:      given(c, "name", &name),
					Quantity:  given(c, "quantity", &quantity),
					StartTime: given(c, "start", &start.at),
					EndTime:   given(c, "end", &end.at),
				}, nil
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&name, "name", "", "the new name")
	flags.IntVar(&quantity, "quantity", 0, "how many hosts or instances")
	flags.Var(&start, "start", "the new start")
	flags.Var(&end, "end", "the new end")
	flags.BoolVar(&dryRun, "dry-run", false, "only show what would be reserved")
	c.MarkFlagsOneRequired("name", "quantity", "start", "end")
	return c
}

// given gives the value of a flag that is set, else nil.
func given[T any](c *cobra.Command, flag string, value *T) *T {
	if !c.Flags().Changed(flag) {
		return nil
	}
	return value
}

// change finds a reservation, asks what to make of it, and does or offers that.
func (p *process) change(ctx context.Context, what string, dryRun bool, decide func(v1.Reservation) (v1.ReservationChange, error)) error {
	changed, err := newPrinter(p, reservationColumns, inShows)
	offered, offeredErr := newPrinter(p, offerColumns, inShows)
	if dryRun {
		err = offeredErr
	}
	if err != nil {
		return err
	}
	almanac, err := p.connect(ctx)
	if err != nil {
		return err
	}
	found, err := find(ctx, almanac, what)
	if err != nil {
		return err
	}
	change, err := decide(found)
	if err != nil {
		return err
	}
	if dryRun {
		offer, err := almanac.OfferChange(ctx, found.ID, change)
		if err != nil {
			return err
		}
		p.inform("dry run: nothing is changed")
		return offered.one(offer, v1.OfferAnswer{Offer: offer})
	}
	now, err := almanac.ChangeReservation(ctx, found.ID, change)
	if err != nil {
		return err
	}
	return changed.one(now, now)
}
