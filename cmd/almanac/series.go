// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func (p *process) seriesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "series",
		Short: "Reserve again and again, such as on each working day",
		Long: `Reserve again and again, such as on each working day.

A series has a recurrence rule, which is an RRULE of RFC 5545, a time zone and the
local time of its first occurrence. Each occurrence is a reservation of its own, with
the same local time on both sides of a change of the clock: 'almanac reservation
list --series' lists them, and 'almanac reservation delete' cancels one of them.

A command accepts the id of a series, or its name if no other series that is not over
has the same name.`,
		Example: `  almanac series create lab --rule 'FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;COUNT=60' --start $(date -d 'next monday' +%F)T09:00 --time-zone Europe/Paris --duration 8h
  almanac series show lab
  almanac series delete lab --from +30d`,
	}
	c.AddCommand(p.seriesCreateCommand(), p.seriesListCommand(), p.seriesShowCommand(), p.seriesChangeCommand(), p.seriesDeleteCommand())
	return c
}

// seriesTerms returns the fields of a series without its occurrences.
func seriesTerms(s v1.Series) []field {
	return []field{
		{"ID", s.ID, inLists}, {"Name", s.Name, inLists}, {"Rule", s.Rule, inLists}, {"Time Zone", s.TimeZone, inLists},
		{"Local Start", s.LocalStart, inLists}, {"Duration", s.Duration, inLists}, {"Left", s.Left, inLists}, {"Except", s.Except, inLongLists}, {"Also", s.Also, inLongLists},
		{"Project", s.ProjectID, inLongLists}, {"User", s.UserID, inLongLists}, {"Created", s.CreatedAt, inLongLists},
	}
}

// seriesSummary returns the fields of a series with the number, the first and the last of its occurrences.
func seriesSummary(s v1.Series) []field {
	booked := bookedOf(s)
	var first, last *time.Time
	if len(booked) > 0 {
		first, last = &booked[0].Start, &booked[len(booked)-1].End
	}
	return append(seriesTerms(s), field{"Reservations", len(booked), inShows}, field{"First Start", first, inShows}, field{"Last End", last, inShows})
}

// seriesFields returns all fields of a series.
func seriesFields(s v1.Series) []field {
	return append(seriesSummary(s), field{"Occurrences", lines(each(s.Occurrences, occurrenceLine)), inShows})
}

// bookedOf returns the occurrences that have a reservation.
func bookedOf(s v1.Series) []v1.Occurrence {
	return slices.DeleteFunc(slices.Clone(s.Occurrences), func(o v1.Occurrence) bool { return o.ReservationID == "" })
}

func occurrenceLine(o v1.Occurrence) string {
	return strings.TrimRight(fmt.Sprintf("%s %s %s %s %s", o.Local, stamp(o.Start), stamp(o.End), o.Status, o.ReservationID), " ")
}

func occurrenceFields(o v1.Occurrence) []field {
	var quantity *int
	if o.Quantity > 0 {
		quantity = &o.Quantity
	}
	return []field{
		{"Occurrence", o.Local, inLists}, {"Start", o.Start, inLists}, {"End", o.End, inLists}, {"Status", o.Status, inLists},
		{"Quantity", quantity, inLists}, {"Reservation", o.ReservationID, inLists},
	}
}

var everySeries = catalog[v1.Series]{
	kind: "series", command: "almanac series list",
	id:   func(s v1.Series) string { return s.ID },
	name: func(s v1.Series) string { return s.Name },
	live: func(s v1.Series) bool { return s.Left > 0 },
	get: func(ctx context.Context, almanac *client.Client, id string) (v1.Series, error) {
		return almanac.GetSeries(ctx, id)
	},
	list: func(ctx context.Context, almanac *client.Client, _ string) iter.Seq2[v1.Series, error] {
		return almanac.ListSeries(ctx, client.SeriesFilter{})
	},
}

// wholeSeries returns the series with an id or a name, with its occurrences.
func wholeSeries(ctx context.Context, almanac *client.Client, what string) (found taggedSeries, err error) {
	found.Series, found.ETag, err = everySeries.findTagged(ctx, almanac, what)
	return found, err
}

func (p *process) seriesListCommand() *cobra.Command {
	var filter client.SeriesFilter
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List series, the latest first",
		Example: `  almanac series list
  almanac series list --long -f json`,
	}
	listCommand(p, c, seriesTerms, func(ctx context.Context, almanac *client.Client) ([]v1.Series, v1.SeriesList, error) {
		filter.PageSize = most.page()
		found, err := collect(almanac.ListSeries(ctx, filter), most)
		return found, v1.SeriesList{Series: found}, err
	})
	c.Flags().BoolVar(&filter.AllProjects, "all-projects", false, "series of all projects (admins only)")
	most.add(c)
	return c
}

// taggedSeries is a series with the tag of the answer that shows it.
type taggedSeries struct {
	v1.Series
	ETag string `json:"etag"`
}

func (p *process) seriesShowCommand() *cobra.Command {
	fields := func(of columns[v1.Series]) columns[taggedSeries] {
		return func(s taggedSeries) []field { return append(of(s.Series), field{"ETag", s.ETag, inShows}) }
	}
	return &cobra.Command{
		Use:   "show ID|NAME",
		Short: "Show a series and its occurrences",
		Long: `Show a series and its occurrences: what was booked, and what each of its reservations
is now. An occurrence without a reservation was skipped, or is long over.

--if-match of the commands that change a series takes its ETag, so that they change
what you have seen and nothing else.`,
		Example: `  almanac series show lab
  almanac series show lab -f value -c ETag`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(everySeries.complete(p)),
		RunE: func(c *cobra.Command, args []string) error {
			return with(p, c, fields(seriesFields), inShows, func(ctx context.Context, almanac *client.Client, out printer[taggedSeries]) error {
				found, err := wholeSeries(ctx, almanac, args[0])
				if err != nil {
					return err
				}
				return printOccurring(p, found, found.Occurrences, fields(seriesSummary), out)
			})
		},
	}
}

// printOccurring prints a series. Its table is one of the series and one of the occurrences.
func printOccurring[T any](p *process, s T, of []v1.Occurrence, summary columns[T], out printer[T]) error {
	if p.format != "table" || out.chosen {
		return out.one(s, s)
	}
	head, err := newPrinter(p, summary, inShows)
	if err != nil {
		return err
	}
	each, err := newPrinter(p, occurrenceFields, inLists)
	if err != nil {
		return err
	}
	if err := head.one(s, s); err != nil {
		return err
	}
	return each.list(of, of)
}
