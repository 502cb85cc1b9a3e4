// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// submission has the flags of "besteffort submit".
type submission struct {
	request            v1.BestEffortRequest
	vms                int
	duration, waitTime period
	networks, metadata []string
	userData, key      string
	wait               bool
}

func (p *process) bestEffortSubmitCommand() *cobra.Command {
	s := &submission{waitTime: 600}
	c := &cobra.Command{
		Use:     "submit NAME",
		Aliases: []string{"create"},
		Short:   "Queue servers",
		Long: `Queue servers. Each runs as soon as there is capacity for it; with --parallel all run
at the same time, and Almanac suspends and resumes them together.

Almanac creates the servers later on your behalf. Your token creates a Keystone trust
for that, which ends with the request; the token of an application credential can
create one only if the credential is unrestricted. Each request carries an idempotency
key, so that a repeated request is queued once.`,
		Example: `  almanac besteffort submit render --flavor m1.small --image debian-12 --duration 6h --vms 8
  almanac besteffort submit mpi --flavor m1.large --image cirros --duration 2h30m --vms 4 --parallel
  almanac besteffort submit probe --flavor m1.tiny --image cirros --duration 10m --network none --wait`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			s.request.Name = args[0]
			return p.submit(c, s)
		},
	}
	flags := c.Flags()
	flags.StringVar(&s.request.Flavor, "flavor", "", "flavor of each server: name or id")
	flags.StringVar(&s.request.Image, "image", "", "image of each server: name or id")
	flags.Var(&s.duration, "duration", "maximum run time of each server; then Almanac deletes it")
	flags.IntVar(&s.vms, "vms", 1, "number of servers")
	flags.BoolVar(&s.request.Parallel, "parallel", false, "run all servers at the same time, or none")
	flags.StringSliceVar(&s.networks, "network", nil, "id of a network, none or auto (repeatable; default auto)")
	flags.StringVar(&s.request.KeyName, "key-name", "", "your keypair for the servers")
	flags.StringVar(&s.userData, "user-data", "", "file with user data for the servers")
	flags.StringArrayVar(&s.metadata, "property", nil, "metadata of the servers, KEY=VALUE (repeatable)")
	flags.BoolVar(&s.wait, "wait", false, "wait until one of the servers runs")
	flags.Var(&s.waitTime, "wait-timeout", "maximum time to wait")
	flags.StringVar(&s.key, "idempotency-key", "", "key that identifies the request: the same key never submits twice (default random)")
	for _, name := range []string{"flavor", "image", "duration"} {
		_ = c.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	completeFlag(c, "network", oneOf([]string{"none", "auto"}))
	return c
}

// body returns the request of the flags.
func (s *submission) body() (v1.BestEffortRequest, error) {
	req := s.request
	req.VMs, req.Duration, req.Networks = &s.vms, (*v1.Duration)(&s.duration), s.networks
	for _, item := range s.metadata {
		key, value, found := strings.Cut(item, "=")
		if !found || key == "" {
			return req, fault.Field("--property", "must be KEY=VALUE, not %q", item)
		}
		if req.Metadata == nil {
			req.Metadata = map[string]string{}
		}
		req.Metadata[key] = value
	}
	if s.userData != "" {
		raw, err := os.ReadFile(s.userData)
		if err != nil {
			return req, fault.Field("--user-data", "cannot be read: %v", err)
		}
		req.UserData = base64.StdEncoding.EncodeToString(raw)
	}
	return req, nil
}

func (p *process) submit(c *cobra.Command, s *submission) error {
	req, err := s.body()
	if err != nil {
		return err
	}
	return show(p, c, bestEffortFields, func(ctx context.Context, almanac *client.Client) (v1.BestEffort, error) {
		made, err := almanac.SubmitBestEffort(ctx, req, idempotent(s.key))
		if err != nil || !s.wait {
			return made, err
		}
		return p.awaitRunning(ctx, almanac, made, s.waitTime)
	})
}

// awaitRunning waits until one of the servers of a request runs.
func (p *process) awaitRunning(ctx context.Context, almanac *client.Client, r v1.BestEffort, most period) (v1.BestEffort, error) {
	p.inform("best-effort request %s is queued; waiting until it runs", r.ID)
	runs := func(r v1.BestEffort) (bool, error) {
		switch status := state.Status(r.Status); {
		case running(r) > 0 || status == state.StatusDone:
			return true, nil
		case status == state.StatusFailed || status == state.StatusCanceled:
			return false, &outcome{exitFailed, fmt.Sprintf("best-effort request %s has the status %s; 'almanac besteffort show %s' shows why", r.ID, status, r.ID)}
		}
		return false, nil
	}
	again := func(ctx context.Context, r v1.BestEffort) (v1.BestEffort, error) {
		return almanac.BestEffort(ctx, r.ID)
	}
	return await(ctx, p, r, most, runs, again, func(r v1.BestEffort) string {
		return fmt.Sprintf("best-effort request %s is still %s; it stays in the queue, and 'almanac besteffort show %s' shows it", r.ID, r.Status, r.ID)
	})
}
