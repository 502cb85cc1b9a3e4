// Package controller carries out what the rules of best-effort work decide: it has
// servers made in the name of their owners, suspended before reservations, resumed after
// them, and deleted when their time is up. What it is about to do is stored before it is
// done, so that whoever goes on after it finds what may have been done, and looks.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Options are what a Controller is made of.
type Options struct {
	Records Records
	Servers Servers
	Orders  Orders
	Rooms   Rooms
	Trusts  Trusts
	Ground  Ground
	Planner Planner
	Leases  job.Leases
	// Doubt says why the hosts are not to be believed now; then nothing is started or
	// resumed. Empty is that they are.
	Doubt  func() string
	Limits Limits

	StepEvery time.Duration
	Now       func() span.Instant
	Log       *slog.Logger
}

// Controller works the queue off, where it holds the lease.
type Controller struct {
	Options
	wake chan struct{}

	turn  int                // of checks
	hosts map[string]*record // by name

	mu       sync.Mutex
	count    map[besteffort.Phase]int
	expected map[string]besteffort.Expectation
	planned  span.Instant
}

const (
	// leaseName is the right to work the queue off, and leaseTTL for how long it outlives a
	// controller that has stopped: servers may have to be suspended meanwhile.
	leaseName = "besteffort"
	leaseTTL  = 8 * time.Second
	// soon is when to look again at what is under way.
	soon = time.Second
)

// New gives a controller. Job lets it work.
func New(o Options) *Controller {
	return &Controller{Options: o, wake: make(chan struct{}, 1)}
}

// Wake lets the next step begin at once: there is a new request, or reservations have
// changed.
func (c *Controller) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Job is the controller's work.
func (c *Controller) Job() job.Job {
	return job.Job{Name: "best-effort work", Every: c.StepEvery, Wake: c.wake, Step: func(ctx context.Context) error {
		lease, held, err := c.Leases.Take(ctx, leaseName, leaseTTL)
		if err != nil || !held {
			c.tell(nil) // another counts
			return err
		}
		return c.Step(ctx, lease)
	}}
}

// Count gives how many VMs were in each phase at the last step, where it was this process's.
func (c *Controller) Count() map[besteffort.Phase]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// view is what one step works on.
type view struct {
	now      span.Instant
	lease    job.Lease
	requests []Request
	stored   map[string]VM // as they are in the records, by id
	seen     map[string]sight
	blind    map[string]bool // requests of which nothing was seen
	holds    []besteffort.Hold
	held     span.Instant // when the lease was last seen to be held
	stopped  error        // why no more orders are given
}

// Step looks at the cloud once, and does what follows. The lease is kept while it does.
func (c *Controller) Step(ctx context.Context, lease job.Lease) error {
	ctx, done := c.keep(ctx, lease)
	defer done()
	return c.step(ctx, lease)
}

func (c *Controller) step(ctx context.Context, lease job.Lease) error {
	requests, err := c.Records.OpenBestEffort(ctx)
	if err != nil {
		return err
	}
	w := &view{now: c.Now(), lease: lease, requests: requests, stored: map[string]VM{}, seen: map[string]sight{}, blind: map[string]bool{}}
	for i := range requests {
		for _, v := range requests[i].VMs {
			w.stored[v.ID] = v
		}
	}
	unseen := c.look(ctx, w)
	// That may have taken long, and what follows is worth nothing without the lease.
	if err := c.holds(ctx, w); err != nil {
		return err
	}
	w.now = c.Now()
	limits := c.Limits
	limits.alone = len(c.Ground.nodes(nil, nil)) <= 1
	for i := range w.requests {
		r := &w.requests[i]
		for j := range r.VMs {
			if !w.blind[r.ID] {
				r.VMs[j].advance(r, w.seen[r.VMs[j].ID], w.now, limits)
			}
		}
		r.together(w.now)
	}
	c.learn(w)
	c.decide(ctx, w)
	if err := c.save(ctx, w); err != nil {
		return err
	}
	failed := c.drive(ctx, w)
	c.tally(w)
	return errors.Join(unseen, failed)
}

// save stores what has changed since it was stored last.
func (c *Controller) save(ctx context.Context, w *view) error {
	var changed []VM
	for i := range w.requests {
		for _, v := range w.requests[i].VMs {
			if before := w.stored[v.ID]; !reflect.DeepEqual(before, v) {
				changed = append(changed, v)
				if before.Phase != v.Phase {
					c.Log.InfoContext(ctx, "best-effort work goes on", "request", w.requests[i].ID, "vm", v.ID, "server", v.Server,
						"host", v.Node, "was", before.Phase, "is", v.Phase, "reason", v.Reason)
				}
			}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if w.stopped != nil {
		return w.stopped
	}
	if err := c.Records.SaveBestEffortVMs(ctx, w.lease, changed); err != nil {
		w.stopped = err // what is not written down is not done
		return err
	}
	for _, v := range changed {
		w.stored[v.ID] = v
	}
	return nil
}

// tally counts, and has what is under way looked at again soon.
func (c *Controller) tally(w *view) {
	count, busy := map[besteffort.Phase]int{}, false
	for i := range w.requests {
		for j := range w.requests[i].VMs {
			switch p := w.requests[i].VMs[j].Phase; p {
			case besteffort.Done, besteffort.Failed:
			case besteffort.Waiting, besteffort.Running, besteffort.Suspended:
				count[p]++
			default:
				count[p]++
				busy = true
			}
		}
	}
	c.tell(count)
	if busy && c.StepEvery > soon {
		time.AfterFunc(soon, c.Wake)
	}
}

func (c *Controller) tell(count map[besteffort.Phase]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count = count
}
