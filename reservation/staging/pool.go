// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// stay is a span in which an image occupies space in a pool.
type stay struct {
	image Image
	span  span.Span
}

// level is the number of bytes in use from an instant on, until the next level.
type level struct {
	at   span.Instant
	used int64
}

// levels are sorted by instant; before the first one nothing is in use.
type levels []level

// index returns the index of the level at an instant; -1 means before the first level.
func (l levels) index(at span.Instant) int {
	i, found := slices.BinarySearchFunc(l, at, func(l level, at span.Instant) int {
		switch {
		case l.at < at:
			return -1
		case l.at > at:
			return 1
		}
		return 0
	})
	if found {
		return i
	}
	return i - 1
}

func (l levels) used(at span.Instant) int64 {
	if i := l.index(at); i >= 0 {
		return l[i].used
	}
	return 0
}

// split returns the levels with a level that begins at the instant, and the index of that level.
func (l levels) split(at span.Instant) (levels, int) {
	i := l.index(at)
	if i >= 0 && l[i].at == at {
		return l, i
	}
	return slices.Insert(l, i+1, level{at, l.used(at)}), i + 1
}

// raise returns the levels with size more bytes in use during w.
func (l levels) raise(w span.Span, size int64) levels {
	l, from := l.split(w.Start)
	l, until := l.split(w.End)
	for i := from; i < until; i++ {
		l[i].used += size
	}
	return l
}

// pool is the space that images occupy on one node over time. If stays of the same image overlap,
// the image occupies its space once. Each level of an image begins where a level of the total
// begins.
type pool struct {
	all    levels
	images map[string]levels
	busy   map[string]timeline // when each image is there
}

func newPool() *pool { return &pool{images: map[string]levels{}, busy: map[string]timeline{}} }

func (p *pool) add(s stay) {
	id, from := s.image.ID, s.span.Start
	if s.span.Empty() {
		return
	}
	raise := func(until span.Instant) {
		if w := (span.Span{Start: from, End: until}); !w.Empty() {
			p.all, p.images[id] = p.all.raise(w, s.image.Size), p.images[id].raise(w, s.image.Size)
		}
	}
	for _, there := range p.busy[id] {
		if there.End <= from {
			continue
		}
		if there.Start >= s.span.End {
			break
		}
		raise(there.Start)
		from = max(from, there.End)
	}
	raise(s.span.End)
	p.busy[id] = p.busy[id].take(s.span)
}

// used returns the bytes that all images occupy at an instant; a nil pool is empty.
func (p *pool) used(at span.Instant) int64 {
	if p == nil {
		return 0
	}
	return p.all.used(at)
}

// room returns the first instant, at or after at, from which there is room for the image until it
// expires. If there is no such instant, the result is any instant at or after at. A nil pool is
// empty.
func (p *pool) room(image Image, at, expire span.Instant, limit int64) span.Instant {
	switch {
	case limit == 0:
		return at
	case image.Size > limit:
		return span.Forever
	case p == nil || at >= expire:
		return at
	}
	own := p.images[image.ID]
	o := own.index(at)
	for i := max(0, p.all.index(at)); i < len(p.all); i++ {
		l := p.all[i]
		if l.at >= expire && l.at > at {
			break
		}
		for o+1 < len(own) && own[o+1].at <= l.at {
			o++
		}
		used := l.used + image.Size
		if o >= 0 {
			used -= own[o].used
		}
		if used > limit {
			at = span.Forever
			if i+1 < len(p.all) {
				at = p.all[i+1].at
			}
		}
	}
	return at
}

// pools are the pools by the name of the node; a node without an entry has an empty pool.
type pools map[string]*pool

func (p pools) add(node string, s stay) {
	if p[node] == nil {
		p[node] = newPool()
	}
	p[node].add(s)
}

func (p pools) addEntries(node string, entries []Entry) {
	for i := range entries {
		p.add(node, entries[i].stay())
	}
}

// pooled returns what occupies space before anything is scheduled: the entries of the pools and the
// transfers under way.
func pooled(s State) pools {
	nodes := make(pools, len(s.Pools))
	for node, entries := range s.Pools {
		nodes.addEntries(node, entries)
	}
	for i := range s.Transfers {
		if t := &s.Transfers[i]; t.Started {
			nodes.add(t.Node, t.stay())
		}
	}
	return nodes
}

// stay returns the span in which the image occupies space: from the start of its transfer until it
// expires.
func (t *Transfer) stay() stay { return stay{t.Image, span.Span{Start: t.Start, End: t.Expire}} }

// needed returns what occupies space on the nodes in any schedule. The image of a transfer that has
// not started counts from its deadline on, when it arrives at the latest.
func needed(s State, nodes []string) pools {
	all := make(pools, len(nodes))
	for _, node := range nodes {
		if all[node] == nil {
			all[node] = newPool()
			all.addEntries(node, s.Pools[node])
		}
	}
	for i := range s.Transfers {
		t := &s.Transfers[i]
		if all[t.Node] == nil {
			continue
		}
		stay := t.stay()
		if !t.Started {
			stay.span.Start = t.Deadline
		}
		all.add(t.Node, stay)
	}
	return all
}

// overfull reports whether there is an instant at which after occupies more than the limit, and
// more than before does.
func overfull(before, after *pool, limit int64) bool {
	more := func(l level) bool {
		used := after.used(l.at)
		return used > limit && used > before.used(l.at)
	}
	return slices.ContainsFunc(after.all, more) ||
		slices.ContainsFunc(before.all, more) // an extension may begin where a stay ended
}
