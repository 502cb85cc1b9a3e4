package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"time"

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
		Use:   "submit NAME",
		Short: "Put servers into the queue",
		Long: `Put servers into the queue. Each runs as soon as there is room for it; with --parallel
they all run at the same time, and are suspended and resumed together.

Almanac makes them later in your name. For that your token makes a trust of Keystone,
which ends with the request; a token of an application credential can do that only where
it is unrestricted. A repeated request is queued once: each carries an idempotency key.`,
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
	flags.StringVar(&s.request.Flavor, "flavor", "", "flavor of each server, by its name or id")
	flags.StringVar(&s.request.Image, "image", "", "image that it boots from, by its name or id")
	flags.Var(&s.duration, "duration", "how long each runs at most; then it is deleted")
	flags.IntVar(&s.vms, "vms", 1, "how many")
	flags.BoolVar(&s.request.Parallel, "parallel", false, "they run at the same time, or not at all")
	flags.StringSliceVar(&s.networks, "network", nil, "id of a network, none or auto (repeatable; default auto)")
	flags.StringVar(&s.request.KeyName, "key-name", "", "keypair of yours for the servers")
	flags.StringVar(&s.userData, "user-data", "", "file with user data for the servers")
	flags.StringArrayVar(&s.metadata, "property", nil, "metadata of the servers, KEY=VALUE (repeatable)")
	flags.BoolVar(&s.wait, "wait", false, "wait until one of them runs")
	flags.Var(&s.waitTime, "wait-timeout", "how long to wait at most")
	flags.StringVar(&s.key, "idempotency-key", "", "a key of your own: the same key never submits twice (default random)")
	for _, name := range []string{"flavor", "image", "duration"} {
		_ = c.MarkFlagRequired(name) // fails for a flag that is not there
	}
	completeFlag(c, "network", oneOf([]string{"none", "auto"}))
	return c
}

// body gives the request that the flags ask for.
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
	out, err := newPrinter(p, bestEffortColumns, inShows)
	if err != nil {
		return err
	}
	req, err := s.body()
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	key := s.key
	if key == "" {
		key = rand.Text()
	}
	made, err := almanac.SubmitBestEffort(c.Context(), req, client.CreateOptions{IdempotencyKey: key})
	if err != nil {
		return err
	}
	if s.wait {
		if made, err = p.awaitBestEffort(c.Context(), almanac, made, s.waitTime.time()); err != nil {
			return err
		}
	}
	return out.one(made, made)
}

// awaitBestEffort looks at r until one of its servers runs, for so long at most.
func (p *process) awaitBestEffort(ctx context.Context, almanac *client.Client, r v1.BestEffort, most time.Duration) (v1.BestEffort, error) {
	p.inform("best-effort request %s is queued; waiting until it runs", r.ID)
	last := p.now().Add(most)
	for {
		switch status := state.Status(r.Status); {
		case runs(r) > 0 || status == state.StatusDone:
			return r, nil
		case status == state.StatusFailed || status == state.StatusCancelled:
			return r, &outcome{exitFailed, fmt.Sprintf("best-effort request %s is %s; 'almanac besteffort show %s' says why", r.ID, status, r.ID)}
		}
		left := last.Sub(p.now())
		if left <= 0 {
			return r, &outcome{exitTimedOut, fmt.Sprintf(
				"best-effort request %s is still %s; it keeps its place, and 'almanac besteffort show %s' shows it", r.ID, r.Status, r.ID)}
		}
		if err := p.pause(ctx, min(left, pollTime)); err != nil {
			return r, err
		}
		var err error
		if r, err = almanac.BestEffort(ctx, r.ID); err != nil {
			return r, err
		}
	}
}
