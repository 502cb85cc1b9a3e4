// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// takeOver takes over a Blazar with the configuration.
func (s *service) takeOver(ctx context.Context, t app.TakeOver) (app.TakenOver, error) {
	cfg, err := s.load()
	if err != nil {
		return app.TakenOver{}, err
	}
	return t.Run(ctx, cfg)
}

// newImportCommand returns `import`. run takes over a Blazar.
func newImportCommand(run func(ctx context.Context, t app.TakeOver) (app.TakenOver, error)) *cobra.Command {
	group := &cobra.Command{Use: "import", Short: "Take over the promises of another service"}
	var t app.TakeOver
	var format string
	var leave []string
	blazar := &cobra.Command{
		Use: "blazar", Args: cobra.NoArgs,
		Short: "Take over the leases and hosts of a running OpenStack Blazar",
		Long: "Reads Blazar's database, which stays as it is, and stores its leases, hosts, claims and events in Almanac's database,\n" +
			"all or nothing. Ids, times and hosts stay the same; servers in the cloud are not touched. Stop blazar-manager,\n" +
			"blazar-api and almanacd first; a dry run needs only almanacd stopped. The command may be repeated: leases that are\n" +
			"there already are left out. docs/takeover.md has all steps, and the way back.\n\n" +
			"The import refuses what it cannot take over. --leave KIND goes on without it:\n" + kinds() +
			"\n\nFindings of other kinds, such as leftover and stranger, are only shown.",
		Example: "  almanacd import blazar --from - --dry-run < blazar.url\n" +
			"  almanacd import blazar --from - --leave error,unsupported < blazar.url",
		RunE: func(c *cobra.Command, _ []string) error {
			show, known := map[string]func(io.Writer, app.TakenOver) error{"table": takenTable, "json": takenJSON}[format]
			if !known {
				return fault.Field("--format", "%s", fault.Unknown("format", format, []string{"table", "json"}))
			}
			for _, kind := range leave {
				if _, known := takeover.Refused[takeover.Kind(kind)]; !known {
					return fault.Field("--leave", "%s", fault.Unknown("kind", kind, refused()))
				}
				t.Leave = append(t.Leave, takeover.Kind(kind))
			}
			var err error
			if t.From, err = databaseURL(c, "--from", t.From); err != nil {
				return err
			}
			report, err := run(c.Context(), t)
			if err != nil && !report.Done {
				return fmt.Errorf("take over Blazar: %w", err)
			}
			if shown := show(c.OutOrStdout(), report); shown != nil {
				return shown
			}
			if report.Refused > 0 {
				return fault.New(fault.Conflict, "nothing was taken over: %d findings stop it; follow their remedies, or name their kinds with --leave", report.Refused)
			}
			return err
		},
	}
	flags := blazar.Flags()
	flags.StringVar(&t.From, "from", "", "URL of Blazar's database, such as [database] connection in blazar.conf; - reads it from standard input, so that no other user sees the password")
	flags.BoolVar(&t.DryRun, "dry-run", false, "only show what would be taken over, and what not")
	flags.StringSliceVar(&leave, "leave", nil, "go on without what these findings are about: "+strings.Join(refused(), ", "))
	flags.BoolVar(&t.History, "history", false, "take over leases that have ended too, so that lists show them")
	flags.StringVar(&t.Schema, "schema", "", "read a database with this Alembic revision, whose columns you have compared")
	flags.StringVarP(&format, "format", "f", "table", "output format: table or json")
	_ = blazar.MarkFlagRequired("from") // fails only for a flag that does not exist
	group.AddCommand(blazar)
	return group
}

// databaseURL returns the value of a flag, or the line of standard input if that is -.
func databaseURL(c *cobra.Command, flag, value string) (string, error) {
	if value != "-" {
		return value, nil
	}
	line, err := bufio.NewReader(io.LimitReader(c.InOrStdin(), 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the URL of %s: %w", flag, err)
	}
	return strings.TrimSpace(line), nil
}

// refused returns the kinds of findings that stop a takeover, sorted.
func refused() (list []string) {
	for kind := range maps.Keys(takeover.Refused) {
		list = append(list, string(kind))
	}
	slices.Sort(list)
	return list
}

// kinds returns the kinds of findings of a takeover, for the help.
func kinds() string {
	var b strings.Builder
	for _, kind := range refused() {
		fmt.Fprintf(&b, "  %-14s %s\n", kind, takeover.Refused[takeover.Kind(kind)])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// takenLease is a lease in the report.
type takenLease struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Project string   `json:"project"`
	Status  string   `json:"status"`
	Start   string   `json:"start"`
	End     string   `json:"end"`
	Hosts   []string `json:"hosts"`
}

// takenHost is a host in the report.
type takenHost struct {
	ID           int64             `json:"id"`
	Name         string            `json:"name"`
	Capabilities map[string]string `json:"capabilities"`
}

// takenHosts returns the hosts of a takeover as they are printed.
func takenHosts(report app.TakenOver) []takenHost {
	list := make([]takenHost, len(report.Hosts))
	for i, h := range report.Hosts {
		list[i] = takenHost{ID: h.Number, Name: h.Name, Capabilities: h.Capabilities}
	}
	return list
}

// takenLeases returns the leases of a takeover as they are printed.
func takenLeases(report app.TakenOver) []takenLease {
	list := make([]takenLease, len(report.Leases))
	for i, l := range report.Leases {
		list[i] = takenLease{ID: l.ID, Name: l.Name, Project: l.ProjectID, Status: "-", Start: l.Span.Start.String(), End: l.Span.End.String(), Hosts: []string{}}
		for _, r := range l.Reservations {
			list[i].Status = string(r.Status)
			list[i].Hosts = append(list[i].Hosts, r.HostNames()...)
		}
		slices.Sort(list[i].Hosts)
		list[i].Hosts = slices.Compact(list[i].Hosts)
	}
	return list
}

// takenJSON writes the report of a takeover as JSON.
func takenJSON(w io.Writer, report app.TakenOver) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Hosts  []takenHost  `json:"hosts"`
		Leases []takenLease `json:"leases"`
		app.TakenOver
	}{takenHosts(report), takenLeases(report), report})
}

// takenTable writes the report of a takeover as tables.
func takenTable(w io.Writer, report app.TakenOver) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "LEASE\tNAME\tPROJECT\tSTATUS\tSTART\tEND\tHOSTS")
	for _, l := range takenLeases(report) {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, l.Name, l.Project, l.Status, l.Start, l.End, strings.Join(l.Hosts, " "))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, text := range report.Cloud {
		fmt.Fprintf(w, "cloud: %s\n", text)
	}
	for _, f := range report.Findings {
		verdict := "note"
		if f.Stops {
			verdict = "refused"
		}
		fmt.Fprintf(w, "%s: %s: %s\n", verdict, f.Kind, f.Text)
		if f.Remedy != "" {
			fmt.Fprintf(w, "  remedy: %s\n", f.Remedy)
		}
	}
	done := "would be taken over"
	if report.Done {
		done = "are taken over"
	}
	reservations := 0
	for _, l := range report.Leases {
		reservations += len(l.Reservations)
	}
	_, err := fmt.Fprintf(w, "%d leases with %d reservations, %d hosts of the pool and %d servers %s\n",
		len(report.Leases), reservations, len(report.Hosts), len(report.Servers), done)
	return err
}
