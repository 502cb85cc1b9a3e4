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

// ErrNoGlance says that the cloud has no Glance.
var ErrNoGlance = errors.New("there is no Glance in the catalog")

// Options are what a Controller is made of.
type Options struct {
	Records  Records
	Cloud    Cloud
	Glance   Glance
	Promises Promises
	// Demands gives what live reservations need of images, in the order in which they were
	// made: the same as decisions about them are made by.
	Demands func(f *staging.Facts, live []reservation.Reservation) []staging.Demand
	Hosts   Hosts
	Leases  job.Leases
	Rules   Rules
	Now     func() span.Instant
	NewID   func() string // a random UUID
	Log     *slog.Logger
}

// Controller has images put on hosts, where it holds the lease, and knows in every process
// what is stored of them. It is safe for concurrent use.
type Controller struct {
	Options
	wake  chan struct{}
	facts atomic.Pointer[staging.Facts]
	done  counts
	// glanceless is when it was last found that there is no Glance.
	glanceless atomic.Int64
	promised   atomic.Pointer[Promises]

	// What steps note, of which there is one at a time: the epoch of the lease in which the
	// cloud was cleared, when transfers of long ago were forgotten, and the image about which
	// Glance gave no answer last.
	cleared    int64
	tidied     span.Instant
	unanswered string

	mu         sync.Mutex
	stored     Stored
	read       bool
	generation int64 // counts what was published
	heard      []Word

	laying sync.Mutex // while a plan is laid out for who asks
	laid   atomic.Pointer[laid]
}

// laid is a plan with the generation that it is of.
type laid struct {
	*plan
	generation int64
}

// leaseName is the right to ask the cloud for images.
const leaseName = "images"

const (
	// leaseTTL is for how long the lease outlives a controller that has stopped, and
	// stepTimeout bounds one step, in which the cloud and Glance are asked.
	leaseTTL    = 8 * time.Second
	stepTimeout = time.Minute
	// lookTimeout bounds what Glance is asked in a step: it comes last, and the next step
	// waits for it.
	lookTimeout = 5 * time.Second
	// learned is for how many seconds it is kept, whatever a step has read, what was learned
	// of an image beside it: longer than a step takes.
	learned = 120
	// remembered is for how long it is kept, in seconds, what the cloud said; mostHeard how
	// much of it.
	remembered, mostHeard = 3600, 10_000
)

// New gives a controller. Job lets it work.
func New(o Options) *Controller {
	c := &Controller{Options: o, wake: make(chan struct{}, 1)}
	c.facts.Store(o.Rules.facts(&Stored{}, nil, o.Now()))
	if o.Promises != nil {
		c.Attach(o.Promises)
	}
	return c
}

// Attach gives the controller the reservations, where they are opened after it.
func (c *Controller) Attach(p Promises) { c.promised.Store(&p) }

// Facts gives what is known of images here; before the first look nothing is. They are nil
// while there is no Glance: then no decision looks at images.
func (c *Controller) Facts() *staging.Facts {
	if c.withoutGlance(c.Now()) {
		return nil
	}
	return c.facts.Load()
}

// withoutGlance says that there was no Glance a while ago.
func (c *Controller) withoutGlance(now span.Instant) bool {
	at := c.glanceless.Load()
	return at != 0 && span.Instant(at).Add(lookEvery) > now
}

// Job is the controller's work.
func (c *Controller) Job() job.Job {
	return job.Job{Name: "images", Every: c.Rules.Poll, Wake: c.wake, Step: c.Step}
}

// Wake lets the next step begin at once.
func (c *Controller) Wake() { job.Poke(c.wake) }

// Hear notes what the cloud says. Every process hears it, so that one that takes over the
// lease knows it as well.
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

// Refresh reads what is stored.
func (c *Controller) Refresh(ctx context.Context) error {
	s, err := c.Records.StagedImages(ctx, c.Now())
	if err != nil {
		return err
	}
	c.publish(s)
	return nil
}

// publish has all know what is stored, and what was learned of images since that was read.
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
	c.facts.Store(c.Rules.facts(&s, hosts, now))
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

// Step does once what Job does again and again.
func (c *Controller) Step(ctx context.Context) error {
	held, err := job.Hold(ctx, c.Leases, leaseName, leaseTTL, c.run)
	if err != nil || held {
		return err
	}
	return c.Refresh(ctx)
}

// run does one step: it settles what the cloud reported, carries out what is due by what is
// known, then asks Glance for what is not known, and carries out what follows from that.
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
	if news { // it may be due at once
		err = errors.Join(err, c.carryOut(ctx, held, &s, live, now))
	}
	return errors.Join(err, lookErr)
}

// store stores a change, and takes it over into s.
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
