// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func runFields(r v1.PackingRun) []field {
	after := ""
	if r.MinYield != nil {
		after = yieldText(*r.MinYield)
	}
	return []field{
		{"ID", r.ID, inLists}, {"Status", r.Status, inLists}, {"Moved", r.Moved, inLists}, {"Skipped", r.Skipped, inLists},
		{"Failed", r.Failed, inLists}, {"Left", r.Left, inLists}, {"Created", r.Created, inLists}, {"Reason", prose(r.Reason), inLists},
		{"By", r.By, inShows}, {"Ended", r.Ended, inShows}, {"Plan", r.Plan.ID, inShows},
		{"Yield Before", yieldText(r.Plan.MinYield), inShows}, {"Yield Planned", yieldText(r.Plan.PlannedYield), inShows},
		{"Yield After", after, inShows}, {"Moves", lines(each(r.Plan.Moves, runMove)), inShows},
	}
}

func runMove(m v1.PackingMove) string {
	text := fmt.Sprintf("%s: %s (%s) from %s to %s", m.State, m.Name, m.Instance, m.From, m.To)
	if m.Reason != "" {
		text += ": " + plain(m.Reason)
	}
	return text
}

func (p *process) packListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the runs, the latest first",
		Example: "  almanac pack list",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return list(p, c, runFields, inLists, func(ctx context.Context, almanac *client.Client) ([]v1.PackingRun, v1.PackingRuns, error) {
				found, err := almanac.PackingRuns(ctx, 0)
				return found.Runs, found, err
			})
		},
	}
}

// waiting are the flags --wait and --wait-timeout.
type waiting struct {
	wait bool
	most period
}

func newWaiting() *waiting { return &waiting{most: 3600} }

func (w *waiting) add(c *cobra.Command) {
	c.Flags().BoolVar(&w.wait, "wait", false, "wait until the run is over")
	c.Flags().Var(&w.most, "wait-timeout", "maximum time to wait")
}

// showRun prints the run that ask returns, after its end if the flags ask to wait.
func (p *process) showRun(c *cobra.Command, w *waiting, ask func(context.Context, *client.Client) (v1.PackingRun, error)) error {
	return with(p, c, runFields, inShows, func(ctx context.Context, almanac *client.Client, out printer[v1.PackingRun]) error {
		r, err := ask(ctx, almanac)
		if err != nil {
			return err
		}
		var waited error
		if w.wait {
			r, waited = p.awaitRun(ctx, almanac, r, w.most)
		}
		return errors.Join(waited, out.one(r, r))
	})
}

// awaitRun waits until a run is over, and prints each move that changes its state.
func (p *process) awaitRun(ctx context.Context, almanac *client.Client, r v1.PackingRun, most period) (v1.PackingRun, error) {
	printed := map[string]string{}
	over := func(r v1.PackingRun) (bool, error) {
		for _, m := range r.Plan.Moves {
			key := m.Instance + m.To
			if m.State != printed[key] && m.State != "waiting" {
				p.inform("%s", runMove(m))
			}
			printed[key] = m.State
		}
		switch r.Status {
		case "running", "stopping":
			return false, nil
		case "done":
			return true, nil
		case "stopped":
			return false, &outcome{exitFailed, "the run was stopped: " + plain(r.Reason)}
		}
		return false, &outcome{exitFailed, "the run has failed: " + plain(r.Reason)}
	}
	again := func(ctx context.Context, r v1.PackingRun) (v1.PackingRun, error) {
		return almanac.PackingRun(ctx, r.ID)
	}
	return await(ctx, p, r, most, over, again, func(v1.PackingRun) string {
		return "the run continues; 'almanac pack status' shows its progress"
	})
}
