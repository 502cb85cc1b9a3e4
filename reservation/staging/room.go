// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"math"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Spans returns the spans in which each node will have an image, as far as the state knows: it is in
// the pool then, or a transfer with a deadline by then brings it. An image that expires at exactly an
// instant is kept for the next user at that instant (E000-6).
func (s State) Spans(image string) map[string][]span.Span {
	nodes := map[string][]span.Span{}
	for node, entries := range s.Pools {
		for _, e := range entries {
			if e.Image.ID == image {
				nodes[node] = append(nodes[node], span.Span{Start: e.From, End: e.Expire + 1})
			}
		}
	}
	for i := range s.Transfers {
		t := &s.Transfers[i]
		if t.Image.ID != image {
			continue
		}
		w := span.Span{Start: t.there(&s), End: span.Forever}
		if s.Ages {
			w.End = t.Expire + 1
		}
		if !w.Empty() {
			nodes[t.Node] = append(nodes[t.Node], w)
		}
	}
	return nodes
}

// OneChannel reports whether one image is sent after the other, and pools have no limit.
func (a *Accepted) OneChannel() bool { return a.line != nil }

// Seconds returns how long transfers of an image take, to one of the nodes after the other. An empty
// name stands for a node whose link has no limit.
func (a *Accepted) Seconds(image Image, nodes ...string) (seconds int64) {
	for _, node := range nodes {
		seconds = min(seconds+min(a.site.fastest(&Transfer{Image: image, Node: node}), longest), longest)
	}
	return seconds
}

// FirstRoom returns the first start, at or after from, for which new transfers that take that many
// seconds together can be in time, so that no other transfer is late because of them; ok is false if
// there is none. If other transfers may become needless, hurting is true: then those that would be
// late do not count, and the start is one before which nothing is possible. Where several channels or
// full pools must be considered, FirstRoom returns from.
func (a *Accepted) FirstRoom(seconds int64, from span.Instant, hurting bool) (start span.Instant, ok bool) {
	switch {
	case seconds >= longest: // no repository has the image
		return 0, false
	case a.line == nil || hurting && len(a.line.late) > 0:
		return from, true
	case len(a.line.late) > 0:
		return 0, false
	}
	return a.line.firstRoom(seconds, from, hurting)
}

// firstRoom returns what FirstRoom does if no job is late. The new transfers follow all jobs with a
// deadline at or before the start. Between two deadlines, a later start is better until the transfers
// may not begin at once; then it is worse, since they occupy a later time.
func (l *line) firstRoom(seconds int64, from span.Instant, hurting bool) (span.Instant, bool) {
	margin, lifetime := l.site.Margin, l.site.Lifetime
	if seconds == 0 { // it waits for no other transfer
		return max(from, l.now.Add(margin)), lifetime == 0 || margin <= lifetime
	}
	if lifetime > 0 && seconds+margin > lifetime {
		return 0, false
	}
	for i := sort.Search(len(l.jobs), func(i int) bool { return l.jobs[i].deadline > from }); i <= len(l.jobs); i++ {
		first, last, free, delay := from, span.Forever-1, l.freeAt(i), int64(math.MaxInt64)
		if i > 0 {
			first = max(first, l.jobs[i-1].deadline)
		}
		if i < len(l.jobs) {
			last = l.jobs[i].deadline - 1
			if !hurting {
				delay = l.delays[i]
			}
		}
		start := max(first, free.Add(seconds+margin))
		taken := max(free, l.now)
		if lifetime > 0 {
			taken = max(taken, start.Add(-lifetime))
		}
		if start <= last && int64(taken.Add(seconds)-free) <= delay {
			return start, true
		}
	}
	return 0, false
}

// delaysOf returns, for each job, for how many seconds more than before the channel may be busy when
// the job comes, so that neither it nor a later one is late.
func delaysOf(jobs []job) []int64 {
	delays := make([]int64, len(jobs))
	later := int64(math.MaxInt64)
	for i := range slices.Backward(jobs) {
		j := &jobs[i]
		if j.seconds > 0 { // others wait for no job
			free, end := j.run(j.free)
			later = int64(max(free-j.free, 0)) - j.seconds + min(int64(j.due-end), later)
		}
		delays[i] = later
	}
	return delays
}
