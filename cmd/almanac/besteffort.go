package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

func (p *process) bestEffortCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "besteffort",
		Short: "Queue servers that run where reservations leave room",
		Long: `Queue servers that run where reservations leave room.

Best-effort work has no start time: it runs first come, first served, for at most
its duration, on hosts that nobody else needs. Where a reservation starts it is
suspended, and resumed afterwards; where that fails it begins anew. Its servers are
yours, in your project and quota, and are deleted when their time is up or their
guests shut down: keep what matters elsewhere.

Where a request is expected its id may be given, or its name if no other one that is
not over has it.`,
		Example: `  almanac besteffort submit render --flavor m1.small --image debian-12 --duration 6h --vms 8
  almanac besteffort list
  almanac besteffort show render`,
	}
	c.AddCommand(p.bestEffortSubmitCommand(), p.bestEffortListCommand(), p.bestEffortShowCommand(), p.bestEffortCancelCommand())
	return c
}

var bestEffortColumns = []column[v1.BestEffort]{
	{"ID", func(r v1.BestEffort) any { return r.ID }, inLists},
	{"Name", func(r v1.BestEffort) any { return r.Name }, inLists},
	{"Status", func(r v1.BestEffort) any { return r.Status }, inLists},
	{"Position", func(r v1.BestEffort) any { return r.Position }, inLists},
	{"Expected Start", func(r v1.BestEffort) any { return r.ExpectedStart }, inLists},
	{"Running", func(r v1.BestEffort) any { return fmt.Sprintf("%d/%d", runs(r), len(r.VMs)) }, inLists},
	{"Duration", func(r v1.BestEffort) any { return r.Duration }, inLists},
	{"Flavor", func(r v1.BestEffort) any { return r.Flavor }, inLongLists},
	{"Image", func(r v1.BestEffort) any { return r.Image }, inLongLists},
	{"Parallel", func(r v1.BestEffort) any { return r.Parallel }, inLongLists},
	{"Project", func(r v1.BestEffort) any { return r.ProjectID }, inLongLists},
	{"User", func(r v1.BestEffort) any { return r.UserID }, inLongLists},
	{"Created", func(r v1.BestEffort) any { return r.CreatedAt }, inLongLists},
	{"Ended", func(r v1.BestEffort) any { return r.EndedAt }, inShows},
	{"Networks", func(r v1.BestEffort) any { return strings.Join(r.Networks, ", ") }, inShows},
	{"VMs", func(r v1.BestEffort) any { return lines(each(r.VMs, bestEffortVM)) }, inShows},
}

// runs is how many VMs of a request run.
func runs(r v1.BestEffort) (n int) {
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

func (p *process) bestEffortListCommand() *cobra.Command {
	var filter client.BestEffortFilter
	var limit int
	var long bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List best-effort work in the order of the queue",
		Example: `  almanac besteffort list
  almanac besteffort list --all --long -f json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, bestEffortColumns, listed(long))
			if err != nil {
				return err
			}
			if filter.PageSize, err = pageSize(limit); err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := collect(almanac.ListBestEffort(c.Context(), filter), limit)
			if err != nil {
				return err
			}
			return out.list(found, v1.BestEfforts{Requests: found})
		},
	}
	flags := c.Flags()
	flags.BoolVar(&filter.All, "all", false, "those that are over too")
	flags.BoolVar(&filter.AllProjects, "all-projects", false, "those of all projects (admins)")
	flags.IntVar(&limit, "limit", 0, "at most this many; 0 is all")
	flags.BoolVar(&long, "long", false, "print more columns")
	return c
}

func (p *process) bestEffortShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID|NAME",
		Short: "Show best-effort work with its servers",
		Example: `  almanac besteffort show render
  almanac besteffort show render -f json`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: p.completeOneBestEffort,
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, bestEffortColumns, inShows)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := findBestEffort(c.Context(), almanac, args[0])
			if err != nil {
				return err
			}
			return out.one(found, found)
		},
	}
}

func (p *process) bestEffortCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID|NAME...",
		Short: "Give best-effort work up, and delete its servers",
		Long: `Give best-effort work up, and delete its servers. What fails does not keep the others
from being cancelled. Nothing is asked.`,
		Example: `  almanac besteffort cancel render
  almanac besteffort cancel render encode`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeBestEffort,
		RunE: func(c *cobra.Command, args []string) error {
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			var failure error
			for _, what := range args {
				r, err := findBestEffort(c.Context(), almanac, what)
				if err == nil {
					err = almanac.CancelBestEffort(c.Context(), r.ID)
				}
				if err != nil {
					p.report(c, err)
					failure = cmp.Or(failure, error(&outcome{code: codeOf(err)}))
					continue
				}
				p.inform("best-effort request %s %s is cancelled; its servers are deleted", r.ID, plain(r.Name))
			}
			return failure
		},
	}
}

// findBestEffort gives the request with an id, or the one with a name. Of several with the
// name it is the one that is not over yet.
func findBestEffort(ctx context.Context, c *client.Client, what string) (v1.BestEffort, error) {
	found, err := c.BestEffort(ctx, what)
	if failed, ok := errors.AsType[*client.Error](err); !ok || failed.Status != http.StatusNotFound {
		return found, err
	}
	if _, isID := uuid.Parse(what); isID == nil {
		return v1.BestEffort{}, err
	}
	var named, open []v1.BestEffort
	for r, err := range c.ListBestEffort(ctx, client.BestEffortFilter{All: true, PageSize: largestPage}) {
		if err != nil {
			return v1.BestEffort{}, err
		}
		if r.Name != what {
			continue
		}
		named = append(named, r)
		if r.EndedAt == nil && r.Status != string(state.StatusCancelled) {
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		open = named
	}
	switch len(open) {
	case 0:
		return v1.BestEffort{}, fault.New(fault.NotFound, "there is no best-effort request with the id or name %q; 'almanac besteffort list' lists yours", what)
	case 1:
		return open[0], nil
	}
	ids := each(open, func(r v1.BestEffort) string { return r.ID })
	return v1.BestEffort{}, fault.New(fault.Invalid, "%d best-effort requests have the name %q; give the id of one: %s", len(ids), what, strings.Join(ids, ", "))
}

// completeBestEffort offers ids and names of best-effort work.
func (p *process) completeBestEffort(c *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(c, func(ctx context.Context, almanac *client.Client) ([]cobra.Completion, error) {
		found, err := collect(almanac.ListBestEffort(ctx, client.BestEffortFilter{}), mostCompletions)
		var offers []cobra.Completion
		for _, r := range found {
			if strings.HasPrefix(r.ID, begun) {
				offers = append(offers, cobra.CompletionWithDesc(r.ID, plain(r.Name)))
			}
			if strings.HasPrefix(r.Name, begun) && plain(r.Name) == r.Name {
				offers = append(offers, cobra.CompletionWithDesc(r.Name, r.ID))
			}
		}
		return offers, err
	})
}

// completeOneBestEffort offers best-effort work for a command that takes one.
func (p *process) completeOneBestEffort(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeBestEffort(c, args, begun)
}
