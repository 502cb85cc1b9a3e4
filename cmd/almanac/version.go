package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// version is set when a release is built.
var version = "development"

// build says what this program was built from and for.
type build struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

var buildColumns = []column[build]{
	{"Version", func(b build) any { return b.Version }, inLists},
	{"Go", func(b build) any { return b.Go }, inLists},
	{"Platform", func(b build) any { return b.Platform }, inLists},
}

func (p *process) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: "  almanac version -f value -c Version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			out, err := newPrinter(p, buildColumns, inShows)
			if err != nil {
				return err
			}
			b := build{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return out.one(b, b)
		},
	}
}
