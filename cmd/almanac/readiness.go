package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

var partColumns = []column[v1.Part]{
	{"Part", func(part v1.Part) any { return part.Name }, inLists},
	{"OK", func(part v1.Part) any { return part.OK }, inLists},
	{"Since", func(part v1.Part) any { return part.Since }, inLists},
	{"Reason", func(part v1.Part) any { return prose(part.Reason) }, inLists},
}

func (p *process) readinessCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "readiness",
		Short: "Show whether every part of Almanac is well, and why not",
		Long: `Show whether every part of the Almanac process that answers is well, and why not.
The exit code is 1 when one is not, or when the process is about to stop.`,
		Example: "  almanac readiness",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, partColumns, inLists)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.Readiness(c.Context())
			if len(found.Parts) == 0 {
				return err
			}
			if err != nil {
				err = &outcome{codeOf(err), unwell(found)}
			}
			return errors.Join(out.list(found.Parts, found), err)
		},
	}
}

// unwell says in short what the printed parts say at length.
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
	return "not well: " + strings.Join(parts, ", ")
}
