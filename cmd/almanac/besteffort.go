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
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

func (p *process) bestEffortCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "besteffort",
		Short: "Queue servers that run on hosts without reservations",
		Long: `Queue servers that run on hosts without reservations.

Best-effort work has no start time: it runs first come, first served, for at most
its duration, on hosts that nothing else needs. When a reservation starts, Almanac
suspends the work and resumes it afterwards; if that fails, the work is restarted
from the beginning. Its servers belong to your project and count against its quota.
Almanac deletes them when their time is up or their guests shut down: store results
elsewhere.

A command accepts the id of a request, or its name if no other request that is not
over has the same name.`,
		Example: `  almanac besteffort submit render --flavor m1.small --image debian-12 --duration 6h --vms 8
  almanac besteffort list
  almanac besteffort show render`,
	}
	c.AddCommand(p.bestEffortSubmitCommand(), p.bestEffortListCommand(), p.bestEffortShowCommand(), p.bestEffortCancelCommand())
	return c
}

func bestEffortFields(r v1.BestEffort) []field {
	return []field{
		{"ID", r.ID, inLists}, {"Name", r.Name, inLists}, {"Status", r.Status, inLists}, {"Position", r.Position, inLists},
		{"Expected Start", r.ExpectedStart, inLists}, {"Running", fmt.Sprintf("%d/%d", running(r), len(r.VMs)), inLists},
		{"Duration", r.Duration, inLists}, {"Flavor", r.Flavor, inLongLists}, {"Image", r.Image, inLongLists},
		{"Parallel", r.Parallel, inLongLists}, {"Project", r.ProjectID, inLongLists}, {"User", r.UserID, inLongLists},
		{"Created", r.CreatedAt, inLongLists}, {"Ended", r.EndedAt, inShows}, {"Networks", strings.Join(r.Networks, ", "), inShows},
		{"VMs", lines(each(r.VMs, bestEffortVM)), inShows},
	}
}

// running returns how many VMs of a request run.
func running(r v1.BestEffort) (n int) {
	for _, vm := range r.VMs {
		if vm.Status == "running" {
			n++
		}
	}
	return n
}

func bestEffortVM(vm v1.BestEffortVM) string {
	text := vm.Status
	if vm.ServerID != "" {
		text += ", server " + vm.ServerID
	}
	if vm.Host != "" {
		text += " on " + vm.Host
	}
	text += ", ran " + vm.Ran.String()
	if vm.ExpectedStart != nil {
		text += ", expected at " + stamp(*vm.ExpectedStart)
	}
	if vm.Reason != "" {
		text += ": " + plain(vm.Reason)
	}
	return text
}

var bestEfforts = catalog[v1.BestEffort]{
	kind: "best-effort request", command: "almanac besteffort list",
	id:   func(r v1.BestEffort) string { return r.ID },
	name: func(r v1.BestEffort) string { return r.Name },
	live: func(r v1.BestEffort) bool { return r.EndedAt == nil && r.Status != string(state.StatusCanceled) },
	get: func(ctx context.Context, almanac *client.Client, id string) (v1.BestEffort, error) {
		return almanac.BestEffort(ctx, id)
	},
	list: func(ctx context.Context, almanac *client.Client, name string) iter.Seq2[v1.BestEffort, error] {
		if name == "" {
			return almanac.ListBestEffort(ctx, client.BestEffortFilter{})
		}
		return almanac.ListBestEffort(ctx, client.BestEffortFilter{All: true, PageSize: largestPage})
	},
}

func (p *process) bestEffortListCommand() *cobra.Command {
	var filter client.BestEffortFilter
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List best-effort work in the order of the queue",
		Example: `  almanac besteffort list
  almanac besteffort list --all --long -f json`,
	}
	listCommand(p, c, bestEffortFields, func(ctx context.Context, almanac *client.Client) ([]v1.BestEffort, v1.BestEfforts, error) {
		filter.PageSize = most.page()
		found, err := collect(almanac.ListBestEffort(ctx, filter), most)
		return found, v1.BestEfforts{Requests: found}, err
	})
	c.Flags().BoolVar(&filter.All, "all", false, "include requests that are over")
	c.Flags().BoolVar(&filter.AllProjects, "all-projects", false, "requests of all projects (admins only)")
	most.add(c)
	return c
}

func (p *process) bestEffortShowCommand() *cobra.Command {
	return showCommand(p, &cobra.Command{
		Use:   "show ID|NAME",
		Short: "Show best-effort work with its servers",
		Example: `  almanac besteffort show render
  almanac besteffort show render -f json`,
		ValidArgsFunction: onlyOne(bestEfforts.complete(p)),
	}, bestEffortFields, bestEfforts.find)
}

func (p *process) bestEffortCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "cancel ID|NAME...",
		Aliases: []string{"delete"},
		Short:   "Cancel best-effort work",
		Long: `Cancel best-effort work. Almanac deletes its servers, without confirmation. If one
request fails, the command continues with the others.`,
		Example: `  almanac besteffort cancel render
  almanac besteffort cancel render encode`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: bestEfforts.complete(p),
		RunE: func(c *cobra.Command, args []string) error {
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			_, failure := eachOf(p, c, args, func(what string) (v1.BestEffort, error) {
				r, err := bestEfforts.find(c.Context(), almanac, what)
				if err == nil {
					err = almanac.CancelBestEffort(c.Context(), r.ID)
				}
				if err == nil {
					p.inform("best-effort request %s %s is canceled; Almanac deletes its servers", r.ID, plain(r.Name))
				}
				return r, err
			})
			return failure
		},
	}
}
