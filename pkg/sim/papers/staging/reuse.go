// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// deployed is the result of one run of the reuse experiment.
type deployed struct {
	// mean is the mean number of seconds for which a virtual machine waits only for its image: from
	// when it has its place, or would have it if the image were there, until it runs.
	mean  float64
	sent  int     // transfers
	ready []int64 // when each virtual machine began to run, in order
}

// by returns how many virtual machines had started by a time.
func (d *deployed) by(seconds int64) int {
	n, _ := slices.BinarySearch(d.ready, seconds+1)
	return n
}

// cache keeps a limited number of images on a node. As on the testbed of the thesis, it evicts the
// image with the fewest uses; among equals, the oldest.
type cache struct {
	size   int
	images []string // the oldest first
	uses   map[string]int
}

func (c *cache) has(image string) bool { return slices.Contains(c.images, image) }

// use counts a use of an image and adds the image to the cache if it is not there. gone is the
// image that the cache evicts for it; empty if none.
func (c *cache) use(image string) (gone string) {
	if c.uses == nil {
		c.uses = map[string]int{}
	}
	c.uses[image]++
	if c.has(image) {
		return ""
	}
	if len(c.images) == c.size {
		gone = slices.MinFunc(c.images, func(a, b string) int { return cmp.Compare(c.uses[a], c.uses[b]) })
		c.images = slices.DeleteFunc(c.images, func(i string) bool { return i == gone })
		delete(c.uses, gone)
	}
	c.images = append(c.images, image)
	return gone
}

// deploy simulates a trace of the reuse experiment with the service's planner. The virtual machines
// of a request run at the same time, and each node receives an image once for a request. If cached
// is true, the image stays.
func (o *Options) deploy(ctx context.Context, t reuseTrace, cached bool, run int) (deployed, error) {
	begin := sim.Second(0)
	timeline := sim.NewTimeline(begin)
	options := sim.QueueOptions{
		Rules:  besteffort.Rules{Backfilling: besteffort.None},
		Images: staging.Queue{Rate: o.Measured.Rate * megabyte, Avoid: true},
	}
	for n := range o.Nodes {
		options.Nodes = append(options.Nodes, besteffort.Node{Name: nodeName(n), Free: o.capacity()})
	}
	if cached {
		options.Keep = sim.KeepForever
	}
	queue, err := sim.NewQueue(timeline, options)
	if err != nil {
		return deployed{}, err
	}
	d := deployment{queue: queue, begin: begin, images: map[string]string{}, free: map[string][]span.Instant{}, sent: map[string]bool{}}
	if cached {
		d.caches = map[string]*cache{}
		for _, n := range options.Nodes {
			d.caches[n.Name] = &cache{size: o.Cache}
		}
	}
	for _, n := range options.Nodes {
		d.free[n.Name] = slices.Repeat([]span.Instant{begin}, o.CPUs)
	}
	queue.Happened = d.happened
	for i, w := range t.works(o.Seed, run) {
		r := besteffort.Request{ID: fmt.Sprintf("b%03d", i), Shape: shape(), Duration: w.duration, Parallel: true, Image: o.image(imageID(w.image))}
		if !cached {
			r.Image.ID = ownImage(w.image, r.ID)
		}
		d.images[r.ID] = r.Image.ID
		for k := range min(w.vms, o.slots()) {
			r.VMs = append(r.VMs, besteffort.VM{ID: fmt.Sprintf("%s/%d", r.ID, k)})
		}
		timeline.At(begin.Add(w.submitted), sim.Arriving, func() error { queue.Submit(sim.Work{Request: r}); return nil })
	}
	if err := timeline.Run(ctx, span.Forever); err != nil {
		return deployed{}, fmt.Errorf("%s: %w", t.name, err)
	}
	if queue.Left() > 0 {
		return deployed{}, fmt.Errorf("%s: %d virtual machines never ran", t.name, queue.Left())
	}
	d.result.mean, d.result.sent = d.waited/float64(len(d.result.ready)), len(d.sent)
	return d.result, nil
}

// deployment is the state of a run of the reuse experiment.
type deployment struct {
	queue  *sim.Queue
	begin  span.Instant
	images map[string]string         // by request
	free   map[string][]span.Instant // the instants since which the free places of a node are free
	caches map[string]*cache         // by node
	sent   map[string]bool
	waited float64
	result deployed
}

// happened measures how long each virtual machine waited after its place was free and its request
// had arrived, and updates the caches.
func (d *deployment) happened(c sim.Change) error {
	switch c.Phase {
	case besteffort.Staging:
		for _, t := range d.queue.Images.Transfers {
			d.sent[t.ID] = true
		}
	case besteffort.Starting:
		places := d.free[c.Node]
		since := slices.Min(places)
		d.free[c.Node] = slices.Delete(slices.Clone(places), slices.Index(places, since), slices.Index(places, since)+1)
		d.waited += float64(c.At - max(since, d.submitted(c.VM)))
		d.result.ready = append(d.result.ready, int64(c.At-d.begin))
		d.keep(c.Node, d.images[c.Request])
	case besteffort.Stopping:
		d.free[c.Node] = append(d.free[c.Node], c.At)
	}
	return nil
}

func (d *deployment) submitted(vm string) span.Instant {
	all := d.queue.Outcomes()
	return all[slices.IndexFunc(all, func(o *sim.Outcome) bool { return o.VM == vm })].Submitted
}

// keep counts a use of an image in a node's cache.
func (d *deployment) keep(node, image string) {
	c := d.caches[node]
	if c == nil {
		return
	}
	gone := c.use(image)
	all := maps.Clone(d.queue.Images.Pools)
	all[node] = slices.DeleteFunc(slices.Clone(all[node]), func(e staging.Entry) bool { return e.Image.ID == gone })
	d.queue.Images.Pools = all
}
