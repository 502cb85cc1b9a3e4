package main

import (
	"cmp"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func (p *process) reservationDeleteCommand() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "delete ID|NAME...",
		Short: "Cancel reservations",
		Long: `Cancel reservations. What fails does not keep the others from being cancelled.
Nothing is asked; --dry-run shows what would be cancelled.`,
		Example: `  almanac reservation delete training
  almanac reservation delete training batch --dry-run`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeReservations,
		RunE: func(c *cobra.Command, args []string) error {
			return p.delete(c, args, dryRun)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be cancelled")
	return c
}

func (p *process) delete(c *cobra.Command, wanted []string, dryRun bool) error {
	out, err := newPrinter(p, reservationColumns, inLists)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	var failure error
	found := []v1.Reservation{}
	for _, what := range wanted {
		r, err := find(c.Context(), almanac, what)
		if err == nil && !dryRun {
			err = almanac.DeleteReservation(c.Context(), r.ID)
		}
		if err != nil {
			p.report(c, err)
			failure = cmp.Or(failure, error(&outcome{code: codeOf(err)}))
			continue
		}
		found = append(found, r)
		if !dryRun {
			p.inform("reservation %s %s is cancelled", r.ID, plain(r.Name))
		}
	}
	if dryRun && failure == nil {
		p.inform("dry run: nothing is cancelled")
		return out.list(found, v1.Reservations{Reservations: found})
	}
	return failure
}
