package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// look sees what the cloud has of every request. One whose project cannot be seen is left
// as it is; the error is for the log.
func (c *Controller) look(ctx context.Context, w *view) error {
	if len(w.requests) == 0 {
		return nil
	}
	projects, err := c.Servers.Marked(ctx, serversOf(w.requests))
	if err != nil {
		for i := range w.requests {
			w.blind[w.requests[i].ID] = true
		}
		return fmt.Errorf("look at the servers of best-effort work: %w", err)
	}
	var errs []error
	checks := c.checks(w)
	for i := range w.requests {
		r := &w.requests[i]
		for j := range r.VMs {
			seen, err := c.lookAt(ctx, r, &r.VMs[j], projects[r.ProjectID], checks[r.VMs[j].ID])
			if err != nil {
				errs = append(errs, err)
				w.blind[r.ID] = true
				break
			}
			w.seen[r.VMs[j].ID] = seen
		}
	}
	return errors.Join(errs...)
}

// serversOf are the servers that the VMs are known to have, by project.
func serversOf(requests []Request) map[string][]string {
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

// checked is of how many VMs that run again it is asked in a step whether they have their
// room.
const checked = 8

// checks are, in turn, some of the VMs that run after they were suspended: a call that was
// long under way may have taken their room.
func (c *Controller) checks(w *view) map[string]bool {
	var all []string
	for i := range w.requests {
		for j := range w.requests[i].VMs {
			if v := &w.requests[i].VMs[j]; v.Phase == besteffort.Running && v.Held != nil {
				all = append(all, v.ID)
			}
		}
	}
	some := map[string]bool{}
	for n := range min(checked, len(all)) {
		some[all[(c.turn+n)%len(all)]] = true
	}
	c.turn += checked
	return some
}

// lookAt adds what only Placement tells of a VM that is suspended, and who has deleted the
// server of one that has lost it.
func (c *Controller) lookAt(ctx context.Context, r *Request, v *VM, servers []Server, check bool) (sight, error) {
	seen := look(r, v, servers)
	var err error
	switch {
	case v.over() || v.Server == "" && seen.server == nil || v.Phase == besteffort.Stopping:
		return seen, nil
	case seen.server == nil:
		seen.byOwner, err = c.Servers.EndedByOwner(ctx, v.Server, r.ProjectID)
	case check && seen.server.Status == "ACTIVE" && seen.server.idle(),
		slices.Contains([]besteffort.Phase{besteffort.Suspending, besteffort.Suspended, besteffort.Resuming}, v.Phase) &&
			seen.server.Status == "SUSPENDED":
		seen.has, seen.generation, err = c.Rooms.Held(ctx, v.Server)
		seen.looked = err == nil
	}
	if err != nil {
		err = fmt.Errorf("look at server %s: %w", v.Server, err)
	}
	return seen, err
}

// decide asks the rules what is done now, and enters it.
func (c *Controller) decide(ctx context.Context, w *view) {
	s := c.Ground.Situation(w.requests, w.now)
	w.holds = s.Holds
	hide(&s, w.requests)
	doubt := c.Doubt()
	plan := c.plan(s, w)
	c.publish(plan, w.now)
	for _, act := range plan.Acts {
		v, r := find(w.requests, act.Request, act.VM)
		if v == nil || w.blind[r.ID] {
			continue
		}
		c.enter(ctx, w, r, v, act, doubt)
	}
	for i := range w.requests {
		r := &w.requests[i]
		for j := range r.VMs {
			if v := &r.VMs[j]; !w.blind[r.ID] && held(w.holds, v.Node, w.now) {
				v.yield(w.now, c.Ground.deadline(w.holds, v.Node, w.now, c.Limits.Order))
			}
		}
		r.together(w.now)
	}
}

// hide leaves out of the situation what has to wait before it is tried again, so that
// nobody waits behind it.
func hide(s *besteffort.Situation, requests []Request) {
	waits := map[string]bool{}
	for i := range requests {
		later := slices.ContainsFunc(requests[i].VMs, func(v VM) bool {
			return v.Phase == besteffort.Waiting && v.RetryAt > s.Now || v.Phase == besteffort.Stopping && v.Then == besteffort.Waiting
		})
		for _, v := range requests[i].VMs {
			waits[v.ID] = v.Phase == besteffort.Waiting && (v.RetryAt > s.Now || requests[i].Parallel && later)
		}
	}
	for i := range s.Requests {
		s.Requests[i].VMs = slices.DeleteFunc(s.Requests[i].VMs, func(v besteffort.VM) bool { return waits[v.ID] })
	}
	s.Requests = slices.DeleteFunc(s.Requests, func(r besteffort.Request) bool { return len(r.VMs) == 0 })
}

func find(requests []Request, request, vm string) (*VM, *Request) {
	for i := range requests {
		if requests[i].ID != request {
			continue
		}
		for j := range requests[i].VMs {
			if requests[i].VMs[j].ID == vm {
				return &requests[i].VMs[j], &requests[i]
			}
		}
	}
	return nil, nil
}

// enter makes an act of the plan what is intended with the VM, where it is still of use.
// In doubt about the hosts nothing is put on them, and what leaves them still leaves.
func (c *Controller) enter(ctx context.Context, w *view, r *Request, v *VM, act besteffort.Act, doubt string) {
	now := w.now
	switch {
	case act.Action == besteffort.Start && v.Phase == besteffort.Waiting && v.RetryAt <= now && r.Cancelled == 0 && doubt == "":
		if slices.Contains(v.Avoids, act.Node) {
			return
		}
		v.enter(besteffort.Starting, now, "")
		v.Node, v.Until, v.Server = act.Node, act.Until, ""
		v.Attempt++
	case act.Action == besteffort.Suspend && v.Phase == besteffort.Running:
		v.Ran = v.used(now)
		v.enter(besteffort.Suspending, now, act.Reason)
		v.Until, v.Released = act.Until, false
		v.Deadline = c.Ground.deadline(w.holds, v.Node, act.Until, c.Limits.Order)
	case act.Action == besteffort.Resume && v.Phase == besteffort.Suspended && v.RetryAt <= now && doubt == "":
		switch {
		case v.Held == nil: // what it had is not known, and it may not run on what it has not
			v.remove(besteffort.Waiting, now, "it is not known what room it had, and it begins anew")
		case act.Node != v.Node:
			c.Log.DebugContext(ctx, "a suspended server is resumed where it is, or not at all", "vm", v.ID, "host", v.Node, "planned", act.Node)
		default:
			v.enter(besteffort.Resuming, now, "")
			v.Until = act.Until
		}
	case act.Action == besteffort.Stop && v.Phase == besteffort.Running:
		v.remove(besteffort.Done, now, "its time was up")
	}
}

// yield takes a VM off a node that a reservation has, or is about to have, where it has
// not been suspended.
func (v *VM) yield(now, deadline span.Instant) {
	const reason = "a reservation needs its host, and it begins anew"
	switch v.Phase {
	case besteffort.Starting:
		if v.Server != "" {
			v.remove(besteffort.Waiting, now, reason)
		} else if v.Asked == 0 {
			v.again(now, reason)
		}
	case besteffort.Running:
		v.remove(besteffort.Waiting, now, reason)
	case besteffort.Resuming:
		v.enter(besteffort.Suspending, now, "a reservation needs its host")
		v.Deadline = deadline
	}
}
