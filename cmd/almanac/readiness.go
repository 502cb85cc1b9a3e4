// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func partFields(part v1.Part) []field {
	return []field{{"Part", part.Name, inLists}, {"OK", part.OK, inLists}, {"Since", part.Since, inLists}, {"Reason", prose(part.Reason), inLists}}
}

func (p *process) readinessCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "readiness",
		Short: "Show the state of each part of Almanac",
		Long: `Show the state of each part of the Almanac process that answers, and its problem if it
has one. The exit code is 1 if a part has a problem or the process is about to stop.`,
		Example: "  almanac readiness",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return with(p, c, partFields, inLists, func(ctx context.Context, almanac *client.Client, out printer[v1.Part]) error {
				found, err := almanac.Readiness(ctx)
				if len(found.Parts) == 0 {
					return err
				}
				if err != nil {
					err = &outcome{codeOf(err), unwell(found)}
				}
				return errors.Join(out.list(found.Parts, found), err)
			})
		},
	}
}

// unwell summarizes the problems of the printed parts.
func unwell(r v1.Readiness) string {
	var parts []string
	for _, part := range r.Parts {
		if !part.OK {
			parts = append(parts, part.Name)
		}
	}
	if len(parts) == 0 {
		return "this Almanac is about to stop"
	}
	return "not healthy: " + strings.Join(parts, ", ")
}
