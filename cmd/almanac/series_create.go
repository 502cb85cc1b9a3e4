// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// recurring has the flags of "series create".
type recurring struct {
	booking                   // what each occurrence has
	when     v1.SeriesRequest // the fields about time that flags set directly
	start    localTime
	duration period
	skip     bool
}

func (p *process) seriesCreateCommand() *cobra.Command {
	s := &recurring{}
	c := &cobra.Command{
		Use:        "create NAME",
		SuggestFor: []string{"add", "book", "new", "reserve"},
		Short:      "Reserve at each occurrence of a rule",
		Long: `Reserve at each occurrence of a rule: at all of them, or at none. With --skip-refused
those for which there is no room are left out, and named.

--rule is an RRULE of RFC 5545 with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, which ends
with COUNT or UNTIL. --start is the local time of the first occurrence in --time-zone,
and is in the rule. Each occurrence begins at this time of day and lasts --duration.
If the clock skips this time on some day, the occurrence begins as much later; if the
time exists twice, at the first.

The other flags are those of 'almanac reservation create'. --dry-run shows each
occurrence with its times in UTC. Each request carries an idempotency key, so that a
repeated request books once.`,
		Example: `  almanac series create lab --rule 'FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;COUNT=60' --start $(date -d 'next monday' +%F)T09:00 --time-zone Europe/Paris --duration 8h
  almanac series create tests --quantity 4 --rule 'FREQ=DAILY;COUNT=30' --start $(date -d 'next monday' +%F)T22:00 --time-zone UTC --duration 6h --skip-refused`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			s.booking.request.Name = args[0]
			return p.bookSeries(c, s)
		},
	}
	flags := c.Flags()
	s.termFlags(flags)
	flags.StringVar(&s.when.Rule, "rule", "", "when it recurs: an RRULE of RFC 5545, in quotes")
	flags.Var(&s.start, "start", "the local time of the first occurrence, such as 2026-12-01T09:00")
	flags.StringVar(&s.when.TimeZone, "time-zone", "", "the time zone of the local times, such as Europe/Paris")
	flags.Var(&s.duration, "duration", "how long each occurrence lasts")
	flags.StringSliceVar(&s.when.Except, "except", nil, "local times or dates without an occurrence (repeatable)")
	flags.StringSliceVar(&s.when.Also, "also", nil, "more local times with one (repeatable)")
	flags.BoolVar(&s.skip, "skip-refused", false, "leave out the occurrences for which there is no room, and book the others")
	for _, flag := range []string{"rule", "start", "time-zone", "duration"} {
		_ = c.MarkFlagRequired(flag) // fails only for a flag that does not exist
	}
	completeTerms(c)
	completeFlag(c, "time-zone", cobra.NoFileCompletions)
	return c
}

// body returns the request of the flags.
func (s *recurring) body(p *process, c *cobra.Command) (v1.SeriesRequest, error) {
	one, err := s.terms(p, c)
	return v1.SeriesRequest{
		Name: one.Name, Kind: one.Kind, HostProperties: one.HostProperties, Quantity: one.Quantity, Resources: one.Resources,
		Affinity: one.Affinity, OnEnd: one.OnEnd, BeforeEnd: one.BeforeEnd, Together: one.Together, SkipRefused: s.skip,
		Rule: s.when.Rule, TimeZone: s.when.TimeZone, LocalStart: string(s.start), Duration: v1.Duration(s.duration), Except: s.when.Except, Also: s.when.Also,
	}, err
}

func (p *process) bookSeries(c *cobra.Command, s *recurring) error {
	req, err := s.body(p, c)
	if err != nil {
		return err
	}
	if s.dryRun {
		return p.listOffered(c, "dry run: nothing is reserved", func(ctx context.Context, almanac *client.Client) (offer v1.SeriesOffer, err error) {
			if req.Together, err = identified(ctx, almanac, req.Together); err != nil {
				return offer, err
			}
			return almanac.OfferSeries(ctx, req)
		})
	}
	return with(p, c, seriesFields, inShows, func(ctx context.Context, almanac *client.Client, out printer[v1.Series]) error {
		var err error
		if req.Together, err = identified(ctx, almanac, req.Together); err != nil {
			return err
		}
		made, err := almanac.CreateSeries(ctx, req, idempotent(s.key))
		if err != nil {
			return err
		}
		if booked := bookedOf(made); len(booked) > 0 {
			p.inform("series %s is booked: %s from %s to %s", made.ID, fault.Counted(len(booked), "occurrence"), booked[0].Local, booked[len(booked)-1].Local)
		}
		p.nameSkipped(made.Refused, "skipped")
		if p.format == "table" && !out.chosen { // 'series show' shows each occurrence
			if out, err = newPrinter(p, seriesSummary, inShows); err != nil {
				return err
			}
		}
		return out.one(made, made)
	})
}

func seriesOfferFields(o v1.OccurrenceOffer) []field {
	return []field{
		{"Occurrence", o.Local, inLists}, {"Start", o.Start, inLists}, {"End", o.End, inLists}, {"Quantity", o.Quantity, inLists},
		{"Hosts", o.Hosts, inLists},
	}
}

// listOffered prints the occurrences that an offer has, and what it leaves out.
func (p *process) listOffered(c *cobra.Command, hint string, ask func(context.Context, *client.Client) (v1.SeriesOffer, error)) error {
	return list(p, c, seriesOfferFields, inLists, func(ctx context.Context, almanac *client.Client) ([]v1.OccurrenceOffer, v1.SeriesOfferAnswer, error) {
		offer, err := ask(ctx, almanac)
		if err == nil {
			p.nameSkipped(offer.Refused, "would be skipped")
			p.inform("%s", hint)
		}
		return offer.Occurrences, v1.SeriesOfferAnswer{Offer: offer}, err
	})
}
