package main

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func (p *process) reservationCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reservation",
		Short: "Reserve hosts or instances, and look after reservations",
		Long: `Reserve hosts or instances, and look after reservations.

Where a reservation is expected its id may be given, or its name if no other one
that is not over has it.`,
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
		p.reservationDeleteCommand(),
		p.reservationImportCommand(),
		p.reservationFeedCommand(),
	)
	return c
}

var reservationColumns = []column[v1.Reservation]{
	{"ID", func(r v1.Reservation) any { return r.ID }, inLists},
	{"Name", func(r v1.Reservation) any { return r.Name }, inLists},
	{"Kind", func(r v1.Reservation) any { return r.Kind }, inLists},
	{"Quantity", func(r v1.Reservation) any { return r.Quantity }, inLists},
	{"Status", func(r v1.Reservation) any { return r.Status }, inLists},
	{"Start", func(r v1.Reservation) any { return r.Start }, inLists},
	{"End", func(r v1.Reservation) any { return r.End }, inLists},
	{"Project", func(r v1.Reservation) any { return r.ProjectID }, inLongLists},
	{"User", func(r v1.Reservation) any { return r.UserID }, inLongLists},
	{"Policy", func(r v1.Reservation) any { return r.Policy }, inLongLists},
	{"Hosts", func(r v1.Reservation) any { return r.Hosts }, inLongLists},
	{"Host Properties", func(r v1.Reservation) any { return r.HostProperties }, inShows},
	{"Resources", func(r v1.Reservation) any { return r.Resources }, inShows},
	{"Affinity", func(r v1.Reservation) any { return r.Affinity }, inShows},
	{"Image", func(r v1.Reservation) any { return r.Image }, inShows},
	{"Image On Hosts", func(r v1.Reservation) any { return lines(each(r.Images, hostImage)) }, inShows},
	{"On End", func(r v1.Reservation) any { return r.OnEnd }, inShows},
	{"Before End", func(r v1.Reservation) any { return r.BeforeEnd }, inShows},
	{"Delayed By Boot", func(r v1.Reservation) any { return r.DelayedByBoot }, inShows},
	{"Degraded", func(r v1.Reservation) any { return r.DegradedReason }, inLongLists},
	{"Created", func(r v1.Reservation) any { return r.CreatedAt }, inLongLists},
	{"Updated", func(r v1.Reservation) any { return r.UpdatedAt }, inShows},
	{"Events", func(r v1.Reservation) any { return lines(each(r.Events, event)) }, inShows},
}

func event(e v1.Event) string {
	text := fmt.Sprintf("%s %s %s", stamp(e.Time), e.Type, e.State)
	if e.DoneAt != nil && !e.DoneAt.Equal(e.Time) {
		text += " at " + stamp(*e.DoneAt)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

var offerColumns = []column[v1.Offer]{
	{"Start", func(o v1.Offer) any { return o.Start }, inLists},
	{"End", func(o v1.Offer) any { return o.End }, inLists},
	{"Quantity", func(o v1.Offer) any { return o.Quantity }, inLists},
	{"Kind", func(o v1.Offer) any { return o.Kind }, inLists},
	{"Policy", func(o v1.Offer) any { return o.Policy }, inLists},
	{"Hosts", func(o v1.Offer) any { return o.Hosts }, inLists},
	{"Matched", func(o v1.Offer) any { return o.Matched }, inLists},
	{"Delayed By Boot", func(o v1.Offer) any { return o.DelayedByBoot }, inLists},
}
