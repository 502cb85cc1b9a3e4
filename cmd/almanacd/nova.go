// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// lookAtNova returns the consumers of Nova's topic, for the configuration.
func (s *service) lookAtNova(ctx context.Context) (app.NovaMode, error) {
	cfg, err := s.load()
	if err != nil {
		return app.NovaMode{}, err
	}
	return app.LookAtNova(ctx, cfg)
}

// newNovaCommand returns `nova`. look returns the consumers of Nova's topic.
func newNovaCommand(look func(ctx context.Context) (app.NovaMode, error)) *cobra.Command {
	group := &cobra.Command{Use: "nova", Short: "Show what Almanac does for Nova"}
	var format string
	mode := &cobra.Command{
		Use: "mode", Args: cobra.NoArgs,
		Short: "Show which process answers Nova's requests for hosts, and whether that is as configured",
		Long: "Asks the message broker for the consumers of Nova's topic scheduler, and compares them with [scheduler] mode. The\n" +
			"command changes nothing. The exit status is 0 if all is as configured, and 1 if the operator must do something; the\n" +
			"output shows what.",
		Example: "  almanacd nova mode\n  almanacd nova mode -f json",
		RunE: func(c *cobra.Command, _ []string) error {
			show, known := map[string]func(io.Writer, app.NovaMode) error{"table": novaTable, "json": novaJSON}[format]
			if !known {
				return fault.Field("--format", "%s", fault.Unknown("format", format, []string{"table", "json"}))
			}
			found, err := look(c.Context())
			if err != nil {
				return err
			}
			if err := show(c.OutOrStdout(), found); err != nil {
				return err
			}
			if !found.Well() {
				return fault.New(fault.Conflict, "Nova's topic scheduler is not served as configured")
			}
			return nil
		},
	}
	mode.Flags().StringVarP(&format, "format", "f", "table", "output format: table or json")
	group.AddCommand(mode)
	return group
}

func novaJSON(w io.Writer, m app.NovaMode) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(m)
}

// novaTable writes who answers Nova, and what is wrong with it.
func novaTable(w io.Writer, m app.NovaMode) error {
	fmt.Fprintf(w, "mode: %s\n\n", m.Mode)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "VIRTUAL HOST\tCONSUMERS\tOF ALMANAC\tWAITING")
	for _, t := range []*app.Topic{&m.Nova, m.Behind} {
		if t != nil {
			fmt.Fprintf(out, "%s\t%d\t%d\t%d\n", t.VirtualHost, t.Consumers, t.Almanac, t.Waiting)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, replica := range m.Replicas {
		fmt.Fprintf(w, "almanacd on %s: %d of them\n", replica.Machine, replica.Consumers)
	}
	fmt.Fprintln(w)
	for _, f := range m.Findings {
		verdict := "well"
		if !f.Well {
			verdict = "wrong"
		}
		fmt.Fprintf(w, "%-5s  %s\n", verdict, f.Text)
	}
	return nil
}
