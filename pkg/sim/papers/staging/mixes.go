// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"context"
	"fmt"
	"math"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// setup is a configuration in which a mix runs.
type setup struct {
	name string
	// machines is true if work runs in virtual machines, which takes longer.
	machines bool
	suspend  bool
	images   bool // images must be sent
	reuse    bool
	strategy staging.Strategy
}

// The setups of the thesis: the first four are those of tables 8.3 to 8.7, the next two those of
// tables 4.1 and 4.2, and the last measures the peak of disk under EDF.
var (
	plainSetup       = setup{name: "no virtual machines"}
	predeployedSetup = setup{name: "predeployed", machines: true, suspend: true}
	prefetchedSetup  = setup{name: "prefetched", machines: true, suspend: true, images: true, strategy: staging.JIT}
	reusedSetup      = setup{name: "prefetched and reused", machines: true, suspend: true, images: true, reuse: true, strategy: staging.JIT}

	backfilledSetup = setup{name: "predeployed, backfilled", machines: true}
	sentSetup       = setup{name: "sent, backfilled", machines: true, images: true, strategy: staging.JIT}

	earlySetup = setup{name: "prefetched by EDF", machines: true, suspend: true, images: true, strategy: staging.EDF}
)

// setups returns the setups in which a mix runs. The peak under EDF depends on the reservations
// alone, so it is measured only with long work, which takes the least time to simulate.
func (m mix) setups() []setup {
	all := []setup{plainSetup, predeployedSetup, prefetchedSetup, reusedSetup}
	if m.Length == long {
		all = append(all, earlySetup)
	}
	if m == fewLong || m == manyShort {
		all = append(all, backfilledSetup, sentSetup)
	}
	return all
}

// worked is the result of one run of a mix in a setup.
type worked struct {
	finish         int64 // seconds until all best-effort work was done
	taken, refused int   // reservations
	images         int   // virtual machines of all requests
	sent           int   // transfers of reservations and best-effort work
	peak           int64 // most bytes of images on a node
	utilization    float64
	suspensions    int
}

// floor simulates one run of a mix in a setup.
type floor struct {
	options  *Options
	setup    setup
	timeline *sim.Timeline
	begin    span.Instant
	queue    *sim.Queue
	pools    *pools
	images   map[string]string    // of best-effort requests
	had      map[string]string    // the node of the image that a virtual machine uses
	sent     map[string]bool      // transfers of best-effort work
	behind   []besteffort.Request // submitted, and not yet shown to the planner
	outcome  worked
	taken    []reservation.Reservation
}

// work runs a mix in a setup, once.
func (o *Options) work(ctx context.Context, m mix, s setup, run int) (worked, error) {
	load := o.workload(m, run)
	f, err := o.newFloor(s)
	if err != nil {
		return worked{}, err
	}
	f.outcome.images = load.images()
	if err := f.book(ctx, load.wishes); err != nil {
		return worked{}, err
	}
	for i, w := range load.works {
		f.timeline.At(f.begin.Add(w.submitted), sim.Arriving, func() error { f.submit(i, w); return nil })
	}
	if err := f.timeline.Run(ctx, span.Forever); err != nil {
		return worked{}, fmt.Errorf("%v, %s: %w", m, s.name, err)
	}
	if left := f.queue.Left() + len(f.behind); left > 0 {
		return worked{}, fmt.Errorf("%v, %s: %d virtual machines or requests never ran", m, s.name, left)
	}
	return f.account(), nil
}

func (o *Options) newFloor(s setup) (*floor, error) {
	begin := sim.Second(0)
	f := &floor{options: o, setup: s, timeline: sim.NewTimeline(begin), begin: begin, images: map[string]string{}, had: map[string]string{}, sent: map[string]bool{}}
	queue := sim.QueueOptions{Rules: besteffort.Rules{Suspend: s.suspend, Backfilling: besteffort.Aggressive}, Images: staging.Queue{Avoid: s.reuse, Limit: o.PoolLimit * megabyte}}
	if s.machines {
		queue.Rules.Overheads = o.Overheads
	}
	for n := range o.Nodes {
		queue.Nodes = append(queue.Nodes, besteffort.Node{Name: nodeName(n), Free: o.capacity()})
	}
	if s.images {
		queue.Images.Rate = o.Rate * megabyte
	}
	if s.reuse {
		queue.Keep = sim.KeepForever
	}
	var err error
	if f.queue, err = sim.NewQueue(f.timeline, queue); err != nil {
		return nil, err
	}
	f.pools = newPools(f.queue, o, s.reuse)
	f.queue.Happened = f.happened
	return f, nil
}

// book books all reservations at the beginning, and schedules the transfers of their images.
func (f *floor) book(ctx context.Context, wishes []wish) error {
	c, err := f.options.newCounter(ctx, f.setup.strategy, f.begin)
	if err != nil {
		return err
	}
	for i, w := range wishes {
		image := ""
		switch {
		case f.setup.reuse:
			image = imageID(w.image)
		case f.setup.images:
			image = ownImage(w.image, fmt.Sprintf("r%04d", i))
		}
		r, taken, err := c.book(ctx, w, image)
		if err != nil {
			return err
		}
		if taken {
			f.hold(r)
		}
	}
	f.taken, f.outcome.taken, f.outcome.refused = c.taken, len(c.taken), c.refused
	if f.setup.images {
		f.send(c)
	}
	return nil
}

// send schedules the transfers of the reservations' images, all at the beginning.
func (f *floor) send(c *counter) {
	copies := c.copies()
	scheduled, _ := c.state().Schedule(c.facts.Site, f.begin)
	for _, t := range scheduled {
		n := copies[imageOnNode{t.Node, t.Image.ID}]
		f.timeline.At(t.End, sim.Ending, func() error { f.pools.arrive(t, n); return nil })
		f.timeline.At(t.Expire, sim.Ending, func() error { f.pools.end(t, n); return nil })
	}
}

// hold keeps best-effort work off the part of its nodes that a reservation uses.
func (f *floor) hold(r reservation.Reservation) {
	var holds []besteffort.Hold
	for _, c := range r.Claims {
		holds = append(holds, besteffort.Hold{Node: c.Host, Span: c.Span, Resources: shape().Scale(int64(c.Slices))})
	}
	f.queue.Hold(r.ID, holds...)
	f.timeline.At(r.Span.End, sim.Ending, func() error { f.queue.Release(r.ID); return nil })
}

// submit adds a best-effort request to the requests that wait for the planner.
func (f *floor) submit(n int, w work) {
	r := besteffort.Request{ID: fmt.Sprintf("b%05d", n), Shape: shape(), Duration: w.duration}
	if f.setup.machines {
		r.Duration = int64(math.Ceil(float64(w.duration) * (1 + f.options.Slowdown)))
	}
	if f.setup.images {
		r.Image = f.options.image(imageID(w.image))
		f.images[r.ID] = r.Image.ID
	}
	for i := range w.vms {
		r.VMs = append(r.VMs, besteffort.VM{ID: fmt.Sprintf("%s/%d", r.ID, i)})
	}
	f.behind = append(f.behind, r)
	f.show()
}

// show passes waiting requests to the planner, as long as it has no more than Depth virtual
// machines beyond those that can run at once.
func (f *floor) show() {
	for len(f.behind) > 0 && f.queue.Left() < f.options.slots()+f.options.Depth {
		next := f.behind[0]
		f.behind = f.behind[1:]
		f.queue.Submit(sim.Work{Request: next})
	}
}

// happened passes more requests to the planner when work ends, and keeps account of images: a
// virtual machine uses one on its node from its first start until it is done.
func (f *floor) happened(c sim.Change) error {
	switch c.Phase {
	case besteffort.Suspending:
		f.outcome.suspensions++
	case besteffort.Staging:
		for _, t := range f.queue.Images.Transfers {
			f.sent[t.ID] = true
		}
	case besteffort.Done:
		f.show()
	}
	image, known := f.images[c.Request]
	if !known {
		return nil
	}
	if !f.setup.reuse {
		image += "/" + c.VM
	}
	switch c.Phase {
	case besteffort.Starting:
		f.had[c.VM] = c.Node
		f.pools.use(c.Node, image)
	case besteffort.Done:
		f.pools.leave(f.had[c.VM], image)
		delete(f.had, c.VM)
	}
	return nil
}

// account returns the result of the run.
func (f *floor) account() worked {
	w, end, busy := f.outcome, f.begin, int64(0)
	for _, o := range f.queue.Outcomes() {
		end = max(end, o.Ended)
		busy += o.Ran
	}
	for _, r := range f.taken {
		for _, c := range r.Claims {
			busy += int64(c.Slices) * max(0, int64(min(c.Span.End, end)-c.Span.Start))
		}
	}
	w.finish = int64(end - f.begin)
	w.peak, w.sent = f.pools.peak, f.pools.sent+len(f.sent)
	if w.finish > 0 {
		w.utilization = float64(busy) / float64(w.finish*int64(f.options.slots()))
	}
	return w
}
