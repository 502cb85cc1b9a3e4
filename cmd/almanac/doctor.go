// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func findingFields(f v1.Finding) []field {
	return []field{
		{"Kind", f.Kind, inLists}, {"Subject", f.Subject, inLists}, {"Message", prose(f.Message), inLists},
		{"Remedy", prose(f.Remedy), inLists},
	}
}

// fixedFields are the fields of a finding after a fix.
func fixedFields(f v1.Finding) []field {
	return append(findingFields(f)[:3], field{"Outcome", prose(outcomeOf(f)), inLists})
}

// outcomeOf describes the result of a fix, or what the operator must do.
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
		Short: "Find and fix inconsistencies between reservations and the cloud",
		Long: `Find inconsistencies between the reservations, the objects that Almanac keeps for them
in the cloud, the instances and the projects. The command changes nothing without
--fix. The exit code is 0 if all is well, and 5 if findings remain.`,
		Example: `  almanac doctor
  almanac doctor --fix --dry-run
  almanac doctor --fix`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dryRun && !fix {
				return fault.New(fault.Invalid, "--dry-run requires --fix")
			}
			columns, examine := findingFields, (*client.Client).Examine
			if fix {
				columns, examine = fixedFields, func(almanac *client.Client, ctx context.Context) (v1.Examination, error) {
					return almanac.Fix(ctx, v1.Treatment{DryRun: dryRun})
				}
			}
			return with(p, c, columns, inLists, func(ctx context.Context, almanac *client.Client, out printer[v1.Finding]) error {
				found, err := examine(almanac, ctx)
				if err != nil {
					return err
				}
				p.explainExamination(found)
				if len(found.Findings) == 0 && out.format == "table" {
					return nil // the sentence is enough
				}
				return errors.Join(out.list(found.Findings, found), remain(found))
			})
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "fix the findings that can be fixed")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "with --fix: only show what the fix would do")
	return c
}

// explainExamination prints what the findings do not show.
func (p *process) explainExamination(found v1.Examination) {
	if !found.Cloud {
		p.inform("there is no cloud to examine, only the reservations and the hosts")
	}
	if len(found.Findings) == 0 && found.Untrusted == "" {
		p.inform("all is well")
	}
	if found.Untrusted != "" {
		p.inform("the doctor removes nothing while the inventory is untrusted: %s", found.Untrusted)
	}
}

// remain returns an error if there are findings that are not fixed.
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
