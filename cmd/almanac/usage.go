// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func limitFields(l v1.Limits) []field {
	return []field{
		{"Project", l.ProjectID, inLists},
		{"Max Duration", l.Limits.MaxDuration, inLists}, {"Max Start Ahead", l.Limits.MaxStartAhead, inLists},
		{"Max Hosts", l.Limits.MaxHostsPerProject, inLists}, {"Max Host-Hours", l.Limits.MaxHostHoursPerProject, inLists},
		{"Max Empty Leases", l.Limits.MaxEmptyLeases, inLists}, {"Extension Window", l.Limits.ExtensionWindow, inLists},
		{"Max Hold", l.Limits.MaxHold, inLists}, {"Max Holds", l.Limits.MaxHoldsPerProject, inLists}, {"Max Waiting", l.Limits.MaxWaitingPerProject, inLists},
		{"Reservations", l.Used.Reservations, inLists}, {"Hosts Now", l.Used.HostsNow, inLists}, {"Most Hosts", l.Used.MostHosts, inLists},
		{"Host-Hours", l.Used.HostHours, inLists}, {"Holds", l.Used.Holds, inLists}, {"Waiting", l.Used.Waiting, inLists},
	}
}

func (p *process) limitsCommand() *cobra.Command {
	var project string
	c := &cobra.Command{
		Use:   "limits",
		Short: "Show the limits of your project and what it uses of them",
		Long: `Show the limits of your project and what it uses of them. An empty limit does not
exist. Most Hosts is how many hosts the project holds at the same time at most, from
now on.`,
		Example: "  almanac limits",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return show(p, c, limitFields, func(ctx context.Context, almanac *client.Client) (v1.Limits, error) {
				return almanac.Limits(ctx, project)
			})
		},
	}
	c.Flags().StringVar(&project, "project-id", "", "another project, for admins")
	return c
}

// usageFields are the columns of a row; the name is that of a project or of a host.
func usageFields(name string) columns[v1.UsageRow] {
	return func(r v1.UsageRow) []field {
		return []field{
			{name, r.ProjectID + r.Host, inLists}, {"Reserved", r.Reserved, inLists}, {"Used", r.Used, inLists},
			{"Maintenance", r.Maintenance, inLists}, {"Idle", r.Idle, inLists}, {"Asleep", r.Asleep, inLists}, {"Capacity", r.Capacity, inLongLists},
		}
	}
}

func (p *process) usageCommand() *cobra.Command {
	var start, end moment
	var question client.UsageQuery
	var long bool
	c := &cobra.Command{
		Use:   "usage",
		Short: "Add up the host-hours of projects or hosts",
		Long: `Add up the host-hours of projects or hosts, by default those of the last week. Used is
the part of Reserved in which the owner could use the hosts. Maintenance, Idle and
Asleep are for admins.`,
		Example: `  almanac usage
  almanac usage --start "$(date -d '30 days ago' -Iseconds)" --by host --format csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, name := inLists, "Project"
			if long {
				in = inLongLists
			}
			if question.By == "host" {
				name = "Host"
			}
			question.Start, question.End = start.at, end.at
			return list(p, c, usageFields(name), in, func(ctx context.Context, almanac *client.Client) ([]v1.UsageRow, v1.Usage, error) {
				answer, err := almanac.Usage(ctx, question)
				if err == nil {
					p.inform("from %s to %s: %s", stamp(answer.Start), stamp(answer.End), sum(answer.Total))
					if answer.KeptFrom != nil {
						p.inform("old reservations were purged; of the days before %s their sums are kept", stamp(*answer.KeptFrom))
					}
				}
				return answer.Rows, answer, err
			})
		},
	}
	flags := c.Flags()
	flags.Var(&start, "start", "start of the period (default 7 days before its end)")
	flags.Var(&end, "end", "end of the period (default now)")
	flags.StringVar(&question.By, "by", "project", "project or host")
	flags.StringVar(&question.ProjectID, "project-id", "", "only this project")
	flags.BoolVar(&long, "long", false, "print more columns")
	completeFlag(c, "by", cobra.FixedCompletions([]string{"project", "host"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// sum returns the total of a report in words.
func sum(total v1.UsageRow) string {
	text := fmt.Sprintf("%s host-hours reserved, %s used", cell(total.Reserved, false), cell(total.Used, false))
	if total.Capacity != nil {
		text += fmt.Sprintf(", %s idle, %s asleep, of %s", cell(total.Idle, false), cell(total.Asleep, false), cell(total.Capacity, false))
	}
	return text
}

func (p *process) eventsCommand() *cobra.Command {
	c := &cobra.Command{Use: "events", Short: "Follow what changes on the calendar"}
	c.AddCommand(p.followCommand())
	return c
}

func (p *process) followCommand() *cobra.Command {
	var after string
	c := &cobra.Command{
		Use:   "follow",
		Short: "Print each change until you stop the command",
		Long: `Print each change of the calendar until you stop the command, one in each line: what
has changed, when and on which hosts, and which reservation it is if you may see it.
With --format json or api, each line is an object with the id of the event.`,
		Example: `  almanac events follow
  almanac events follow --format json --after mB3x8Q2k.1764384904.1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			for e, err := range almanac.Events(c.Context(), after) {
				if errors.Is(err, context.Canceled) {
					return nil
				}
				if err == nil {
					err = p.printEvent(e)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&after, "after", "", "begin after the event with this id")
	return c
}

// printEvent prints an event in one line.
func (p *process) printEvent(e client.Event) error {
	line := ""
	if p.format == "json" || p.format == "api" {
		raw, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		line = string(raw)
	} else {
		var err error
		if line, err = changeLine(e); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(p.stdout, line)
	return err
}

// changeLine returns an event in words.
func changeLine(e client.Event) (string, error) {
	switch e.Name {
	case "calendar":
		var data v1.CalendarEvent
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return "", fmt.Errorf("read an event: %w", err)
		}
		words := []string{"calendar", data.Change, spanText(data.Start, data.End)}
		if data.ReservationID != "" {
			words = append(words, "reservation "+data.ReservationID, plain(data.Name), data.Status)
		}
		if len(data.Hosts) > 0 {
			words = append(words, "on "+cell(data.Hosts, false))
		}
		return strings.Join(words, " "), nil
	case "hosts":
		var data v1.HostsEvent
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return "", fmt.Errorf("read an event: %w", err)
		}
		if len(data.Hosts) == 0 {
			return "hosts changed: many", nil
		}
		return "hosts changed: " + cell(data.Hosts, false), nil
	}
	return plain(e.Name) + " " + plain(string(e.Data)), nil
}

func spanText(start, end time.Time) string { return "from " + stamp(start) + " to " + stamp(end) }
