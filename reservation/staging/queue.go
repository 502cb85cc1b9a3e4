// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Queue is the transfer channel of best-effort work: first in, first out, with its own share of the
// bandwidth (paper 000, "best-effort", and thesis p. 24).
type Queue struct {
	Rate float64 // bytes a second; 0 takes no time
	// Avoid makes a request use a transfer that is already queued, instead of one of its own.
	Avoid bool
	// Limit is the largest total size, in bytes, of the images in the pool of a node; 0 means no
	// limit. A transfer without room waits, and so do those behind it.
	Limit int64
	// Transfers are queued or under way, in the order of the queue, with Start and End.
	Transfers []Transfer
	Pools     map[string][]Entry
}

// Ready returns the earliest instant, at or after now, at which the node can have the image: now if
// it is in the pool, otherwise at the end of a queued transfer or of a new one at the end of the
// queue. fresh is this new transfer, without an id and an expiry, which the caller sets; nil if
// none is necessary. If there is never room for the image, at is span.Forever.
func (q Queue) Ready(now span.Instant, node string, image Image) (at span.Instant, fresh *Transfer) {
	for _, e := range q.Pools[node] {
		if e.Image.ID == image.ID && e.From <= now && now < e.Expire {
			return now, nil
		}
	}
	if q.Avoid {
		for _, t := range q.Transfers {
			if t.Node == node && t.Image.ID == image.ID {
				return max(now, t.End), nil
			}
		}
	}
	t := Transfer{Image: image, Node: node, Seconds: secondsAt(image.Size, q.Rate), Deadline: span.Forever}
	t.Start = q.room(q.end(now), node, image)
	t.End = t.Start.Add(t.Seconds)
	return t.End, &t
}

// end returns when the channel has finished all queued transfers.
func (q Queue) end(now span.Instant) span.Instant {
	for _, t := range q.Transfers {
		now = max(now, t.End)
	}
	return now
}

// room returns the first instant, at or after at, at which the pool of the node has room for the
// image.
func (q Queue) room(at span.Instant, node string, image Image) span.Instant {
	if q.Limit == 0 {
		return at
	}
	all := pools{}
	all.addEntries(node, q.Pools[node])
	for i := range q.Transfers {
		if t := &q.Transfers[i]; t.Node == node {
			all.add(node, t.stay())
		}
	}
	return all[node].room(image, at, span.Forever, q.Limit)
}

// With returns the queue with a transfer at its end.
func (q Queue) With(t Transfer) Queue {
	q.Transfers = append(slices.Clip(q.Transfers), t)
	return q
}
