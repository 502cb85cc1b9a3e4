// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func (p *process) reservationConfirmCommand() *cobra.Command {
	var dryRun bool
	var only expected
	c := &cobra.Command{
		Use:        "confirm ID|NAME",
		SuggestFor: []string{"keep", "accept"},
		Short:      "Confirm a reservation that is held",
		Long: `Confirm a reservation that 'reservation create --hold' has made, before the hold
ends: otherwise it is canceled then. A reservation that is confirmed stays as it is.`,
		Example: `  almanac reservation create maybe --quantity 4 --duration 8h --start +1d --hold 10m
  almanac reservation confirm maybe`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(reservations.complete(p)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.change(c, args[0], dryRun, only, func(v1.Reservation) (v1.ReservationChange, error) {
				return v1.ReservationChange{Hold: new(v1.Duration(0))}, nil
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be booked")
	only.add(c, "reservation")
	return c
}
