package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

var findingColumns = []column[v1.Finding]{
	{"Kind", func(f v1.Finding) any { return f.Kind }, inLists},
	{"Subject", func(f v1.Finding) any { return f.Subject }, inLists},
	{"Message", func(f v1.Finding) any { return prose(f.Message) }, inLists},
	{"Remedy", func(f v1.Finding) any { return prose(f.Remedy) }, inLists},
}

// outcomeColumns are for what was to be fixed.
var outcomeColumns = append(findingColumns[:3:3],
	column[v1.Finding]{"Outcome", func(f v1.Finding) any { return prose(outcomeOf(f)) }, inLists},
)

// outcomeOf says what became of a finding, or what is to be done.
func outcomeOf(f v1.Finding) string {
	switch {
	case f.Outcome == "":
		return "left: " + f.Remedy
	case f.Detail != "":
		return f.Outcome + ": " + f.Detail
	}
	return f.Outcome
}

func (p *process) doctorCommand() *cobra.Command {
	var fix, dryRun bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is not as it should be between the reservations and the cloud",
		Long: `Find what is not as it should be between the reservations, what lies on the cloud
for them, the instances and the projects. Nothing is changed without --fix. The exit
code is 0 where all is well, and 5 where findings remain.`,
		Example: `  almanac doctor
  almanac doctor --fix --dry-run
  almanac doctor --fix`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			columns := findingColumns
			if fix {
				columns = outcomeColumns
			}
			out, err := newPrinter(p, columns, inLists)
			if err != nil {
				return err
			}
			if dryRun && !fix {
				return fault.New(fault.Invalid, "--dry-run goes with --fix")
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			examine := almanac.Examine
			if fix {
				examine = func(ctx context.Context) (v1.Examination, error) {
					return almanac.Fix(ctx, v1.Treatment{DryRun: dryRun})
				}
			}
			found, err := examine(c.Context())
			if err != nil {
				return err
			}
			p.explainExamination(found)
			return errors.Join(out.list(found.Findings, found), remain(found))
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "fix what can be fixed")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "with --fix: only say what would be done")
	return c
}

// explainExamination tells what the findings do not.
func (p *process) explainExamination(found v1.Examination) {
	if !found.Cloud {
		p.inform("there is no cloud to examine, only the reservations and the hosts")
	}
	if len(found.Findings) == 0 && found.Doubt == "" {
		p.inform("all is well")
	}
	if found.Doubt != "" {
		p.inform("nothing is taken away while the inventory is in doubt: %s", found.Doubt)
	}
}

// remain fails where findings are left that were not fixed.
func remain(found v1.Examination) error {
	left := 0
	for _, f := range found.Findings {
		if f.Outcome != "fixed" {
			left++
		}
	}
	switch left {
	case 0:
		return nil
	case 1:
		return &outcome{exitNoRoom, "1 finding remains"}
	}
	return &outcome{exitNoRoom, fmt.Sprintf("%d findings remain", left)}
}
