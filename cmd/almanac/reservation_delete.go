package main

import (
	"bufio"
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// deletion has the flags of "reservation delete".
type deletion struct {
	dryRun, yes bool
}

func (p *process) reservationDeleteCommand() *cobra.Command {
	d := &deletion{}
	c := &cobra.Command{
		Use:   "delete ID|NAME...",
		Short: "Cancel reservations",
		Long: `Cancel reservations. What fails does not keep the others from being cancelled.

The servers of a reservation become what its --on-end says: by default they are
deleted. Where servers would be deleted, they are named, and you are asked; without
a terminal nothing is done unless --yes is given. --dry-run names them only.`,
		Example: `  almanac reservation delete training
  almanac reservation delete training --yes
  almanac reservation delete training batch --dry-run`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeReservations,
		RunE: func(c *cobra.Command, args []string) error {
			return p.delete(c, args, d)
		},
	}
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "only show what would be cancelled, and what would become of its servers")
	c.Flags().BoolVarP(&d.yes, "yes", "y", false, "do not ask, even where servers are deleted")
	return c
}

func (p *process) delete(c *cobra.Command, wanted []string, d *deletion) error {
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
		if err == nil {
			err = p.deleteOne(c, almanac, r, d)
		}
		if err != nil {
			p.report(c, err)
			failure = cmp.Or(failure, error(&outcome{code: codeOf(err)}))
			continue
		}
		found = append(found, r)
		if !d.dryRun {
			p.inform("reservation %s %s is cancelled", r.ID, plain(r.Name))
		}
	}
	if d.dryRun && failure == nil {
		p.inform("dry run: nothing is cancelled")
		return out.list(found, v1.Reservations{Reservations: found})
	}
	return failure
}

// deleteOne cancels a reservation, unless it deletes servers and nobody agrees to that.
func (p *process) deleteOne(c *cobra.Command, almanac *client.Client, r v1.Reservation, d *deletion) error {
	if !d.yes || d.dryRun {
		foreseen, err := almanac.OfferDeletion(c.Context(), r.ID)
		if err != nil {
			return err
		}
		deleted := p.nameServers(foreseen)
		if d.dryRun {
			return nil
		}
		if deleted > 0 && !p.agreed(r, deleted) {
			return fault.New(fault.Conflict, "reservation %s %s stays: it has servers that would be deleted; say --yes to delete them", r.ID, plain(r.Name))
		}
	}
	return almanac.DeleteReservation(c.Context(), r.ID)
}

// nameServers says what would become of each server, and returns how many are deleted.
func (p *process) nameServers(foreseen v1.Cancellation) (deleted int) {
	for _, s := range foreseen.Servers {
		p.inform("server %s %s (%s) of reservation %s %s: to be %s", s.ID, plain(s.Name), s.Status, foreseen.ID, plain(foreseen.Name), s.Becomes)
		if s.Becomes == "deleted" {
			deleted++
		}
	}
	return deleted
}

// agreed asks the one at the terminal; without a terminal nobody agrees.
func (p *process) agreed(r v1.Reservation, deleted int) bool {
	if !p.interactive() {
		return false
	}
	p.inform("Cancel reservation %s %s and delete %d of its servers? [y/N]", r.ID, plain(r.Name), deleted)
	answer, err := p.line()
	return err == nil && (answer == "y" || answer == "yes")
}

// line reads a line of standard input, in small letters.
func (p *process) line() (string, error) {
	if p.lines == nil {
		p.lines = bufio.NewReader(p.stdin)
	}
	text, err := p.lines.ReadString('\n')
	return strings.ToLower(strings.TrimSpace(text)), err
}

// onTerminal reports whether standard input is a terminal.
func (p *process) onTerminal() bool {
	file, ok := p.stdin.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
