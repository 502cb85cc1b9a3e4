// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// version is set by the build of a release.
var version = "development"

// build describes the build of this program.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildFields(b build) []field {
	return []field{{"Version", b.Version, inLists}, {"Go", b.Go, inLists}, {"Platform", b.Platform, inLists}}
}

func (p *process) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: "  almanac version -f value -c Version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			out, err := newPrinter(p, buildFields, inShows)
			if err != nil {
				return err
			}
			b := build{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return out.one(b, b)
		},
	}
}
