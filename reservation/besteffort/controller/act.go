// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

const (
	// mostCreated is the largest number of servers that a step creates, and longestCreating the
	// number of seconds after which it creates no more: other servers may have to leave hosts in
	// the meantime.
	mostCreated     = 8
	longestCreating = 4
	// lockReason is the reason that Nova shows the owner of a locked server.
	lockReason = "suspended by Almanac for a reservation; it is resumed afterwards"
)

// act does the next task of each VM: first those of VMs that leave hosts, last the creation of
// servers, which takes long. A failure is retried in the next step. It does not prevent other
// tasks, unless the lease is lost or nothing can be stored.
func (c *Controller) act(ctx context.Context, s *step) error {
	var errs []error
	begun, created := c.Now(), 0
	for _, turn := range state.Turns {
		for i := range s.requests {
			r := &s.requests[i]
			for j := range r.VMs {
				v := &r.VMs[j]
				if ctx.Err() != nil || s.blind[r.ID] || v.Turn() != turn {
					continue
				}
				if turn == state.TurnBegin {
					if created == mostCreated || c.Now() >= begun.Add(longestCreating) {
						continue
					}
					created++
				}
				if err := c.do(ctx, s, r, v); err != nil {
					errs = append(errs, fmt.Errorf("%s VM %s of best-effort request %s: %w", v.Phase, v.ID, r.ID, err))
				}
			}
		}
		if ctx.Err() == nil { // so that what was just sent is not sent again at once
			errs = append(errs, c.save(ctx, s))
		}
	}
	return errors.Join(append(errs, c.tidy(ctx, s))...)
}

// tidy deletes servers that belong to no VM, and closes requests that have nothing left to do.
func (c *Controller) tidy(ctx context.Context, s *step) error {
	var errs []error
	for i := range s.requests {
		r := &s.requests[i]
		left := false
		for j := range r.VMs {
			for _, server := range s.seen[r.VMs[j].ID].Surplus {
				left = true
				errs = append(errs, c.order(ctx, s, r, &r.VMs[j], ActionDelete, server.ID))
			}
		}
		if ctx.Err() == nil && r.Settled() && !left && !s.blind[r.ID] {
			errs = append(errs, c.close(ctx, s, r))
		}
	}
	return errors.Join(errs...)
}

// close ends a request.
func (c *Controller) close(ctx context.Context, s *step, r *state.Request) error {
	if r.Trust != "" {
		if err := c.Trusts.End(ctx, r.Trust); err != nil {
			return fmt.Errorf("delete the trust of best-effort request %s: %w", r.ID, err)
		}
	}
	return c.Records.CloseBestEffort(ctx, s.held.Lease, r.ID, s.now)
}

// do does the VM's next task.
func (c *Controller) do(ctx context.Context, s *step, r *state.Request, v *state.VM) error {
	seen := s.seen[v.ID]
	switch v.Next(seen, s.now) {
	case state.TaskCreate:
		return c.create(ctx, s, r, v)
	case state.TaskAdopt:
		return c.Actions.Remember(ctx, v.Server)
	case state.TaskSuspend:
		// While the server is locked, its owner cannot resume it on a reserved host.
		if err := c.order(ctx, s, r, v, ActionLock, v.Server); err != nil {
			return err
		}
		return c.send(ctx, s, r, v, ActionSuspend)
	case state.TaskFree:
		return c.free(ctx, s, r, v, seen)
	case state.TaskResume:
		return c.resume(ctx, s, r, v, seen)
	case state.TaskRestore:
		return c.restore(ctx, s, v)
	case state.TaskUnlock:
		return c.unlock(ctx, s, r, v, seen.Server)
	case state.TaskDelete:
		return c.send(ctx, s, r, v, ActionDelete)
	}
	return nil
}

// create requests the VM's server from Nova. It stores before that it will.
func (c *Controller) create(ctx context.Context, s *step, r *state.Request, v *state.VM) error {
	if err := s.held.Ensure(ctx); err != nil {
		return err
	}
	v.Asked = c.Now()
	if err := c.save(ctx, s); err != nil {
		return err
	}
	id, err := c.Actions.Create(ctx, r, v)
	switch {
	case err == nil:
		v.Server = id
		c.Log.InfoContext(ctx, "requested a server for best-effort work", "request", r.ID, "vm", v.ID, "server", id, "project", r.ProjectID, "host", v.Node)
	case errors.Is(err, ErrNotSent): // its owner is no longer allowed to, for example
		c.Log.WarnContext(ctx, "could not ask Nova for a server for best-effort work", "request", r.ID, "vm", v.ID, "error", err)
		r.NotSent(v, c.Now(), err, c.Limits)
	case !r.Refused(v, s.now, c.Now(), err, c.Limits):
		return errors.Join(err, c.save(ctx, s))
	}
	r.Together(s.now)
	if err := c.save(ctx, s); err != nil || v.Server == "" {
		return err
	}
	return c.Actions.Remember(ctx, v.Server)
}

// free removes the allocation of a suspended server, which is in the VM's record by then.
func (c *Controller) free(ctx context.Context, s *step, r *state.Request, v *state.VM, seen state.Sight) error {
	if v.Phase == besteffort.Suspending && v.Asked == 0 { // its owner suspended it
		if err := c.send(ctx, s, r, v, ActionLock); err != nil {
			return err
		}
	}
	if !v.Occupies(seen) {
		return nil
	}
	if err := s.held.Ensure(ctx); err != nil {
		return err
	}
	return c.Allocations.Remove(ctx, v.Server, seen.Allocated, seen.Generation)
}

// resume restores the server's allocation, and resumes the server.
func (c *Controller) resume(ctx context.Context, s *step, r *state.Request, v *state.VM, seen state.Sight) error {
	if seen.Allocated == nil {
		full, err := c.allocate(ctx, s, v)
		if full {
			v.NotResumed(s.now, c.Limits)
			return c.save(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return c.send(ctx, s, r, v, ActionResume)
}

// restore restores the allocation of a server that runs without one. If others use its capacity,
// the server is suspended again.
func (c *Controller) restore(ctx context.Context, s *step, v *state.VM) error {
	full, err := c.allocate(ctx, s, v)
	if full {
		v.NotRestored(c.Now(), c.Limits)
		return c.save(ctx, s)
	}
	return err
}

// allocate restores the server's allocation from its record. full is true if others use the
// capacity.
func (c *Controller) allocate(ctx context.Context, s *step, v *state.VM) (full bool, err error) {
	if err := s.held.Ensure(ctx); err != nil {
		return false, err
	}
	err = c.Allocations.Restore(ctx, v.Server, v.Held)
	_, full = errors.AsType[*placing.ErrNoCapacity](err)
	return full, err
}

// unlock unlocks a resumed server, so that its owner controls it again.
func (c *Controller) unlock(ctx context.Context, s *step, r *state.Request, v *state.VM, server *state.Server) error {
	if server.Locked {
		if err := c.order(ctx, s, r, v, ActionUnlock, v.Server); err != nil {
			return err
		}
	}
	v.Released = true
	return c.save(ctx, s)
}

// send sends the order that the VM's phase requires, unless it was sent a short while ago.
func (c *Controller) send(ctx context.Context, s *step, r *state.Request, v *state.VM, a Action) error {
	err := c.order(ctx, s, r, v, a, v.Server)
	if err == nil {
		v.Asked = c.Now()
	}
	return err
}

func (c *Controller) order(ctx context.Context, s *step, r *state.Request, v *state.VM, a Action, server string) error {
	if err := s.held.Ensure(ctx); err != nil {
		return err
	}
	if err := c.Actions.Do(ctx, a, server, lockReason); err != nil {
		return fmt.Errorf("%s server %s: %w", a, server, err)
	}
	c.Log.InfoContext(ctx, "sent an order for best-effort work to Nova", "request", r.ID, "vm", v.ID, "server", server, "order", a, "reason", v.Reason)
	return nil
}
