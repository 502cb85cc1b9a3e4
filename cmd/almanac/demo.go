// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

func (p *process) demoCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "demo",
		Short: "Use a simulated cloud, as almanacd demo has one",
	}
	server := &cobra.Command{
		Use:   "server",
		Short: "Create, list and delete servers of a simulated cloud",
		Long: `Create, list and delete servers of a simulated cloud. On OpenStack, Nova does this.

A command accepts the id of a server, or its name if no other server has it.`,
		Example: `  almanac demo server create web --flavor medium
  almanac demo server create train --flavor large --hint reservation=training
  almanac demo server create spot --flavor large --preemptible
  almanac demo server list
  almanac demo server delete spot`,
	}
	server.AddCommand(p.demoCreateCommand(), p.demoListCommand(), p.demoDeleteCommand())
	group.AddCommand(server)
	return group
}

func demoFields(s v1.DemoServer) []field {
	return []field{
		{"ID", s.ID, inLongLists}, {"Name", s.Name, inLists}, {"Status", s.Status, inLists}, {"Task", s.Task, inLists}, {"Host", s.Host, inLists},
		{"Flavor", s.Flavor, inLists}, {"Preemptible", s.Preemptible, inLists}, {"Reservation", s.ReservationID, inLists},
		{"Image", s.Image, inLongLists}, {"Project", s.ProjectID, inLongLists}, {"Created", s.CreatedAt, inLongLists}, {"Fault", s.Fault, inShows},
	}
}

var demoServers = catalog[v1.DemoServer]{
	kind: "server", command: "almanac demo server list",
	id:   func(s v1.DemoServer) string { return s.ID },
	name: func(s v1.DemoServer) string { return s.Name },
	live: func(s v1.DemoServer) bool { return s.Task != "deleting" },
	get: func(ctx context.Context, almanac *client.Client, id string) (v1.DemoServer, error) {
		all, err := almanac.DemoServers(ctx)
		for _, s := range all.Servers {
			if s.ID == id {
				return s, nil
			}
		}
		if err == nil {
			err = &client.Error{Status: http.StatusNotFound, Kind: fault.NotFound, Message: fmt.Sprintf("there is no server %s", id)}
		}
		return v1.DemoServer{}, err
	},
	list: func(ctx context.Context, almanac *client.Client, _ string) iter.Seq2[v1.DemoServer, error] {
		return func(yield func(v1.DemoServer, error) bool) {
			all, err := almanac.DemoServers(ctx)
			if err != nil {
				yield(v1.DemoServer{}, err)
				return
			}
			for _, s := range all.Servers {
				if !yield(s, nil) {
					return
				}
			}
		}
	},
}

func (p *process) demoCreateCommand() *cobra.Command {
	var r v1.DemoServerRequest
	var hints []string
	var wait bool
	waitTime := period(120)
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a server; Almanac chooses its host as it does for Nova",
		Long: `Create a server. Almanac chooses its host as it does for Nova, and 'almanac decision
show' tells why. If there is no host, the server is in ERROR and its fault tells why;
the exit code is 5 then.

The hint reservation accepts the id of a reservation or its name.`,
		Example: `  almanac demo server create web --flavor medium
  almanac demo server create train --flavor large --hint reservation=training --wait
  almanac demo server create spot --flavor large --preemptible`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			return show(p, c, demoFields, func(ctx context.Context, almanac *client.Client) (made v1.DemoServer, err error) {
				if r.Hints, err = hintsOf(ctx, almanac, hints); err != nil {
					return made, err
				}
				if made, err = almanac.CreateDemoServer(ctx, r); err == nil && wait {
					made, err = p.awaitServer(ctx, almanac, made, waitTime)
				}
				if err == nil && made.Status == "ERROR" {
					err = &outcome{exitNoRoom, fmt.Sprintf("server %s is in ERROR: %s", made.ID, plain(made.Fault))}
				}
				return made, err
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&r.Flavor, "flavor", "small", "name or id of a flavor: small, medium, large, gpu, or that of a reservation")
	flags.StringVar(&r.Image, "image", "debian-13", "name or id of an image: debian-13, cuda-12 or genomes")
	flags.StringArrayVar(&hints, "hint", nil, "scheduler hint, KEY=VALUE (repeatable)")
	flags.BoolVar(&r.Preemptible, "preemptible", false, "the server may be evicted for one that is not")
	flags.StringVar(&r.ProjectID, "project", "", "project of the server (default: yours)")
	flags.BoolVar(&wait, "wait", false, "wait until the server runs")
	flags.Var(&waitTime, "wait-timeout", "maximum time to wait")
	return c
}

// hintsOf returns the hints of the flags. The name of a reservation becomes its id.
func hintsOf(ctx context.Context, almanac *client.Client, given []string) (map[string]string, error) {
	hints := map[string]string{}
	for _, hint := range given {
		key, value, found := strings.Cut(hint, "=")
		if !found || key == "" {
			return nil, fault.Field("--hint", "must be KEY=VALUE, not %q", hint)
		}
		if key == placing.ReservationHint {
			r, err := reservations.find(ctx, almanac, value)
			if err != nil {
				return nil, err
			}
			value = r.ID
		}
		hints[key] = value
	}
	return hints, nil
}

// awaitServer waits until a server runs, or has failed.
func (p *process) awaitServer(ctx context.Context, almanac *client.Client, s v1.DemoServer, most period) (v1.DemoServer, error) {
	built := func(s v1.DemoServer) (bool, error) { return s.Status != "BUILD", nil }
	again := func(ctx context.Context, s v1.DemoServer) (v1.DemoServer, error) {
		return demoServers.get(ctx, almanac, s.ID)
	}
	return await(ctx, p, s, most, built, again, func(s v1.DemoServer) string {
		return fmt.Sprintf("server %s does not run yet; 'almanac demo server list' shows it", s.ID)
	})
}

func (p *process) demoListCommand() *cobra.Command {
	return listCommand(p, &cobra.Command{
		Use:   "list",
		Short: "List the servers of the simulated cloud",
		Example: `  almanac demo server list
  almanac demo server list --long -f json`,
	}, demoFields, func(ctx context.Context, almanac *client.Client) ([]v1.DemoServer, v1.DemoServers, error) {
		all, err := almanac.DemoServers(ctx)
		return all.Servers, all, err
	})
}

func (p *process) demoDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID|NAME...",
		Short: "Delete servers of the simulated cloud",
		Example: `  almanac demo server delete web
  almanac demo server delete web train`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: demoServers.complete(p),
		RunE: func(c *cobra.Command, args []string) error {
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			_, failure := eachOf(p, c, args, func(what string) (v1.DemoServer, error) {
				s, err := demoServers.find(c.Context(), almanac, what)
				if err == nil {
					err = almanac.DeleteDemoServer(c.Context(), s.ID)
				}
				if err == nil {
					p.inform("server %s %s is being deleted", s.ID, plain(s.Name))
				}
				return s, err
			})
			return failure
		},
	}
}
