// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// level is the size of the images on the fullest node from an instant on, until the next level.
type level struct {
	seconds int64 // since the beginning
	bytes   int64
}

// kept is the result of the disk experiment with a strategy.
type kept struct {
	taken, refused int
	transfers      int
	peak, sent     int64 // most bytes on a node: with a copy for each virtual machine, and without
	levels         []level
}

// keep books the reservations of the disk experiment, and follows the size of the images on the
// nodes until all reservations are over. As in the thesis' program, no reservations share an image,
// and each virtual machine has its own copy.
func (o *Options) keep(ctx context.Context, strategy staging.Strategy, run int) (kept, error) {
	begin := sim.Second(0)
	k := kept{}
	c, err := o.newCounter(ctx, strategy, begin)
	if err != nil {
		return k, err
	}
	for i, w := range o.diskTrace(run) {
		if _, _, err := c.book(ctx, w, ownImage(0, fmt.Sprintf("r%04d", i))); err != nil {
			return k, err
		}
	}
	state, copies := c.state(), c.copies()
	k.taken, k.refused, k.transfers = len(c.taken), c.refused, len(state.Transfers)
	for len(state.Transfers) > 0 || len(state.Pools) > 0 {
		if ctx.Err() != nil {
			return k, ctx.Err()
		}
		next := following(state, c.facts.Site)
		if next == span.Forever {
			break
		}
		state = state.Advance(c.facts.Site, next)
		fullest := int64(0)
		for node, entries := range state.Pools {
			full := int64(0)
			for _, e := range entries {
				full += e.Image.Size * int64(copies[imageOnNode{node, e.Image.ID}])
			}
			fullest, k.sent = max(fullest, full), max(k.sent, held(entries))
		}
		k.peak = max(k.peak, fullest)
		k.levels = append(k.levels, level{int64(next - begin), fullest})
	}
	return k, nil
}

// following returns the next instant after s.At at which an image arrives or expires.
func following(s staging.State, site staging.Site) span.Instant {
	next := span.Forever
	note := func(at span.Instant) {
		if at > s.At {
			next = min(next, at)
		}
	}
	scheduled, _ := s.Schedule(site, s.At)
	for _, t := range scheduled {
		note(t.End)
	}
	for _, entries := range s.Pools {
		for _, e := range entries {
			note(e.Expire)
		}
	}
	return next
}

// held returns the total size of images.
func held(entries []staging.Entry) (bytes int64) {
	for _, e := range entries {
		bytes += e.Image.Size
	}
	return bytes
}
