// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"math"
	"slices"
)

// testbed simulates the system on which the thesis measured image reuse. Requests start in the
// order of their arrival as soon as there are places for all of their virtual machines, on the
// first nodes with free places, whatever images these have. Then their images are sent and share
// the channel. The testbed makes a local copy of a cached image for each virtual machine. The
// service's planner, in contrast, prefers nodes that have the image, and its nodes copy on write.
type testbed struct {
	now     float64
	free    []int // places, by node
	caches  []cache
	cached  bool
	image   float64 // seconds of the whole channel for one image
	copying float64 // seconds in which a node makes a copy from its cache
	sending []*delivery
	running []*delivery
	waited  float64
	result  deployed
}

// delivery is the transfer of an image for the virtual machines of a request on a node.
type delivery struct {
	node, vms, image int
	begun            float64
	left             float64 // seconds of the whole channel
	duration, ends   float64
}

// onTestbed runs a trace of the reuse experiment on the testbed.
func (o *Options) onTestbed(t reuseTrace, cached bool, run int) deployed {
	b := &testbed{cached: cached, image: float64(o.ImageSize) / o.Measured.Rate}
	if cached && o.Measured.Copy > 0 {
		b.copying = float64(o.ImageSize) / o.Measured.Copy
	}
	for range o.Nodes {
		b.free, b.caches = append(b.free, o.CPUs), append(b.caches, cache{size: o.Cache})
	}
	queue := t.works(o.Seed, run)
	for len(queue) > 0 || len(b.sending) > 0 || len(b.running) > 0 {
		for len(queue) > 0 && float64(queue[0].submitted) <= b.now && b.begin(queue[0], o.slots()) {
			queue = queue[1:]
		}
		next := math.Inf(1)
		if len(queue) > 0 && float64(queue[0].submitted) > b.now {
			next = float64(queue[0].submitted)
		}
		b.advance(next)
	}
	b.result.mean = b.waited / float64(len(b.result.ready))
	return b.result
}

// begin starts a request if there are enough places, and reports whether it did.
func (b *testbed) begin(w work, most int) bool {
	vms, places := min(w.vms, most), 0
	for _, n := range b.free {
		places += n
	}
	if places < vms {
		return false
	}
	for node := range b.free {
		n := min(b.free[node], vms)
		if n == 0 {
			continue
		}
		vms, b.free[node] = vms-n, b.free[node]-n
		d := &delivery{node: node, vms: n, image: w.image, begun: b.now, left: b.image, duration: float64(w.duration)}
		if b.cached && b.caches[node].has(imageID(w.image)) {
			d.left = 0
		} else {
			b.result.sent++
		}
		b.sending = append(b.sending, d)
	}
	return true
}

// advance simulates until the next transfer ends, or until the time until.
func (b *testbed) advance(until float64) {
	channel := 0
	for _, d := range b.sending {
		if d.left > 0 {
			channel++
		}
	}
	for _, d := range b.sending {
		until = min(until, b.now+d.left*float64(channel))
	}
	for _, d := range b.running {
		until = min(until, d.ends)
	}
	for _, d := range b.sending {
		if d.left > 0 {
			d.left = max(0, d.left-(until-b.now)/float64(channel))
		}
	}
	b.now = until
	const instant = 1e-6
	b.sending = slices.DeleteFunc(b.sending, func(d *delivery) bool {
		if d.left > instant {
			return false
		}
		b.deliver(d)
		return true
	})
	b.running = slices.DeleteFunc(b.running, func(d *delivery) bool {
		if d.ends > b.now+instant {
			return false
		}
		b.free[d.node] += d.vms
		return true
	})
}

// deliver starts the virtual machines whose image has arrived.
func (b *testbed) deliver(d *delivery) {
	if b.cached {
		b.caches[d.node].use(imageID(d.image))
	}
	ready := b.now + float64(d.vms)*b.copying // one copy after the other
	for range d.vms {
		b.waited += ready - d.begun
		at, _ := slices.BinarySearchFunc(b.result.ready, int64(math.Ceil(ready)), cmp.Compare[int64])
		b.result.ready = slices.Insert(b.result.ready, at, int64(math.Ceil(ready)))
	}
	d.ends = ready + d.duration
	b.running = append(b.running, d)
}
