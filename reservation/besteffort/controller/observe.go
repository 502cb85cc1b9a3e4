// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// checked is the number of running VMs whose allocation is read in a step.
const checked = 8

// observe reads the servers of every request from the cloud. A request whose project could not be
// read stays as it is; the error is for the log.
func (c *Controller) observe(ctx context.Context, s *step) error {
	if len(s.requests) == 0 {
		return nil
	}
	projects, err := c.Servers.Marked(ctx, serversOf(s.requests))
	if err != nil {
		for i := range s.requests {
			s.blind[s.requests[i].ID] = true
		}
		return fmt.Errorf("list the servers of best-effort work: %w", err)
	}
	var errs []error
	checks := c.checks(s.requests)
	for i := range s.requests {
		r := &s.requests[i]
		for j := range r.VMs {
			seen, err := c.look(ctx, r, &r.VMs[j], projects[r.ProjectID], checks[r.VMs[j].ID])
			if err != nil {
				errs = append(errs, err)
				s.blind[r.ID] = true
				break
			}
			s.seen[r.VMs[j].ID] = seen
		}
	}
	return errors.Join(errs...)
}

// serversOf returns the ids of the servers that the VMs have according to their records, by
// project.
func serversOf(requests []state.Request) map[string][]string {
	known := map[string][]string{}
	for i := range requests {
		project := requests[i].ProjectID
		ids := known[project]
		for _, v := range requests[i].VMs {
			if v.Server != "" {
				ids = append(ids, v.Server)
			}
		}
		known[project] = ids
	}
	return known
}

// checks returns some of the VMs that run after a suspension, different ones in each step: a call
// of the suspension that took long may have removed their allocation.
func (c *Controller) checks(requests []state.Request) map[string]bool {
	var all []string
	for i := range requests {
		for j := range requests[i].VMs {
			if v := &requests[i].VMs[j]; v.Phase == besteffort.Running && v.Held != nil {
				all = append(all, v.ID)
			}
		}
	}
	some := map[string]bool{}
	for n := range min(checked, len(all)) {
		some[all[(c.next+n)%len(all)]] = true
	}
	c.next += checked
	return some
}

// look returns the observation of a VM. For a suspended VM it includes its allocation in Placement,
// for a VM that has lost its server, who deleted that.
func (c *Controller) look(ctx context.Context, r *state.Request, v *state.VM, servers []state.Server, check bool) (state.Sight, error) {
	seen := state.Identify(r, v, servers)
	var err error
	switch {
	case v.Over() || v.Server == "" && seen.Server == nil || v.Phase == besteffort.Stopping:
		return seen, nil
	case seen.Server == nil:
		seen.ByOwner, err = c.Servers.EndedByOwner(ctx, v.Server, r.ProjectID)
	case check && seen.Server.Status == "ACTIVE" && seen.Server.Idle(),
		slices.Contains([]besteffort.Phase{besteffort.Suspending, besteffort.Suspended, besteffort.Resuming}, v.Phase) &&
			seen.Server.Status == "SUSPENDED":
		seen.Allocated, seen.Generation, err = c.Allocations.Allocation(ctx, v.Server)
		seen.Looked = err == nil
	}
	if err != nil {
		err = fmt.Errorf("look at server %s: %w", v.Server, err)
	}
	return seen, err
}
