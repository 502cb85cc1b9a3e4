package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// askAgain is after how many seconds an order is given again that has not been followed.
const askAgain = 15

// drive does the next thing for each VM that is under way: first of what leaves hosts,
// then of what goes on, and last of what is new, which takes long. What fails for one is
// tried again at the next step, and keeps no other from its own, unless the lease is lost
// or nothing can be stored.
func (c *Controller) drive(ctx context.Context, w *view) error {
	var errs []error
	begun, created := c.Now(), 0
	for _, turn := range []func(v *VM) bool{leaves, goesOn, begins} {
		for i := range w.requests {
			r := &w.requests[i]
			for j := range r.VMs {
				v := &r.VMs[j]
				if w.stopped != nil || w.blind[r.ID] || !turn(v) {
					continue
				}
				if begins(v) {
					if created == mostCreated || c.Now() >= begun.Add(longestCreating) {
						continue
					}
					created++
				}
				if err := c.next(ctx, w, r, v, w.seen[v.ID]); err != nil {
					errs = append(errs, fmt.Errorf("%s VM %s of best-effort request %s: %w", v.Phase, v.ID, r.ID, err))
				}
			}
		}
		if w.stopped == nil { // what was asked for, so that it is not asked again at once
			errs = append(errs, c.save(ctx, w))
		}
	}
	return errors.Join(append(errs, c.tidy(ctx, w))...)
}

const (
	// mostCreated is how many servers are asked for in a step, and longestCreating for how
	// many seconds: others may have to leave meanwhile.
	mostCreated     = 8
	longestCreating = 4
)

// begins says that the VM's server is to be asked for.
func begins(v *VM) bool { return v.Phase == besteffort.Starting && v.Server == "" && v.Asked == 0 }

// leaves says that the VM makes room.
func leaves(v *VM) bool {
	return v.Phase == besteffort.Suspending || v.Phase == besteffort.Suspended || v.Phase == besteffort.Stopping
}

func goesOn(v *VM) bool { return !begins(v) && !leaves(v) && !v.over() }

// tidy deletes servers that nobody has, and ends requests of which nothing is left.
func (c *Controller) tidy(ctx context.Context, w *view) error {
	var errs []error
	for i := range w.requests {
		r := &w.requests[i]
		left := false
		for j := range r.VMs {
			for _, s := range w.seen[r.VMs[j].ID].surplus {
				left = true
				errs = append(errs, c.order(ctx, w, r, &r.VMs[j], Delete, s.ID))
			}
		}
		if w.stopped == nil && r.settled() && !left && !w.blind[r.ID] {
			errs = append(errs, c.close(ctx, w, r))
		}
	}
	return errors.Join(errs...)
}

// close ends a request of which nothing is left to do.
func (c *Controller) close(ctx context.Context, w *view, r *Request) error {
	if r.Trust != "" {
		if err := c.Trusts.End(ctx, r.Trust); err != nil {
			return fmt.Errorf("end the trust of best-effort request %s: %w", r.ID, err)
		}
	}
	return c.Records.CloseBestEffort(ctx, w.lease, r.ID, w.now)
}

func (c *Controller) next(ctx context.Context, w *view, r *Request, v *VM, seen sight) error {
	s := seen.server
	if v.Phase == besteffort.Starting && v.Server == "" {
		if v.Asked != 0 {
			return nil
		}
		return c.create(ctx, w, r, v)
	}
	if s == nil || s.ID != v.Server {
		return nil
	}
	switch v.Phase {
	case besteffort.Starting:
		if before := w.seen[v.ID]; before.server != nil && v.Asked != 0 { // it was found again after its answer was lost
			return c.Orders.Remember(ctx, v.Server)
		}
	case besteffort.Running:
		if seen.looked && seen.has == nil {
			return c.restore(ctx, w, v)
		}
		return c.release(ctx, w, r, v, s)
	case besteffort.Suspending:
		return c.suspend(ctx, w, r, v, seen)
	case besteffort.Suspended:
		return c.take(ctx, w, v, seen)
	case besteffort.Resuming:
		return c.resume(ctx, w, r, v, seen)
	case besteffort.Stopping:
		if v.Asked == 0 || w.now >= v.Asked.Add(askAgain) {
			return c.ask(ctx, w, r, v, Delete)
		}
	}
	return nil
}

// create asks for the VM's server. That it is asked for is stored first.
func (c *Controller) create(ctx context.Context, w *view, r *Request, v *VM) error {
	if err := c.holds(ctx, w); err != nil {
		return err
	}
	v.Asked = c.Now()
	if err := c.save(ctx, w); err != nil {
		return err
	}
	id, err := c.Orders.Create(ctx, r, v)
	switch {
	case err == nil:
		v.Server = id
		c.Log.InfoContext(ctx, "a server was asked for", "request", r.ID, "vm", v.ID, "server", id, "project", r.ProjectID, "host", v.Node)
	case errors.Is(err, ErrUnasked): // as where its owner may no longer do so
		c.Log.WarnContext(ctx, "Nova was not asked for a server", "request", r.ID, "vm", v.ID, "error", err)
		r.putOff(v, c.Now(), "Nova was not asked for its server: "+fault.Of(err).Message, c.Limits.backoff(3))
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.NotFound): // the flavor, the image or something else is not there any more
		v.fail(w.now, "Nova does not take it: "+fault.Of(err).Message, c.Limits)
	case fault.Is(err, fault.Denied), fault.Is(err, fault.Conflict), fault.Is(err, fault.TooMany): // as where a quota is used up
		r.putOff(v, c.Now(), "Nova does not take it now: "+fault.Of(err).Message, c.Limits.backoff(3))
	default:
		v.Reason = "Nova has not answered yet when its server was asked for"
		return errors.Join(err, c.save(ctx, w))
	}
	r.together(w.now)
	if err := c.save(ctx, w); err != nil || v.Server == "" {
		return err
	}
	return c.Orders.Remember(ctx, v.Server)
}

// putOff has the VM, which Nova did not take, and all others of the request that are to
// begin wait: it would not take them either, and they hold no host meanwhile.
func (r *Request) putOff(refused *VM, now span.Instant, reason string, seconds int64) {
	for i := range r.VMs {
		switch v := &r.VMs[i]; {
		case v == refused, begins(v):
			v.putOff(now, reason, seconds)
		case v.Phase == besteffort.Waiting:
			v.RetryAt = max(v.RetryAt, now.Add(seconds))
		}
	}
}

// suspend locks the server, so that its owner does not resume it onto ground that is sold,
// has it suspended, and then takes its room.
func (c *Controller) suspend(ctx context.Context, w *view, r *Request, v *VM, seen sight) error {
	s := seen.server
	switch {
	case !s.idle():
		return nil
	case s.Status == "SUSPENDED":
		if v.Asked == 0 { // its owner had it suspended
			if err := c.ask(ctx, w, r, v, Lock); err != nil {
				return err
			}
		}
		return c.take(ctx, w, v, seen)
	case v.Asked != 0 && w.now < v.Asked.Add(askAgain):
		return nil
	}
	if err := c.order(ctx, w, r, v, Lock, v.Server); err != nil {
		return err
	}
	return c.ask(ctx, w, r, v, Suspend)
}

// take takes the server's room, of which it is stored what it was.
func (c *Controller) take(ctx context.Context, w *view, v *VM, seen sight) error {
	if !seen.looked || seen.has == nil || v.Held == nil {
		return nil
	}
	if err := c.holds(ctx, w); err != nil {
		return err
	}
	return c.Rooms.Take(ctx, v.Server, seen.has, seen.generation)
}

// resume gives the server its room back, and has it resumed.
func (c *Controller) resume(ctx context.Context, w *view, r *Request, v *VM, seen sight) error {
	if seen.server.Status != "SUSPENDED" || !seen.server.idle() || !seen.looked || v.Asked != 0 && w.now < v.Asked.Add(askAgain) {
		return nil
	}
	if err := c.holds(ctx, w); err != nil {
		return err
	}
	if seen.has == nil {
		err := c.Rooms.Give(ctx, v.Server, v.Held)
		if _, full := errors.AsType[*placing.ErrNoCapacity](err); full {
			v.enter(besteffort.Suspended, w.now, "its host has no room for it yet")
			v.RetryAt = w.now.Add(c.Limits.Backoff)
			return c.save(ctx, w)
		}
		if err != nil {
			return err
		}
	}
	return c.ask(ctx, w, r, v, Resume)
}

// release lets the owner of a server that was resumed do with it what he likes again.
func (c *Controller) release(ctx context.Context, w *view, r *Request, v *VM, s *Server) error {
	if v.Held == nil || v.Released {
		return nil
	}
	if s.Locked {
		if err := c.order(ctx, w, r, v, Unlock, v.Server); err != nil {
			return err
		}
	}
	v.Released = true
	return c.save(ctx, w)
}

// restore gives a server that runs and has nothing in Placement what it had. Where others
// have that it is suspended again.
func (c *Controller) restore(ctx context.Context, w *view, v *VM) error {
	if v.Held == nil {
		return nil
	}
	if err := c.holds(ctx, w); err != nil {
		return err
	}
	err := c.Rooms.Give(ctx, v.Server, v.Held)
	if _, full := errors.AsType[*placing.ErrNoCapacity](err); !full {
		return err
	}
	now := c.Now()
	v.Ran = v.used(now)
	v.enter(besteffort.Suspending, now, "others have its room")
	v.Deadline, v.Released = now.Add(c.Limits.Order), false
	return c.save(ctx, w)
}

// ask gives the order of a phase, which is not given again for a while where it was taken.
func (c *Controller) ask(ctx context.Context, w *view, r *Request, v *VM, o Order) error {
	err := c.order(ctx, w, r, v, o, v.Server)
	if err == nil {
		v.Asked = c.Now()
	}
	return err
}

func (c *Controller) order(ctx context.Context, w *view, r *Request, v *VM, o Order, server string) error {
	if err := c.holds(ctx, w); err != nil {
		return err
	}
	err := c.Orders.Do(ctx, o, server, lockReason)
	if err != nil {
		return fmt.Errorf("%s server %s: %w", o, server, err)
	}
	c.Log.InfoContext(ctx, "an order was given for best-effort work", "request", r.ID, "vm", v.ID, "server", server, "order", o, "reason", v.Reason)
	return nil
}

// lockReason is what Nova tells the owner of a server that is locked.
const lockReason = "suspended by Almanac for a reservation; it is resumed afterwards"
