// SPDX-License-Identifier: Apache-2.0

// Package controller runs best-effort work: it creates servers in the names of their owners,
// suspends them before reservations, resumes them afterwards, and deletes them when their time is
// over. It stores what it will do before it does it, so that a process that takes over finds what
// may have been done.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// Options are the dependencies and settings of a Controller.
type Options struct {
	Records     Records
	Servers     Servers
	Actions     ServerActions
	Allocations Allocations
	Trusts      Trusts
	// View returns the present hosts and reservations.
	View    func() state.ClusterView
	Planner state.Planner
	Leases  job.Leases
	// Untrusted returns why the inventory is untrusted; "" if it is trusted. While it is untrusted,
	// nothing is started or resumed.
	Untrusted func() string
	Limits    state.Limits

	StepEvery time.Duration
	Now       func() span.Instant
	Log       *slog.Logger
}

// Controller runs the queue of best-effort work, in the process that has the lease.
type Controller struct {
	Options
	wake  chan struct{}
	hosts state.Hosts
	next  int // VM to check for its allocation, see checks

	mu       sync.Mutex
	count    map[besteffort.Phase]int
	expected map[string]besteffort.Expectation
	planned  span.Instant
}

const (
	leaseName = "besteffort"
	// leaseTTL is short: servers may have to be suspended after this process has stopped.
	leaseTTL = 8 * time.Second
)

// New returns a controller. Its Job does the work.
func New(o Options) *Controller {
	return &Controller{Options: o, wake: make(chan struct{}, 1), hosts: state.Hosts{}}
}

// Wake starts the next step at once, because there is a new request, or reservations have changed.
func (c *Controller) Wake() { job.Poke(c.wake) }

// Job returns the controller's work.
func (c *Controller) Job() job.Job {
	return job.Job{Name: "best-effort work", Every: c.StepEvery, Wake: c.wake, Step: c.Step}
}

// Step does the work once, if this process has the lease.
func (c *Controller) Step(ctx context.Context) error {
	held, err := job.Hold(ctx, c.Leases, leaseName, leaseTTL, c.run)
	if !held {
		c.report(nil) // another process counts
	}
	return err
}

// step contains the state on which one step works.
type step struct {
	held     *job.Held
	end      context.CancelCauseFunc // no action follows
	now      span.Instant
	view     state.ClusterView
	requests []state.Request
	stored   map[string]state.VM // as they are in the records, by id
	seen     map[string]state.Sight
	blind    map[string]bool // requests whose servers could not be seen
}

// run is one step: it observes the servers, plans, stores what is decided, and carries it out.
func (c *Controller) run(ctx context.Context, held *job.Held) error {
	requests, err := c.Records.OpenBestEffort(ctx)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s := &step{held: held, end: end, requests: requests, stored: map[string]state.VM{}, seen: map[string]state.Sight{}, blind: map[string]bool{}}
	for i := range requests {
		for _, v := range requests[i].VMs {
			s.stored[v.ID] = v
		}
	}
	unseen := c.observe(ctx, s)
	if err := held.Ensure(ctx); err != nil { // before what is decided is stored
		return err
	}
	s.now, s.view = c.Now(), c.View()
	plan := c.decide(s)
	c.publish(plan.Expectations(s.now), s.now)
	if err := c.save(ctx, s); err != nil {
		return err
	}
	failed := c.act(ctx, s)
	c.report(s.requests)
	return errors.Join(unseen, failed)
}
