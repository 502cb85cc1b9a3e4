// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
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
	only        expected
}

func (p *process) reservationDeleteCommand() *cobra.Command {
	d := &deletion{}
	c := &cobra.Command{
		Use:        "delete ID|NAME...",
		Aliases:    []string{"cancel"},
		SuggestFor: []string{"remove", "rm", "end", "release"},
		Short:      "Cancel reservations",
		Long: `Cancel reservations. If one of them fails, the command continues with the others.

Almanac treats the servers of a canceled reservation as its --on-end states: by
default it deletes them. Before servers are deleted, the command lists them and
asks for confirmation; without a terminal it needs --yes. --dry-run only lists them.`,
		Example: `  almanac reservation delete training
  almanac reservation delete training --yes
  almanac reservation delete training batch --dry-run`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: reservations.complete(p),
		RunE: func(c *cobra.Command, args []string) error {
			if d.only.tag != "" && len(args) > 1 {
				return fault.Field("--if-match", "is the tag of one reservation; delete the others by a command of their own")
			}
			return p.delete(c, args, d)
		},
	}
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "only show what would be canceled, and what would happen to its servers")
	c.Flags().BoolVarP(&d.yes, "yes", "y", false, "delete servers without confirmation")
	d.only.add(c, "reservation")
	return c
}

func (p *process) delete(c *cobra.Command, wanted []string, d *deletion) error {
	return with(p, c, reservationFields, inLists, func(ctx context.Context, almanac *client.Client, out printer[v1.Reservation]) error {
		found, failure := eachOf(p, c, wanted, func(what string) (v1.Reservation, error) {
			r, err := reservations.find(ctx, almanac, what)
			if err == nil {
				err = p.deleteOne(ctx, almanac, r, d)
			}
			if err == nil && !d.dryRun {
				p.inform("reservation %s %s is canceled", r.ID, plain(r.Name))
			}
			return r, err
		})
		if d.dryRun && failure == nil {
			p.inform("dry run: nothing is canceled")
			return out.list(found, v1.Reservations{Reservations: found})
		}
		return failure
	})
}

// deleteOne cancels a reservation, unless that deletes servers and the user does not confirm it.
func (p *process) deleteOne(ctx context.Context, almanac *client.Client, r v1.Reservation, d *deletion) error {
	almanac = d.only.of(almanac)
	if !d.yes || d.dryRun {
		foreseen, err := almanac.OfferDeletion(ctx, r.ID)
		if err != nil {
			return err
		}
		deleted := p.nameServers(foreseen)
		if d.dryRun {
			return nil
		}
		if deleted > 0 && !p.agreed("reservation "+r.ID+" "+plain(r.Name), deleted) {
			return fault.New(fault.Conflict, "reservation %s %s stays: canceling it would delete servers; add --yes to delete them", r.ID, plain(r.Name))
		}
	}
	return almanac.DeleteReservation(ctx, r.ID)
}

// nameServers prints what would happen to each server, and returns how many Almanac would
// delete.
func (p *process) nameServers(foreseen v1.Cancellation) (deleted int) {
	for _, s := range foreseen.Servers {
		p.inform("server %s %s (%s) of reservation %s %s would be %s", s.ID, plain(s.Name), s.Status, foreseen.ID, plain(foreseen.Name), s.Becomes)
		if s.Becomes == "deleted" {
			deleted++
		}
	}
	return deleted
}

// agreed asks the user for confirmation; without a terminal the answer is no.
func (p *process) agreed(what string, deleted int) bool {
	if !p.interactive() {
		return false
	}
	p.inform("Cancel %s and delete %d of its servers? [y/N]", what, deleted)
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
