// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// pools keep account of the images on the nodes, which reservations and best-effort work share. An
// image stays as long as something uses it. At the instant at which the last use ends it is still
// there for uses that begin at that instant.
type pools struct {
	queue *sim.Queue
	size  int64
	// shared is true if best-effort work may use these images; otherwise each use has its own copy.
	shared bool
	copies map[imageOnNode]*copied
	used   map[string]int64 // bytes of images, by node
	peak   int64
	sent   int // transfers so far
}

type imageOnNode struct{ node, image string }

// copied is an image on a node. users counts its present uses.
type copied struct{ users int }

func newPools(q *sim.Queue, o *Options, shared bool) *pools {
	return &pools{queue: q, size: o.ImageSize * megabyte, shared: shared, copies: map[imageOnNode]*copied{}, used: map[string]int64{}}
}

// use begins a use of an image on a node, and adds the image if it is not there.
func (p *pools) use(node, image string) {
	at := imageOnNode{node, image}
	c := p.copies[at]
	if c == nil {
		c = &copied{}
		p.copies[at] = c
		p.fill(node, p.size)
	}
	c.users++
}

// fill adds bytes to a node's; a negative number removes them.
func (p *pools) fill(node string, bytes int64) {
	p.used[node] += bytes
	p.peak = max(p.peak, p.used[node])
}

// arrive adds the image of a reservation, which uses it until its end. If nothing is shared, each
// of the reservation's virtual machines on the node has a copy.
func (p *pools) arrive(t staging.Transfer, copies int) {
	p.sent++
	p.use(t.Node, t.Image.ID)
	if !p.shared {
		p.fill(t.Node, int64(copies-1)*p.size)
	}
	if p.shared && !slices.ContainsFunc(p.queue.Images.Pools[t.Node], func(e staging.Entry) bool { return e.Image.ID == t.Image.ID }) {
		all := maps.Clone(p.queue.Images.Pools)
		if all == nil {
			all = map[string][]staging.Entry{}
		}
		all[t.Node] = append(slices.Clone(all[t.Node]), staging.Entry{Image: t.Image, From: p.queue.Timeline.Now(), Expire: span.Forever})
		p.queue.Images.Pools = all
	}
	p.queue.Look()
}

// end ends the use of a reservation's image and removes its copies.
func (p *pools) end(t staging.Transfer, copies int) {
	if !p.shared {
		p.fill(t.Node, -int64(copies-1)*p.size)
	}
	p.leave(t.Node, t.Image.ID)
}

// leave ends one use of an image on a node. The image is removed with its last use, unless another
// use begins at the same instant.
func (p *pools) leave(node, image string) {
	at := imageOnNode{node, image}
	if p.copies[at].users--; p.copies[at].users > 0 {
		return
	}
	p.queue.Look()
	p.queue.Timeline.After(0, sim.Looking, func() error {
		c := p.copies[at]
		if c == nil || c.users > 0 {
			return nil
		}
		delete(p.copies, at)
		p.fill(node, -p.size)
		if p.shared {
			all := maps.Clone(p.queue.Images.Pools)
			all[node] = slices.DeleteFunc(slices.Clone(all[node]), func(e staging.Entry) bool { return e.Image.ID == image })
			p.queue.Images.Pools = all
		}
		return nil
	})
}
