// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

func (p *process) groupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "group",
		Short: "Reserve several kinds of hosts and instances together, or nothing",
		Long: `Reserve several kinds of hosts and instances together, or nothing.

The reservations of a group have the same times and are booked, moved and canceled
together. Each is a reservation of its own: 'almanac reservation show' shows it, with
the id of its group as its lease.

A command accepts the id of a group, or its name if no other group that is not over has
the same name.`,
		Example: `  almanac group create cluster --duration 2h --part '{"quantity": {"min": 2, "max": 4}}' --part '{"kind": "instance", "quantity": 20, "resources": {"vcpus": 2}}'`,
	}
	c.AddCommand(p.groupCreateCommand(), p.groupListCommand(), p.groupShowCommand(), p.groupChangeCommand(), p.groupDeleteCommand())
	return c
}

func groupFields(g v1.Group) []field {
	return []field{
		{"ID", g.ID, inLists}, {"Name", g.Name, inLists}, {"Start", g.Start, inLists}, {"End", g.End, inLists},
		{"Reservations", lines(each(g.Reservations, reservationLine)), inLists}, {"Project", g.ProjectID, inLongLists}, {"User", g.UserID, inLongLists},
		{"Created", g.CreatedAt, inLongLists}, {"Updated", g.UpdatedAt, inShows},
	}
}

func reservationLine(r v1.Reservation) string {
	return fmt.Sprintf("%s %s %s", r.ID, fault.Counted(r.Quantity, r.Kind), r.Status)
}

func groupOfferFields(a v1.GroupOfferAnswer) []field {
	return []field{
		{"Start", a.Offer.Start, inLists}, {"End", a.Offer.End, inLists}, {"Parts", lines(each(a.Offer.Parts, partLine)), inLists},
		{"Delayed By Boot", a.Offer.DelayedByBoot, inLists},
	}
}

func partLine(o v1.PartOffer) string {
	text := fault.Counted(o.Quantity, o.Kind)
	if len(o.Hosts) > 0 {
		text += " on " + strings.Join(o.Hosts, ", ")
	}
	return text
}

var groups = catalog[v1.Group]{
	kind: "group", command: "almanac group list",
	id:   func(g v1.Group) string { return g.ID },
	name: func(g v1.Group) string { return g.Name },
	live: func(g v1.Group) bool {
		return slices.ContainsFunc(g.Reservations, func(r v1.Reservation) bool { return reservation.Status(r.Status).Live() })
	},
	get: func(ctx context.Context, almanac *client.Client, id string) (v1.Group, error) {
		return almanac.GetGroup(ctx, id)
	},
	list: func(ctx context.Context, almanac *client.Client, name string) iter.Seq2[v1.Group, error] {
		return almanac.ListGroups(ctx, client.GroupFilter{Name: name})
	},
}

// largestGroupPage is the largest number of groups in one page of the API.
const largestGroupPage = 50

func (p *process) groupListCommand() *cobra.Command {
	var filter client.GroupFilter
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List groups by start",
		Example: `  almanac group list
  almanac group list -f value -c ID --name cluster`,
	}
	listCommand(p, c, groupFields, func(ctx context.Context, almanac *client.Client) ([]v1.Group, v1.Groups, error) {
		filter.PageSize = min(most.page(), largestGroupPage)
		found, err := collect(almanac.ListGroups(ctx, filter), most)
		return found, v1.Groups{Groups: found}, err
	})
	flags := c.Flags()
	flags.StringVar(&filter.Name, "name", "", "only groups with exactly this name")
	flags.BoolVar(&filter.AllProjects, "all-projects", false, "groups of all projects (admins only)")
	most.add(c)
	return c
}

// grouping has the flags of "group create".
type grouping struct {
	request             v1.GroupRequest // fields that flags set directly
	start, end          moment
	duration, beforeEnd period
	parts               []string
	dryRun              bool
}

func (p *process) groupCreateCommand() *cobra.Command {
	g := &grouping{}
	c := &cobra.Command{
		Use:        "create NAME",
		SuggestFor: []string{"add", "book", "new", "reserve"},
		Short:      "Reserve several kinds together, or nothing",
		Long: `Reserve several kinds together, or nothing.

Each --part is what one reservation of the group has, as JSON or @FILE that contains
it: {"kind", "quantity", "host_properties", "resources", "affinity", "image"}. Its
quantity is a number, or a range such as {"min": 2, "max": 4}: as many as there is
room for, and at least the smaller number. The order of the parts decides only which
of them has more, if there is not room for the most of all.

With --duration alone the group starts now. --start and --duration together fix its
time. With --duration and --end it starts as early as there is room for all of it.`,
		Example: `  almanac group create cluster --duration 2h --part '{"quantity": 4, "host_properties": ["=", "$gpu", "a100"]}' --part '{"quantity": 1}'
  almanac group create web --start +1d --duration 8h --part '{"kind": "instance", "quantity": {"min": 10, "max": 20}, "resources": {"vcpus": 2}}' --dry-run`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			g.request.Name = args[0]
			return p.bookGroup(c, g)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&g.parts, "part", nil, "what one reservation of the group has: JSON, or @FILE that contains it (repeatable)")
	flags.Var(&g.duration, "duration", "how long; required without --end")
	flags.Var(&g.start, "start", "the earliest start (default now)")
	flags.Var(&g.end, "end", "the latest end")
	flags.StringVar(&g.request.OnEnd, "on-end", "", "action on the instances at the end: delete, shelve, stop or leave, if the cloud offers it")
	flags.Var(&g.beforeEnd, "before-end", "how long before the end to send a warning; 0 is never")
	flags.BoolVar(&g.dryRun, "dry-run", false, "only show what would be booked")
	_ = c.MarkFlagRequired("part") // fails only for a flag that does not exist
	c.MarkFlagsOneRequired("duration", "end")
	completeFlag(c, "on-end", oneOf(reservation.OnEnds))
	return c
}

func (p *process) bookGroup(c *cobra.Command, g *grouping) error {
	req := g.request
	req.StartTime, req.EndTime = g.start.ahead(), given(c, "end", &g.end.at)
	req.Duration, req.BeforeEnd = given(c, "duration", (*v1.Duration)(&g.duration)), given(c, "before-end", (*v1.Duration)(&g.beforeEnd))
	for _, text := range g.parts {
		part, err := p.part(text)
		if err != nil {
			return err
		}
		req.Parts = append(req.Parts, part)
	}
	if g.dryRun {
		return show(p, c, groupOfferFields, func(ctx context.Context, almanac *client.Client) (offer v1.GroupOfferAnswer, err error) {
			if offer.Offer, err = almanac.OfferGroup(ctx, req); err == nil {
				p.inform("dry run: nothing is reserved")
			}
			return offer, err
		})
	}
	return show(p, c, groupFields, func(ctx context.Context, almanac *client.Client) (v1.Group, error) {
		return almanac.CreateGroup(ctx, req)
	})
}

// part reads a --part.
func (p *process) part(text string) (part v1.GroupPart, err error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		content, err := p.read(name)
		if err != nil {
			return part, err
		}
		text = string(content)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&part)
	if _, more := decoder.Token(); err == nil && more != io.EOF {
		err = errors.New("there is more after the first object: write a --part for each")
	}
	if err != nil {
		return part, fault.Field("--part", `%s: %v; write one object such as '{"quantity": 2}', in quotes`, strings.TrimSpace(text), err)
	}
	return part, nil
}

// taggedGroup is a group with the tag of the answer that shows it.
type taggedGroup struct {
	v1.Group
	ETag string `json:"etag"`
}

func (p *process) groupShowCommand() *cobra.Command {
	return showCommand(p, &cobra.Command{
		Use:   "show ID|NAME",
		Short: "Show a group and its reservations",
		Long: `Show a group and its reservations. --if-match of the commands that change it takes its
ETag, so that they change what you have seen and nothing else.`,
		Example: `  almanac group show cluster
  almanac group show cluster -f value -c ETag`,
		ValidArgsFunction: onlyOne(groups.complete(p)),
	}, func(g taggedGroup) []field {
		return append(groupFields(g.Group), field{"ETag", g.ETag, inShows})
	}, func(ctx context.Context, almanac *client.Client, what string) (found taggedGroup, err error) {
		found.Group, found.ETag, err = groups.findTagged(ctx, almanac, what)
		return found, err
	})
}

func (p *process) groupChangeCommand() *cobra.Command {
	var start, end moment
	var beforeEnd period
	var name, onEnd string
	var dryRun bool
	var only expected
	c := &cobra.Command{
		Use:        "change ID|NAME",
		Aliases:    []string{"set", "update"},
		SuggestFor: []string{"rename", "move", "extend", "edit", "modify"},
		Short:      "Change the times and the end of all reservations of a group, or its name",
		Long: `Change the times and the end of all reservations of a group, or its name. A group that
is renamed does not rename its reservations. A refused change leaves all of them as
they are. 'almanac reservation change' changes what one of them has alone, such as its
quantity.`,
		Example: `  almanac group change cluster --end +1d --dry-run
  almanac group change cluster --on-end shelve --before-end 30m
  almanac group change cluster --end +2d --if-match "$(almanac group show cluster -f value -c ETag)"`,
		Args: needsOne("ID or NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if start.now || end.now {
				return fault.New(fault.Invalid, "a group can only move to a future time; write +1m, or delete the group to end it now")
			}
			change := v1.GroupChange{
				Name: given(c, "name", &name), StartTime: given(c, "start", &start.at), EndTime: given(c, "end", &end.at),
				OnEnd: given(c, "on-end", &onEnd), BeforeEnd: given(c, "before-end", (*v1.Duration)(&beforeEnd)),
			}
			if dryRun {
				return show(p, c, groupOfferFields, func(ctx context.Context, almanac *client.Client) (offer v1.GroupOfferAnswer, err error) {
					almanac = only.of(almanac)
					g, err := groups.find(ctx, almanac, args[0])
					if err != nil {
						return offer, err
					}
					if offer.Offer, err = almanac.OfferGroupChange(ctx, g.ID, change); err == nil {
						p.inform("dry run: nothing is changed")
					}
					return offer, err
				})
			}
			return show(p, c, groupFields, func(ctx context.Context, almanac *client.Client) (v1.Group, error) {
				almanac = only.of(almanac)
				g, err := groups.find(ctx, almanac, args[0])
				if err != nil {
					return g, err
				}
				return almanac.ChangeGroup(ctx, g.ID, change)
			})
		},
		ValidArgsFunction: onlyOne(groups.complete(p)),
	}
	flags := c.Flags()
	flags.StringVar(&name, "name", "", "the new name")
	flags.Var(&start, "start", "the new start")
	flags.Var(&end, "end", "the new end")
	flags.StringVar(&onEnd, "on-end", "", "action on the instances at the end: delete, shelve, stop or leave, if the cloud offers it")
	flags.Var(&beforeEnd, "before-end", "how long before the end to send a warning; 0 is never")
	flags.BoolVar(&dryRun, "dry-run", false, "only show what would be booked")
	only.add(c, "group")
	c.MarkFlagsOneRequired("name", "start", "end", "on-end", "before-end")
	return c
}

func (p *process) groupDeleteCommand() *cobra.Command {
	var dryRun, yes bool
	var only expected
	c := &cobra.Command{
		Use:        "delete ID|NAME",
		Aliases:    []string{"cancel"},
		SuggestFor: []string{"remove", "rm", "end", "release"},
		Short:      "Cancel all reservations of a group",
		Long: `Cancel all reservations of a group. Before servers are deleted, the command lists them
and asks for confirmation; without a terminal it needs --yes. --dry-run only lists them.`,
		Example:           `  almanac group delete cluster --dry-run`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(groups.complete(p)),
		RunE: func(c *cobra.Command, args []string) error {
			return with(p, c, groupFields, inShows, func(ctx context.Context, almanac *client.Client, _ printer[v1.Group]) error {
				g, err := groups.find(ctx, almanac, args[0])
				if err != nil {
					return err
				}
				return p.deleteGroup(ctx, only.of(almanac), g, dryRun, yes)
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be canceled, and what would happen to its servers")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "delete servers without confirmation")
	only.add(c, "group")
	return c
}

// deleteGroup cancels a group, unless that deletes servers and the user does not confirm it.
func (p *process) deleteGroup(ctx context.Context, almanac *client.Client, g v1.Group, dryRun, yes bool) error {
	if !yes || dryRun {
		foreseen, err := almanac.OfferGroupDeletion(ctx, g.ID)
		if err != nil {
			return err
		}
		deleted := 0
		for _, one := range foreseen.Reservations {
			p.inform("reservation %s %s, which is %s, would be canceled", one.ID, plain(one.Name), one.Status)
			deleted += p.nameServers(one)
		}
		if dryRun {
			p.inform("dry run: nothing is canceled")
			return nil
		}
		if deleted > 0 && !p.agreed("group "+g.ID+" "+plain(g.Name), deleted) {
			return fault.New(fault.Conflict, "group %s %s stays: canceling it would delete servers; add --yes to delete them", g.ID, plain(g.Name))
		}
	}
	if err := almanac.DeleteGroup(ctx, g.ID); err != nil {
		return err
	}
	p.inform("group %s %s is canceled", g.ID, plain(g.Name))
	return nil
}
