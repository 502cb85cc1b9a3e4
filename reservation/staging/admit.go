// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Nodes returns the nodes that will have an image at an instant; see Spans.
func (s State) Nodes(image string, at span.Instant) map[string]bool {
	nodes := map[string]bool{}
	for node, spans := range s.Spans(image) {
		if slices.ContainsFunc(spans, func(w span.Span) bool { return w.Contains(at) }) {
			nodes[node] = true
		}
	}
	return nodes
}

func (e *Entry) serves(at span.Instant) bool { return e.From <= at && at <= e.Expire }

// use makes a demand use the image until w ends.
func (e *Entry) use(w span.Span) {
	if !e.Lasting {
		e.Expire = max(e.Expire, w.End)
		return
	}
	if !e.Promised.Empty() {
		w = span.Span{Start: min(e.Promised.Start, w.Start), End: max(e.Promised.End, w.End)}
	}
	e.Promised = w
}

// stay returns the span in which the image occupies space.
func (e *Entry) stay() stay {
	if e.Lasting {
		return stay{e.Image, e.Promised}
	}
	return stay{e.Image, span.Span{Start: e.From, End: e.Expire}}
}

// serves reports whether a demand that needs the image from the instant at on can rely on the
// transfer. A transfer under way serves from its end on. If images do not age, an image that a
// later demand uses stays during the gap before it (erratum E000-6); a demand that starts before
// the transfer's deadline cannot rely on the transfer (erratum E000-7). A transfer that was due
// before it began promises nothing until it has ended.
func (t *Transfer) serves(at span.Instant, s *State) bool {
	return t.there(s) <= at && (!s.Ages || at <= t.Expire)
}

// there returns the instant from which a demand can rely on the transfer; Forever if none can.
func (t *Transfer) there(s *State) span.Instant {
	switch {
	case !t.Started && t.Deadline <= s.At:
		return span.Forever
	case t.Started && t.Deadline <= t.Start:
		return t.End
	case t.Started:
		return min(t.Deadline, t.End)
	}
	return t.Deadline
}

// Admit returns the state including the demand: the demand reuses pools and transfers on the nodes
// that will have the image, and adds one new transfer for each other node (paper 000, Algorithms 1
// and 4). The error is a *Refusal.
//
// A pool keeps an image until the latest end of all demands that use it (errata E000-1, E000-2).
// Admit first checks the room in pools, then the transfers. A demand that needs no new transfer is
// not refused because other transfers are late, and no demand is refused because of transfers that
// are already hopeless.
func (s State) Admit(site Site, now span.Instant, d Demand) (State, error) {
	a := newAccepted(site, s.without(now), func(d Demand) State {
		draft := newDraft(s.without(now), site, len(d.Nodes))
		draft.enter(d)
		return draft.State
	})
	return a.Admission().Admit(d)
}

// without returns s at now, without the entries that have expired before.
func (s State) without(now span.Instant) State {
	pools := make(map[string][]Entry, len(s.Pools))
	for node, entries := range s.Pools {
		pools[node] = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Expire <= now })
	}
	return State{At: now, Ages: s.Ages, Transfers: slices.Clone(s.Transfers), Pools: pools}
}

// draft is a state under construction; nothing else uses its lists.
type draft struct {
	State
	site    Site
	first   map[imageOnNode]int32 // index of the first transfer of an image to a node
	next    []int32               // index of the next such transfer, by transfer; 0 if there is none
	ids     map[string]bool
	entered int64
}

type imageOnNode struct{ node, image string }

// newDraft returns a draft that reuses the lists of s; more is about the number of transfers that
// will be added.
func newDraft(s State, site Site, more int) *draft {
	n := len(s.Transfers) + more
	d := &draft{State: s, site: site, first: make(map[imageOnNode]int32, n), next: make([]int32, 0, n), ids: make(map[string]bool, n)}
	d.Transfers = slices.Grow(d.Transfers, more)
	d.Ages = site.Lifetime > 0
	for i := range d.Transfers {
		d.note(i, &d.Transfers[i])
	}
	return d
}

// note enters the transfer with the index i, the last one so far, into the indexes.
func (d *draft) note(i int, t *Transfer) {
	d.next = append(d.next, 0)
	key := imageOnNode{t.Node, t.Image.ID}
	if last, ok := d.first[key]; ok {
		for d.next[last] != 0 {
			last = d.next[last]
		}
		d.next[last] = int32(i)
	} else {
		d.first[key] = int32(i)
	}
	d.ids[t.ID] = true
	d.entered = max(d.entered, t.Entered)
}

// to yields the transfers of an image to a node, in the order of State.Transfers.
func (d *draft) to(p imageOnNode) iter.Seq[*Transfer] {
	return func(yield func(*Transfer) bool) {
		i, ok := d.first[p]
		for ok && yield(&d.Transfers[i]) {
			i = d.next[i]
			ok = i != 0
		}
	}
}

// enter adds what a demand needs on each of its nodes. A demand that began before now uses the
// images that are there and gets no new transfer.
func (d *draft) enter(demand Demand) {
	begun := demand.Span.Start < d.At || demand.Span.Start == d.At && demand.Joining
	var seen map[string]bool
	if len(demand.Nodes) > 1 {
		seen = make(map[string]bool, len(demand.Nodes))
	}
	for _, node := range demand.Nodes {
		if seen[node] {
			continue
		}
		if seen != nil {
			seen[node] = true
		}
		if !d.reuse(node, demand) && !begun {
			d.transfer(node, demand)
		}
	}
}

// enterLate adds transfers to the nodes where a Joining demand lacks its image and no transfer is
// under way or overdue. These transfers are due before they can begin: they delay no other
// transfers, and no other demand relies on them.
func (d *draft) enterLate(demand Demand) {
	for _, node := range demand.Nodes {
		if !d.pooled(node, demand) && !d.coming(imageOnNode{node, demand.Image.ID}) {
			d.transfer(node, demand)
		}
	}
}

// coming reports whether a transfer of an image to a node is under way or overdue.
func (d *draft) coming(p imageOnNode) bool {
	for t := range d.to(p) {
		if t.Started || t.Deadline <= d.At {
			return true
		}
	}
	return false
}

func (d *draft) transfer(node string, demand Demand) {
	d.Transfers = append(d.Transfers, Transfer{
		ID: d.fresh(demand.ID + "/" + node), Image: demand.Image, Node: node,
		Deadline: demand.Span.Start, Entered: d.entered + 1, Expire: demand.Span.End.Add(d.site.Lifetime),
	})
	i := len(d.Transfers) - 1
	d.note(i, &d.Transfers[i])
}

// reuse makes a demand use an image that a node has or will have, preferably from the pool, and
// reports whether there is one.
func (d *draft) reuse(node string, demand Demand) bool {
	if d.pooled(node, demand) {
		return true
	}
	at := max(demand.Span.Start, d.At)
	for t := range d.to(imageOnNode{node, demand.Image.ID}) {
		if t.serves(at, &d.State) {
			t.Expire = max(t.Expire, demand.Span.End.Add(d.site.Lifetime))
			return true
		}
	}
	return false
}

// pooled makes a demand use the image in the pool of a node, and reports whether it is there.
func (d *draft) pooled(node string, demand Demand) bool {
	at := max(demand.Span.Start, d.At)
	for i := range d.Pools[node] {
		if e := &d.Pools[node][i]; e.Image.ID == demand.Image.ID && e.serves(at) {
			e.use(span.Span{Start: demand.Span.Start, End: demand.Span.End.Add(d.site.Lifetime)})
			return true
		}
	}
	return false
}

// fresh returns an id that no transfer has: id, or id with a suffix.
func (d *draft) fresh(id string) string {
	name := id
	for n := 2; d.ids[name]; n++ {
		name = fmt.Sprintf("%s/%d", id, n)
	}
	return name
}

// Advance returns the state at now: transfers that Schedule would have begun since s.At are under
// way or have become entries, and expired entries are removed.
func (s State) Advance(site Site, now span.Instant) State {
	if now < s.At {
		return s
	}
	next := State{At: now, Ages: site.Lifetime > 0, Pools: maps.Clone(s.Pools)}
	if next.Pools == nil {
		next.Pools = map[string][]Entry{}
	}
	over := map[string]bool{}
	begun := map[string]Transfer{}
	p := layOut(site, s.At, s)
	for _, t := range p.all() {
		switch {
		case t.End <= now && (t.Started || t.Start <= now):
			next.Pools[t.Node] = arrived(next.Pools[t.Node], t)
			over[t.ID] = true
		case !t.Started && t.Start < now:
			t.Started = true
			begun[t.ID] = t
		}
	}
	for _, t := range s.Transfers {
		if begun, ok := begun[t.ID]; ok {
			t = begun
		}
		if !over[t.ID] {
			next.Transfers = append(next.Transfers, t)
		}
	}
	return next.without(now)
}

// arrived returns the entries of a pool, including the image of a transfer that has ended.
func arrived(entries []Entry, t Transfer) []Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		if e := &entries[i]; e.Image.ID == t.Image.ID && t.End <= e.Expire {
			e.Expire = max(e.Expire, t.Expire)
			return entries
		}
	}
	return append(entries, Entry{Image: t.Image, From: t.End, Expire: t.Expire})
}
