// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

func (p *process) reservationCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reservation",
		Short: "Create, list, change and cancel reservations",
		Long: `Create, list, change and cancel reservations of hosts or instances.

A command accepts the id of a reservation, or its name if no other reservation that
is not over has the same name.`,
		Example: `  almanac reservation create training --quantity 2 --duration 2h --start +1d
  almanac reservation list
  almanac reservation extend training --by 1h`,
	}
	c.AddCommand(
		p.reservationCreateCommand(),
		p.reservationListCommand(),
		p.reservationShowCommand(),
		p.reservationExtendCommand(),
		p.reservationChangeCommand(),
		p.reservationConfirmCommand(),
		p.reservationDeleteCommand(),
		p.reservationImportCommand(),
		p.reservationFeedCommand(),
	)
	return c
}

func reservationFields(r v1.Reservation) []field {
	return []field{
		{"ID", r.ID, inLists}, {"Name", r.Name, inLists}, {"Kind", r.Kind, inLists}, {"Quantity", r.Quantity, inLists},
		{"Status", r.Status, inLists}, {"Start", r.Start, inLists}, {"End", r.End, inLists},
		{"Project", r.ProjectID, inLongLists}, {"User", r.UserID, inLongLists}, {"Policy", r.Policy, inLongLists},
		{"Policy Reason", r.PolicyReason, inShows},
		{"Hosts", r.Hosts, inLongLists}, {"Host Properties", r.HostProperties, inShows}, {"Resources", r.Resources, inShows},
		{"Affinity", r.Affinity, inShows}, {"Together", togetherText(r.Together), inShows}, {"Image", r.Image, inShows},
		{"Image On Hosts", lines(each(r.Images, hostImage)), inShows},
		{"On End", r.OnEnd, inShows}, {"Before End", r.BeforeEnd, inShows}, {"Delayed By Boot", r.DelayedByBoot, inShows},
		{"Notice", r.Notice, inShows}, {"Window Start", r.WindowStart, inShows}, {"Window End", r.WindowEnd, inShows},
		{"Held Until", r.HeldUntil, inLongLists}, {"Waiting", waitText(r.Waiting), inLongLists},
		{"Maintenance", r.Maintenance, inLongLists},
		{"Degraded", r.DegradedReason, inLongLists}, {"Created", r.CreatedAt, inLongLists}, {"Updated", r.UpdatedAt, inShows},
		{"Lease", r.LeaseID, inShows}, {"Series", r.SeriesID, inLongLists}, {"Occurrence", r.Occurrence, inLongLists},
		{"Events", lines(each(r.Events, eventLine)), inShows},
	}
}

// togetherText tells how the hosts lie to each other.
func togetherText(t *v1.Together) string {
	if t == nil {
		return ""
	}
	return reservation.Together{
		By: t.By, Rule: reservation.TogetherRule(t.Rule), Values: t.Values, Preferred: !t.Required, ApartFrom: strings.Join(t.ApartFrom, " "), Broken: !t.Kept,
	}.String()
}

// waitText tells what a reservation waits for.
func waitText(w *v1.Waiting) string {
	if w == nil {
		return ""
	}
	text := "until " + stamp(w.Until)
	if w.Place > 0 {
		text = fmt.Sprintf("place %d of %d, %s", w.Place, w.Of, text)
	}
	if w.Hold > 0 {
		text += "; then held for " + w.Hold.String()
	}
	if w.NextStart != nil {
		text += "; there is room from " + stamp(*w.NextStart) + " on"
	}
	return text
}

func eventLine(e v1.Event) string {
	text := fmt.Sprintf("%s %s %s", stamp(e.Time), e.Type, e.State)
	if e.DoneAt != nil && !e.DoneAt.Equal(e.Time) {
		text += " at " + stamp(*e.DoneAt)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

func offerFields(a v1.OfferAnswer) []field {
	o := a.Offer
	return []field{
		{"Start", o.Start, inLists}, {"End", o.End, inLists}, {"Quantity", o.Quantity, inLists}, {"Kind", o.Kind, inLists},
		{"Policy", o.Policy, inLists}, {"Policy Reason", o.PolicyReason, inLists}, {"Hosts", o.Hosts, inLists}, {"Matched", o.Matched, inLists},
		{"Delayed By Boot", o.DelayedByBoot, inLists}, {"Together", togetherText(o.Together), inShows},
		{"Held Until", o.HeldUntil, inShows}, {"Wait Until", o.WaitUntil, inShows},
	}
}

var reservations = catalog[v1.Reservation]{
	kind: "reservation", command: "almanac reservation list",
	id:   func(r v1.Reservation) string { return r.ID },
	name: func(r v1.Reservation) string { return r.Name },
	live: func(r v1.Reservation) bool { return reservation.Status(r.Status).Live() },
	get: func(ctx context.Context, almanac *client.Client, id string) (v1.Reservation, error) {
		return almanac.GetReservation(ctx, id)
	},
	list: func(ctx context.Context, almanac *client.Client, name string) iter.Seq2[v1.Reservation, error] {
		filter := client.ReservationFilter{Name: name}
		if name == "" {
			filter.Statuses = fault.Texts(reservation.LiveStatuses)
		}
		return almanac.ListReservations(ctx, filter)
	},
}

func (p *process) reservationListCommand() *cobra.Command {
	var filter client.ReservationFilter
	var maintenance bool
	var group, ofSeries string
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List reservations by start",
		Example: `  almanac reservation list
  almanac reservation list --status active,pending --kind host --long
  almanac reservation list -f value -c ID --name training
  almanac reservation list --maintenance --all-projects`,
	}
	listCommand(p, c, reservationFields, func(ctx context.Context, almanac *client.Client) ([]v1.Reservation, v1.Reservations, error) {
		filter.Maintenance = given(c, "maintenance", &maintenance)
		filter.PageSize = most.page()
		if group != "" {
			g, err := groups.find(ctx, almanac, group)
			if err != nil {
				return nil, v1.Reservations{}, err
			}
			filter.LeaseID = g.ID
		}
		if ofSeries != "" {
			s, err := everySeries.find(ctx, almanac, ofSeries)
			if err != nil {
				return nil, v1.Reservations{}, err
			}
			filter.SeriesID = s.ID
		}
		found, err := collect(almanac.ListReservations(ctx, filter), most)
		return found, v1.Reservations{Reservations: found}, err
	})
	flags := c.Flags()
	flags.StringSliceVar(&filter.Statuses, "status", nil, "only reservations with this status (repeatable; default: all except canceled ones)")
	flags.StringVar(&filter.Name, "name", "", "only reservations with exactly this name")
	flags.StringVar(&group, "group", "", "only the reservations of the group with this id or name")
	flags.StringVar(&ofSeries, "series", "", "only the reservations of the series with this id or name")
	flags.StringVar(&filter.Kind, "kind", "", "only reservations of this kind: host or instance")
	flags.BoolVar(&maintenance, "maintenance", false, "only maintenance of hosts, or with =false only what is none (default both)")
	flags.BoolVar(&filter.AllProjects, "all-projects", false, "reservations of all projects (admins only)")
	most.add(c)
	completeFlag(c, "status", oneOf(reservation.Statuses))
	completeFlag(c, "group", groups.complete(p))
	completeFlag(c, "series", everySeries.complete(p))
	completeFlag(c, "kind", oneOf(reservation.Kinds))
	return c
}

// taggedReservation is a reservation with the tag of the answer that shows it.
type taggedReservation struct {
	v1.Reservation
	ETag string `json:"etag"`
}

func (p *process) reservationShowCommand() *cobra.Command {
	return showCommand(p, &cobra.Command{
		Use:   "show ID|NAME",
		Short: "Show a reservation with its hosts and events",
		Long: `Show a reservation with its hosts and events. --if-match of the commands that change it
takes its ETag, so that they change what you have seen and nothing else.`,
		Example: `  almanac reservation show training
  almanac reservation show training -f value -c Hosts
  almanac reservation show training -f value -c ETag`,
		ValidArgsFunction: onlyOne(reservations.complete(p)),
	}, func(r taggedReservation) []field {
		return append(reservationFields(r.Reservation), field{"ETag", r.ETag, inShows})
	}, func(ctx context.Context, almanac *client.Client, what string) (found taggedReservation, err error) {
		found.Reservation, found.ETag, err = reservations.findTagged(ctx, almanac, what)
		return found, err
	})
}

func feedFields(f v1.Feed) []field { return []field{{"URL", f.URL, inLists}} }

func (p *process) reservationFeedCommand() *cobra.Command {
	var urlOnly bool
	c := &cobra.Command{
		Use:   "feed",
		Short: "Show the link of your project's calendar feed",
		Long: `Show the link of your project's calendar feed. A calendar program can read the
project's reservations with it. The link needs no token: keep it secret.`,
		Example: `  almanac reservation feed
  almanac reservation feed --url-only`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if urlOnly {
				p.format, p.columns = "value", nil
			}
			return show(p, c, feedFields, func(ctx context.Context, almanac *client.Client) (v1.Feed, error) { return almanac.Feed(ctx) })
		},
	}
	c.Flags().BoolVar(&urlOnly, "url-only", false, "print only the link, as -f value does")
	return c
}

// awaitActive waits until a reservation is active.
func (p *process) awaitActive(ctx context.Context, almanac *client.Client, r v1.Reservation, most period) (v1.Reservation, error) {
	if r.Waiting == nil {
		p.inform("reservation %s is booked from %s; waiting until it is active", r.ID, stamp(r.Start))
	}
	active := func(r v1.Reservation) (bool, error) {
		switch status := reservation.Status(r.Status); status {
		case reservation.Active:
			return true, nil
		case reservation.Waiting, reservation.Pending, reservation.Starting:
			return false, nil
		default:
			return false, &outcome{exitFailed, fmt.Sprintf("reservation %s is %s and will not become active", r.ID, status)}
		}
	}
	again := func(ctx context.Context, r v1.Reservation) (v1.Reservation, error) {
		return almanac.GetReservation(ctx, r.ID)
	}
	return await(ctx, p, r, most, active, again, func(r v1.Reservation) string {
		if r.Waiting != nil {
			return fmt.Sprintf("reservation %s still waits for room, until %s; 'almanac reservation show %s' shows it", r.ID, stamp(r.Waiting.Until), r.ID)
		}
		return fmt.Sprintf("reservation %s is still %s; it stays booked, and 'almanac reservation show %s' shows it", r.ID, r.Status, r.ID)
	})
}
