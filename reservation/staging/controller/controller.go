// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// ErrNoGlance means that the cloud has no Glance.
var ErrNoGlance = errors.New("there is no Glance in the catalog")

// Options are the dependencies and settings of a Controller.
type Options struct {
	Records  Records
	Cloud    ImageCache
	Glance   Glance
	Promises Promises
	// Demands returns the images that live reservations need. They are in the order in which the
	// reservations were made, in which they were also admitted.
	Demands func(f *staging.Facts, live []reservation.Reservation) []staging.Demand
	// Known shows decisions what the controller knows; nil is one of its own.
	Known  *Known
	Hosts  Hosts
	Leases job.Leases
	Rules  Rules
	Now    func() span.Instant
	NewID  func() string // a random UUID
	Log    *slog.Logger
}

// Controller puts images on hosts, in the replica that has the lease. Every replica has the stored
// records in memory. It is safe for concurrent use.
type Controller struct {
	Options
	wake chan struct{}
	done counts

	// Only steps set these, one step at a time: the epoch of the lease in which the cloud was
	// cleared, when old transfers were last deleted, and the image about which Glance last did not
	// answer.
	cleared    int64
	tidied     span.Instant
	unanswered string

	mu         sync.Mutex
	stored     Stored
	read       bool
	generation int64 // counts publications
	heard      []Word

	laying sync.Mutex // held while a request lays out a plan
	laid   atomic.Pointer[laid]
}

// laid is a plan and the generation of the records from which it was made.
type laid struct {
	*plan
	generation int64
}

// leaseName is the name of the lease for requesting images from the cloud.
const leaseName = "images"

const (
	// leaseTTL is for how long the lease remains when its controller has stopped; stepTimeout
	// limits one step with its calls to the cloud and Glance.
	leaseTTL    = 8 * time.Second
	stepTimeout = time.Minute
	// lookTimeout limits the Glance calls of a step. They come last, and the next step waits for
	// them.
	lookTimeout = 5 * time.Second
	// learned is for how many seconds facts about an image that were learned outside a step
	// override records that a step may have read before. It is longer than a step.
	learned = 120
	// remembered is for how many seconds the cloud's reports are kept, mostHeard the largest number
	// of reports that are kept.
	remembered, mostHeard = 3600, 10_000
)

// New returns a controller. It works when its Job runs.
func New(o Options) *Controller {
	c := &Controller{Options: o, wake: make(chan struct{}, 1)}
	if c.Known == nil {
		c.Known = &Known{}
	}
	c.Known.facts.Store(o.Rules.facts(&Stored{}, nil, o.Now()))
	return c
}

// Known is what a controller knows of images, for decisions on the reservations that the controller
// itself depends on. It is empty before its controller is made.
type Known struct {
	facts      atomic.Pointer[staging.Facts]
	glanceless atomic.Int64 // when Glance was last found missing
}

// Facts returns what this replica has read about images; empty facts before the first reading. It
// returns nil while there is no Glance: decisions then ignore images.
func (k *Known) Facts(now span.Instant) *staging.Facts {
	if k.withoutGlance(now) {
		return nil
	}
	return k.facts.Load()
}

// withoutGlance reports whether Glance was missing from the catalog a short while ago.
func (k *Known) withoutGlance(now span.Instant) bool {
	at := k.glanceless.Load()
	return at != 0 && span.Instant(at).Add(lookEvery) > now
}

// Job returns the controller's job.
func (c *Controller) Job() job.Job {
	return job.Job{Name: "images", Every: c.Rules.Poll, Wake: c.wake, Step: c.Step}
}

// Wake makes the next step begin at once.
func (c *Controller) Wake() { job.Poke(c.wake) }

// Hear records a report of the cloud. Every replica receives all reports, so that a replica that
// takes over the lease has them too.
func (c *Controller) Hear(w Word) {
	w.At = c.Now()
	c.mu.Lock()
	c.heard = append(c.heard, w)
	c.heard = c.heard[max(0, len(c.heard)-mostHeard):]
	for len(c.heard) > 0 && c.heard[0].At < w.At.Add(-remembered) {
		c.heard = c.heard[1:]
	}
	ours := slices.ContainsFunc(c.stored.Transfers, func(t Transfer) bool {
		return t.Outcome == "" && t.Host == w.Host && (slices.Contains(w.Cached, t.Image) || slices.Contains(w.Failed, t.Image))
	})
	c.mu.Unlock()
	if ours {
		c.Wake()
	}
}

func (c *Controller) words() []Word {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Word(nil), c.heard...)
}

// Refresh reads the stored records.
func (c *Controller) Refresh(ctx context.Context) error {
	s, err := c.Records.StagedImages(ctx, c.Now())
	if err != nil {
		return err
	}
	c.publish(s)
	return nil
}

// publish makes the records s visible in this replica, together with what was learned about images
// since s was read. It returns their generation.
func (c *Controller) publish(s Stored) (generation int64) {
	hosts, now := c.hostNames(), c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	known := imagesByID(&s)
	var newer Change
	for _, i := range c.stored.Images {
		if i.Looked >= now.Add(-learned) && i.Looked > known[i.ID].Looked {
			newer.Images = append(newer.Images, i)
		}
	}
	s.Apply(newer)
	c.stored, c.read = s, true
	c.generation++
	c.Known.facts.Store(c.Rules.facts(&s, hosts, now))
	return c.generation
}

func (c *Controller) hostNames() []string {
	hosts := c.Hosts.Snapshot()
	names := make([]string, hosts.Len())
	for i := range names {
		names[i] = hosts.Host(i).Name
	}
	return names
}

// Step runs the Job once.
func (c *Controller) Step(ctx context.Context) error {
	held, err := job.Hold(ctx, c.Leases, leaseName, leaseTTL, c.run)
	if err != nil || held {
		return err
	}
	return c.Refresh(ctx)
}

// run does one step: it ends transfers by the cloud's reports, and begins those that are due. Then
// it reads unknown images from Glance, and begins the transfers that become due thereby.
func (c *Controller) run(ctx context.Context, held *job.Held) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	s, err := c.Records.StagedImages(ctx, c.Now())
	if err != nil {
		return err
	}
	now, live := c.Now(), c.live()
	change := c.Rules.settle(&s, c.words(), now)
	if err := c.store(ctx, held.Lease, &s, change); err != nil {
		return err
	}
	c.tellEnds(ctx, change.Transfers)
	if err := c.tidy(ctx, held.Lease, &s, live, now); err != nil {
		return err
	}
	err = c.carryOut(ctx, held, &s, live, now)
	looked, news, lookErr := c.observe(ctx, &s, live, now)
	if stored := c.store(ctx, held.Lease, &s, looked); stored != nil {
		return errors.Join(err, lookErr, stored)
	}
	if news { // a transfer may be due at once
		err = errors.Join(err, c.carryOut(ctx, held, &s, live, now))
	}
	return errors.Join(err, lookErr)
}

// store stores a change, and applies it to the records s.
func (c *Controller) store(ctx context.Context, lease job.Lease, s *Stored, change Change) error {
	if change.Empty() {
		return nil
	}
	if err := c.Records.ChangeStagedImages(ctx, lease, change); err != nil {
		return err
	}
	s.Apply(change)
	return nil
}
