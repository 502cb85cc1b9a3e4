// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// seriesAmendment has the flags of "series change".
type seriesAmendment struct {
	from                              since
	name, properties, onEnd, affinity string
	timeOfDay                         string
	size                              v1.Resources
	quantity                          int
	beforeEnd, duration               period
	dryRun                            bool
	only                              expected
}

func (p *process) seriesChangeCommand() *cobra.Command {
	s := &seriesAmendment{}
	c := &cobra.Command{
		Use:        "change ID|NAME",
		Aliases:    []string{"set", "update"},
		SuggestFor: []string{"rename", "move", "edit", "modify", "shrink", "grow"},
		Short:      "Change the reservations of a series that have not begun",
		Long: `Change the reservations of a series that have not begun, or with --from those of them
from then on: "this and following". A refused change leaves all of them as they are.
The series itself stays as it was booked, with its name and its rule.

--from is the local time or the date of an occurrence, or a time with its zone.
'almanac reservation change' changes one occurrence alone.`,
		Example: `  almanac series change lab --quantity 3 --dry-run
  almanac series change lab --from +30d --time-of-day 09:30 --duration 7h
  almanac series change lab --properties '' --if-match "$(almanac series show lab -f value -c ETag)"`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(everySeries.complete(p)),
		RunE:              func(c *cobra.Command, args []string) error { return p.changeSeries(c, args[0], s) },
	}
	flags := c.Flags()
	flags.Var(&s.from, "from", "only the occurrences from then on")
	flags.StringVar(&s.name, "name", "", "the new name of the reservations")
	flags.IntVar(&s.quantity, "quantity", 0, "new number of hosts or instances")
	flags.StringVar(&s.properties, "properties", "", "new filter that hosts must pass: JSON, or @FILE that contains it; empty removes the filter")
	flags.StringVar(&s.onEnd, "on-end", "", "new action on the instances at the end: delete, shelve, stop or leave, if the cloud offers it")
	flags.Var(&s.beforeEnd, "before-end", "how long before the end to send a warning; 0 is never")
	flags.Int64Var(&s.size.VCPUs, "vcpus", 0, "new VCPUs of one instance")
	flags.Int64Var(&s.size.MemoryMB, "memory-mb", 0, "new memory of one instance in MB")
	flags.Int64Var(&s.size.DiskGB, "disk-gb", 0, "new disk of one instance in GB")
	flags.StringVar(&s.affinity, "affinity", "", "new placement of the instances on hosts: none, same or different")
	flags.StringVar(&s.timeOfDay, "time-of-day", "", "the local time at which each occurrence begins on its day, such as 09:30")
	flags.Var(&s.duration, "duration", "how long each occurrence lasts")
	flags.BoolVar(&s.dryRun, "dry-run", false, "only show what would be booked")
	s.only.add(c, "series")
	c.MarkFlagsOneRequired("name", "quantity", "properties", "on-end", "before-end", "vcpus", "memory-mb", "disk-gb", "affinity", "time-of-day", "duration")
	completeFlag(c, "on-end", oneOf(reservation.OnEnds))
	completeFlag(c, "affinity", oneOf([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}))
	return c
}

func (p *process) changeSeries(c *cobra.Command, what string, s *seriesAmendment) error {
	filter, err := p.filter(s.properties)
	if err != nil {
		return err
	}
	if filter == nil && c.Flags().Changed("properties") {
		filter = json.RawMessage(`""`)
	}
	timeOfDay, err := s.clock(c)
	if err != nil {
		return err
	}
	change := v1.SeriesChange{
		Name: given(c, "name", &s.name), Quantity: given(c, "quantity", &s.quantity), HostProperties: filter,
		OnEnd: given(c, "on-end", &s.onEnd), BeforeEnd: given(c, "before-end", (*v1.Duration)(&s.beforeEnd)), Affinity: given(c, "affinity", &s.affinity),
		TimeOfDay: timeOfDay, Duration: given(c, "duration", (*v1.Duration)(&s.duration)),
	}
	find := func(ctx context.Context, almanac *client.Client) (id, from string, err error) {
		found, err := wholeSeries(ctx, almanac, what)
		if err == nil {
			change.Resources, err = resizedOccurrence(ctx, c, almanac, found.ID, s.from, s.size)
		}
		return found.ID, s.from.text(), err
	}
	if s.dryRun {
		return p.listOffered(c, "dry run: nothing is changed", func(ctx context.Context, almanac *client.Client) (offer v1.SeriesOffer, err error) {
			id, from, err := find(ctx, almanac)
			if err != nil {
				return offer, err
			}
			return s.only.of(almanac).OfferSeriesChange(ctx, id, from, change)
		})
	}
	return with(p, c, seriesFields, inShows, func(ctx context.Context, almanac *client.Client, out printer[v1.Series]) error {
		id, from, err := find(ctx, almanac)
		if err != nil {
			return err
		}
		almanac = s.only.of(almanac)
		changed, err := almanac.ChangeSeries(ctx, id, from, change)
		if err != nil {
			return err
		}
		return printOccurring(p, changed, changed.Occurrences, seriesSummary, out)
	})
}

// clock returns the time of day of the flags; nil if they have none.
func (s *seriesAmendment) clock(c *cobra.Command) (*string, error) {
	at := given(c, "time-of-day", &s.timeOfDay)
	if at == nil {
		return nil, nil
	}
	for _, form := range []string{"15:04", time.TimeOnly} {
		if t, err := time.Parse(form, *at); err == nil && t.Format(form) == *at {
			return new(t.Format(time.TimeOnly)), nil
		}
	}
	return nil, fault.Field("--time-of-day", "%q is no time of day; write one such as 09:30", *at)
}

// resizedOccurrence returns the size of one instance of the next occurrence with the amounts that flags set; nil if they set none.
func resizedOccurrence(ctx context.Context, c *cobra.Command, almanac *client.Client, id string, from since, size v1.Resources) (*v1.Resources, error) {
	if resized(c, nil, size) == nil {
		return nil, nil
	}
	filter := client.ReservationFilter{SeriesID: id, Statuses: []string{string(reservation.Pending)}}
	for r, err := range almanac.ListReservations(ctx, filter) {
		switch {
		case err != nil:
			return nil, err
		case r.Occurrence >= from.local && !r.Start.Before(from.at.at):
			return resized(c, r.Resources, size), nil
		}
	}
	return resized(c, nil, size), nil
}
