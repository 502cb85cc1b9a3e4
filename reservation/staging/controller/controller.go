package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
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
func (c *Controller) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

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
	lease, held, err := c.Leases.Take(ctx, leaseName, leaseTTL)
	if err != nil {
		return err
	}
	if !held {
		return c.Refresh(ctx)
	}
	ctx, done := c.holding(ctx, lease)
	defer done()
	return c.act(ctx, lease)
}

// holding prolongs the lease while a step goes on, and ends the step where that fails.
func (c *Controller) holding(ctx context.Context, lease job.Lease) (step context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		for job.Pause(ctx, leaseTTL/3) == nil {
			if again, held, err := c.Leases.Take(ctx, leaseName, leaseTTL); err != nil || !held || again.Epoch != lease.Epoch {
				cancel()
			}
		}
	})
	return ctx, func() {
		cancel()
		renewal.Wait()
	}
}

// act looks at the world once, and does what follows.
func (c *Controller) act(ctx context.Context, lease job.Lease) error {
	s, err := c.Records.StagedImages(ctx, c.Now())
	if err != nil {
		return err
	}
	now, live := c.Now(), c.live()
	change := c.Rules.settle(&s, c.words(), now)
	if err := c.store(ctx, lease, &s, change); err != nil {
		return err
	}
	c.tellEnds(ctx, change.Transfers)
	if err := c.tidy(ctx, lease, &s, live, now); err != nil {
		return err
	}
	err = c.carryOut(ctx, lease, &s, live, now)
	looked, news, lookErr := c.look(ctx, &s, live, now)
	if stored := c.store(ctx, lease, &s, looked); stored != nil {
		return errors.Join(err, lookErr, stored)
	}
	if news { // it may be due at once
		err = errors.Join(err, c.carryOut(ctx, lease, &s, live, now))
	}
	return errors.Join(err, lookErr)
}

// carryOut has done what is due by what is known, and owners told.
func (c *Controller) carryOut(ctx context.Context, lease job.Lease, s *Stored, live []reservation.Reservation, now span.Instant) error {
	generation := c.publish(*s)
	p := c.plan(s, live, now)
	c.laid.Store(&laid{p, generation})
	cleared := c.clear(ctx, lease, s)
	err := c.begin(ctx, lease, s, p)
	return errors.Join(cleared, err, c.remark(ctx, p))
}

// tidy forgets what is over.
func (c *Controller) tidy(ctx context.Context, lease job.Lease, s *Stored, live []reservation.Reservation, now span.Instant) error {
	change := c.Rules.tidy(s, imagesOf(live), c.exists(now), now)
	if now >= c.tidied.Add(tidyEvery) {
		change.ForgetBefore, c.tidied = now.Add(-keep), now
	}
	return c.store(ctx, lease, s, change)
}

// clear takes back what another process has left on the cloud that had the lease before.
func (c *Controller) clear(ctx context.Context, lease job.Lease, s *Stored) error {
	if c.cleared == lease.Epoch || len(s.Transfers) == 0 {
		return nil
	}
	if err := c.Cloud.Clear(ctx); err != nil {
		return fmt.Errorf("take back what was left of a call for images: %w", err)
	}
	c.cleared = lease.Epoch
	return nil
}

// live are the live reservations with an image that can be looked up.
func (c *Controller) live() []reservation.Reservation {
	p := c.promised.Load()
	if p == nil {
		return nil
	}
	all := (*p).Live(span.Span{Start: c.Now(), End: span.Forever})
	live := make([]reservation.Reservation, 0, len(all))
	for _, r := range all {
		if r.Image != "" && c.Glance.IsID(r.Image) {
			live = append(live, r)
		}
	}
	return live
}

func imagesOf(live []reservation.Reservation) map[string]bool {
	ids := map[string]bool{}
	for _, r := range live {
		ids[r.Image] = true
	}
	return ids
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

// look asks Glance about images that reservations need and that were not looked at for a
// while, until it gives no answer: what is known stays good, and the next look begins with
// another image. news is that something was learned but that all is as it was.
func (c *Controller) look(ctx context.Context, s *Stored, live []reservation.Reservation, now span.Instant) (change Change, news bool, err error) {
	if c.withoutGlance(now) {
		return change, false, nil
	}
	ctx, done := context.WithTimeout(ctx, lookTimeout)
	defer done()
	known := imagesByID(s)
	for _, id := range c.stale(known, live, now) {
		found, gone, err := c.Glance.Look(ctx, id)
		if errors.Is(err, ErrNoGlance) {
			c.glanceless.Store(int64(now))
			return change, news, nil
		}
		if err != nil {
			c.unanswered = id
			return change, news, fmt.Errorf("look after the images of reservations: %w", err)
		}
		before, had := known[id]
		if gone {
			found = before
			found.ID, found.Gone = id, true
		}
		found.Looked = now
		before.Looked = now
		news = news || !had || found != before
		change.Images = append(change.Images, found)
	}
	return change, news, nil
}

// stale are the images about which Glance is to be asked now: that which gave no answer comes
// last.
func (c *Controller) stale(known map[string]Image, live []reservation.Reservation, now span.Instant) (ids []string) {
	seen := map[string]bool{}
	for _, r := range waiting(live, now) {
		if i, there := known[r.Image]; !seen[r.Image] && (!there || i.Looked <= now.Add(-lookEvery)) {
			ids = append(ids, r.Image)
		}
		seen[r.Image] = true
	}
	slices.SortStableFunc(ids, func(a, b string) int {
		switch c.unanswered {
		case a:
			return 1
		case b:
			return -1
		}
		return 0
	})
	return ids[:min(len(ids), looks)]
}

// exists says whether a host is in the cloud, as far as that is not in doubt.
func (c *Controller) exists(now span.Instant) func(host string) bool {
	if c.Hosts.Untrusted(now) != "" {
		return func(string) bool { return true }
	}
	hosts := c.Hosts.Snapshot()
	return func(name string) bool { _, there := hosts.Index(name); return there }
}

// unready says why a host can be sent nothing now.
func (c *Controller) unready() func(host string) string {
	hosts := c.Hosts.Snapshot()
	return func(name string) string {
		i, there := hosts.Index(name)
		if !there {
			return "the host is not in the cloud"
		}
		switch h := hosts.Host(i); {
		case h.Power == inventory.PowerSleeping || h.Power == inventory.PowerWaking:
			return "the host is switched off"
		case h.Failure() != "":
			return h.Failure()
		}
		return ""
	}
}

// plan looks at what is to come.
func (c *Controller) plan(s *Stored, live []reservation.Reservation, now span.Instant) *plan {
	f := c.facts.Load()
	return c.Rules.newPlan(s, f, live, c.Demands(f, live), c.unready(), now)
}

// begin has the cloud begin what is due. What is begun is stored before the cloud is asked,
// so that nobody asks for it again: after a crash in between, its bound ends it.
func (c *Controller) begin(ctx context.Context, lease job.Lease, s *Stored, p *plan) error {
	queued := int64(0)
	for _, batch := range p.due(int64(c.Rules.Poll / time.Second)) {
		rows := c.Rules.begin(batch, p, "req-"+c.NewID(), c.NewID, queued)
		if err := c.store(ctx, lease, s, Change{Transfers: rows}); err != nil {
			return err
		}
		c.publish(*s)
		// Storing may have taken long, and what follows must not come from two processes.
		if again, held, err := c.Leases.Take(ctx, leaseName, leaseTTL); err != nil || !held || again.Epoch != lease.Epoch {
			return err
		}
		if err := c.ask(ctx, lease, s, rows, p); err != nil {
			return err
		}
		queued = int64(rows[len(rows)-1].Expected - p.now)
	}
	return nil
}

// ask has the cloud carry out a call that is stored, and notes what it will not: hosts that
// it left out have failed, and where it was not asked the others wait.
func (c *Controller) ask(ctx context.Context, lease job.Lease, s *Stored, rows []Transfer, p *plan) error {
	hosts := make([]string, len(rows))
	for i, t := range rows {
		hosts[i] = t.Host
	}
	c.Log.InfoContext(ctx, "an image is put on hosts", "image", rows[0].Image, "hosts", hosts, "call", rows[0].Call)
	asked, err := c.Cloud.Cache(ctx, rows[0].Call, rows[0].Image, hosts)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("have image %s put on %d hosts: %w", rows[0].Image, len(hosts), err)
	left, _ := errors.AsType[*LeftOut](err)
	var ended []Transfer
	for _, t := range rows {
		t.Begun, t.Finished = t.Started, c.Now()
		switch {
		case left != nil && left.Hosts[t.Host] != nil:
			t.Outcome, t.Detail = Failed, fault.Of(left.Hosts[t.Host]).Message
		case !asked:
			t.Outcome, t.Detail = Undone, fault.Of(err).Message
			if u, was := p.undone[place{t.Image, t.Host}]; was {
				t.Started, t.Begun = u.Started, u.Started
			}
		default: // it may be under way, which its bound ends
			continue
		}
		ended = append(ended, t)
	}
	if stored := c.store(ctx, lease, s, Change{Transfers: ended}); stored != nil {
		return errors.Join(err, stored)
	}
	c.publish(*s)
	c.tellEnds(ctx, ended)
	return err
}

// tellEnds counts and logs how transfers have ended.
func (c *Controller) tellEnds(ctx context.Context, ended []Transfer) {
	for _, t := range ended {
		c.done.add(t)
		level := slog.LevelInfo
		if t.Outcome == Failed || t.Outcome == Undone {
			level = slog.LevelWarn
		}
		c.Log.Log(ctx, level, "the transfer of an image has ended", "image", t.Image, "host", t.Host, "outcome", string(t.Outcome),
			"detail", t.Detail, "seconds", int64(t.Finished-t.Begun), "call", t.Call, "reservations", t.Reservations)
	}
}
