package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

var runColumns = []column[v1.PackingRun]{
	{"ID", func(r v1.PackingRun) any { return r.ID }, inLists},
	{"Status", func(r v1.PackingRun) any { return r.Status }, inLists},
	{"Moved", func(r v1.PackingRun) any { return r.Moved }, inLists},
	{"Skipped", func(r v1.PackingRun) any { return r.Skipped }, inLists},
	{"Failed", func(r v1.PackingRun) any { return r.Failed }, inLists},
	{"Left", func(r v1.PackingRun) any { return r.Left }, inLists},
	{"Created", func(r v1.PackingRun) any { return r.Created }, inLists},
	{"Reason", func(r v1.PackingRun) any { return prose(r.Reason) }, inLists},
	{"By", func(r v1.PackingRun) any { return r.By }, inShows},
	{"Ended", func(r v1.PackingRun) any { return r.Ended }, inShows},
	{"Plan", func(r v1.PackingRun) any { return r.Plan.ID }, inShows},
	{"Yield Before", func(r v1.PackingRun) any { return yieldText(r.Plan.MinYield) }, inShows},
	{"Yield Planned", func(r v1.PackingRun) any { return yieldText(r.Plan.PlannedYield) }, inShows},
	{"Yield After", func(r v1.PackingRun) any {
		if r.MinYield == nil {
			return ""
		}
		return yieldText(*r.MinYield)
	}, inShows},
	{"Moves", func(r v1.PackingRun) any { return lines(each(r.Plan.Moves, runMove)) }, inShows},
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
		Short:   "List the plans that are or were carried out, the last one first",
		Example: "  almanac pack list",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, runColumns, inLists)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.PackingRuns(c.Context(), 0)
			if err != nil {
				return err
			}
			return out.list(found.Runs, found)
		},
	}
}

// showRun prints the run that ask gives, where that is wanted when it is over.
func (p *process) showRun(c *cobra.Command, wait bool, most period, ask func(context.Context, *client.Client) (v1.PackingRun, error)) error {
	out, err := newPrinter(p, runColumns, inShows)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	r, err := ask(c.Context(), almanac)
	if err != nil {
		return err
	}
	var waited error
	if wait {
		r, waited = p.awaitRun(c.Context(), almanac, r, most.time())
	}
	return errors.Join(waited, out.one(r, r))
}

func over(r v1.PackingRun) bool { return r.Status != "running" && r.Status != "stopping" }

// awaitRun looks at a run until it is over, for so long at most.
func (p *process) awaitRun(ctx context.Context, almanac *client.Client, r v1.PackingRun, most time.Duration) (v1.PackingRun, error) {
	last, told := p.now().Add(most), map[string]string{}
	for {
		for _, m := range r.Plan.Moves {
			key := m.Instance + m.To
			if m.State != told[key] && m.State != "waiting" {
				p.inform("%s", runMove(m))
			}
			told[key] = m.State
		}
		if over(r) {
			break
		}
		left := last.Sub(p.now())
		if left <= 0 {
			return r, &outcome{exitTimedOut, "the run goes on; 'almanac pack status' shows how far it is"}
		}
		if err := p.pause(ctx, min(left, pollTime)); err != nil {
			return r, err
		}
		var err error
		if r, err = almanac.PackingRun(ctx, r.ID); err != nil {
			return r, err
		}
	}
	if r.Status != "done" {
		return r, &outcome{exitFailed, fmt.Sprintf("the run has %s: %s", ended[r.Status], plain(r.Reason))}
	}
	return r, nil
}

// ended are the words for how a run has.
var ended = map[string]string{"failed": "failed", "stopped": "been stopped"}
