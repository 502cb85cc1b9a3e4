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

func (p *process) reservationExtendCommand() *cobra.Command {
	var by period
	var until moment
	var dryRun bool
	var only expected
	c := &cobra.Command{
		Use:        "extend ID|NAME",
		SuggestFor: []string{"prolong"},
		Short:      "Extend a reservation",
		Example: `  almanac reservation extend training --by 2h
  almanac reservation extend training --until +1d --dry-run`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(reservations.complete(p)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.change(c, args[0], dryRun, only, func(r v1.Reservation) (v1.ReservationChange, error) {
				end := until.at
				if end.IsZero() {
					end = r.End.Add(by.time())
				}
				if !end.After(r.End) {
					return v1.ReservationChange{}, fault.New(fault.Invalid,
						"the reservation ends at %s; choose a later end, or shorten it with 'almanac reservation change --end'", stamp(r.End))
				}
				return v1.ReservationChange{EndTime: &end}, nil
			})
		},
	}
	c.Flags().Var(&by, "by", "how much longer")
	c.Flags().Var(&until, "until", "the new end")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be booked")
	only.add(c, "reservation")
	c.MarkFlagsMutuallyExclusive("by", "until")
	c.MarkFlagsOneRequired("by", "until")
	return c
}

func (p *process) reservationChangeCommand() *cobra.Command {
	var start, end moment
	var name, properties, onEnd, affinity string
	var size v1.Resources
	var beforeEnd, notice period
	var quantity int
	var dryRun bool
	var only expected
	c := &cobra.Command{
		Use:        "change ID|NAME",
		Aliases:    []string{"set", "update"},
		SuggestFor: []string{"rename", "move", "edit", "modify", "shrink", "grow", "unset"},
		Short:      "Rename, move, grow or shrink a reservation, or change its terms",
		Long: `Rename, move, grow or shrink a reservation, or change which hosts it has and what
happens at its end. Values without a flag stay as they are, and a refused change
leaves the whole reservation as it is. The start, and the size and affinity of
instances, can change until the reservation begins; from then on its hosts stay,
and must all pass a new filter.`,
		Example: `  almanac reservation change training --quantity 4
  almanac reservation change training --start +1d --end +1d3h --dry-run
  almanac reservation change training --name course --if-match "$(almanac reservation show training -f value -c ETag)"
  almanac reservation change training --properties '[">=", "$memory_mb", 8192]' --before-end 30m
  almanac reservation change training --properties ''`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(reservations.complete(p)),
		RunE: func(c *cobra.Command, args []string) error {
			if start.now || end.now {
				return fault.New(fault.Invalid, "a reservation can only move to a future time; write +1m, or delete the reservation to end it now")
			}
			filter, err := p.filter(properties)
			if err != nil {
				return err
			}
			if filter == nil && c.Flags().Changed("properties") {
				filter = json.RawMessage(`""`)
			}
			return p.change(c, args[0], dryRun, only, func(r v1.Reservation) (v1.ReservationChange, error) {
				return v1.ReservationChange{
					Name:           given(c, "name", &name),
					Quantity:       given(c, "quantity", &quantity),
					StartTime:      given(c, "start", &start.at),
					EndTime:        given(c, "end", &end.at),
					HostProperties: filter,
					OnEnd:          given(c, "on-end", &onEnd),
					BeforeEnd:      given(c, "before-end", (*v1.Duration)(&beforeEnd)),
					Resources:      resized(c, r.Resources, size),
					Affinity:       given(c, "affinity", &affinity),
					Notice:         given(c, "notice", (*v1.Duration)(&notice)),
				}, nil
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&name, "name", "", "the new name")
	flags.IntVar(&quantity, "quantity", 0, "new number of hosts or instances")
	flags.Var(&start, "start", "the new start")
	flags.Var(&end, "end", "the new end")
	flags.StringVar(&properties, "properties", "", "new filter that hosts must pass: JSON, or @FILE that contains it; empty removes the filter")
	flags.StringVar(&onEnd, "on-end", "", "new action on the instances at the end: delete, shelve, stop or leave, if the cloud offers it")
	flags.Var(&beforeEnd, "before-end", "how long before the end to send a warning; 0 is never")
	flags.Int64Var(&size.VCPUs, "vcpus", 0, "new VCPUs of one instance")
	flags.Int64Var(&size.MemoryMB, "memory-mb", 0, "new memory of one instance in MB")
	flags.Int64Var(&size.DiskGB, "disk-gb", 0, "new disk of one instance in GB")
	flags.StringVar(&affinity, "affinity", "", "new placement of the instances on hosts: none, same or different")
	flags.Var(&notice, "notice", "new notice of a movable reservation; 0 fixes its time")
	flags.BoolVar(&dryRun, "dry-run", false, "only show what would be booked")
	only.add(c, "reservation")
	c.MarkFlagsOneRequired("name", "quantity", "start", "end", "properties", "on-end", "before-end", "vcpus", "memory-mb", "disk-gb", "affinity", "notice")
	completeFlag(c, "on-end", oneOf(reservation.OnEnds))
	completeFlag(c, "affinity", oneOf([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}))
	return c
}

// wanted returns the time that a change asks for, or the present one if it asks for none.
func wanted(asked *time.Time, present time.Time) time.Time {
	if asked != nil {
		return *asked
	}
	return present
}

// resized returns the present size of one instance with those amounts of another one that flags set; nil if none does.
func resized(c *cobra.Command, present *v1.Resources, asked v1.Resources) *v1.Resources {
	var size v1.Resources
	if present != nil {
		size = *present
	}
	changed := false
	for _, amount := range []struct {
		flag  string
		place *int64
		value int64
	}{{"vcpus", &size.VCPUs, asked.VCPUs}, {"memory-mb", &size.MemoryMB, asked.MemoryMB}, {"disk-gb", &size.DiskGB, asked.DiskGB}} {
		if c.Flags().Changed(amount.flag) {
			*amount.place, changed = amount.value, true
		}
	}
	if !changed {
		return nil
	}
	return &size
}

// given returns the value of a flag if the flag is set, else nil.
func given[T any](c *cobra.Command, flag string, value *T) *T {
	if !c.Flags().Changed(flag) {
		return nil
	}
	return value
}

// change finds a reservation, decides how to change it, and makes or offers the change.
func (p *process) change(c *cobra.Command, what string, dryRun bool, only expected, decide func(v1.Reservation) (v1.ReservationChange, error)) error {
	find := func(ctx context.Context, almanac *client.Client) (id string, change v1.ReservationChange, err error) {
		found, err := reservations.find(ctx, almanac, what)
		if err == nil {
			change, err = decide(found)
		}
		p.length = wanted(change.EndTime, found.End).Sub(wanted(change.StartTime, found.Start))
		return found.ID, change, err
	}
	if dryRun {
		return show(p, c, offerFields, func(ctx context.Context, almanac *client.Client) (offer v1.OfferAnswer, err error) {
			almanac = only.of(almanac)
			id, change, err := find(ctx, almanac)
			if err != nil {
				return offer, err
			}
			if offer.Offer, err = almanac.OfferChange(ctx, id, change); err == nil {
				p.inform("dry run: nothing is changed")
			}
			return offer, err
		})
	}
	return show(p, c, reservationFields, func(ctx context.Context, almanac *client.Client) (v1.Reservation, error) {
		almanac = only.of(almanac)
		id, change, err := find(ctx, almanac)
		if err != nil {
			return v1.Reservation{}, err
		}
		return almanac.ChangeReservation(ctx, id, change)
	})
}
