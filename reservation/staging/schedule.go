// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Schedule lays out the transfers of a state from now on, ordered by Start, and fills in their
// Repository, Seconds, Start and End. late contains those that would end after their deadline minus
// the margin, or that run already and end after their deadline. While any is late, all are laid out
// as early as possible.
//
// Earliest deadline first follows paper 000, Algorithm 2, with erratum E000-3: the chain begins
// now, or when the running transfer ends, which is not preempted. With several repositories and
// limited nodes this is list scheduling in the same order: each transfer gets the first free time,
// from the repository that delivers it first.
func (s State) Schedule(site Site, now span.Instant) (scheduled, late []Transfer) {
	p := layOut(site, now, s)
	return p.all(), p.late
}

// Schedule lays out transfers as State.Schedule does, for nodes without other images.
func (s Site) Schedule(now span.Instant, transfers []Transfer) (scheduled, late []Transfer) {
	return State{At: now, Transfers: transfers}.Schedule(s, now)
}

// plan is a layout of the transfers of a state.
type plan struct {
	running, laid []Transfer // transfers under way, and the rest in the order of deadlines
	late          []Transfer
}

// all returns the transfers, sorted by start.
func (p *plan) all() []Transfer {
	all := slices.Concat(p.running, p.laid)
	slices.SortStableFunc(all, func(a, b Transfer) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), byDeadline(a, b), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func byDeadline(a, b Transfer) int {
	return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.Entered, b.Entered))
}

// layOut schedules the transfers that have not started. A transfer that would be late even without
// any other transfer is hopeless: it must not delay any that can be in time.
func layOut(site Site, now span.Instant, s State) plan {
	p := plan{}
	all := make([]Transfer, 0, len(s.Transfers))
	for i := range s.Transfers {
		t := &s.Transfers[i]
		if !t.Started {
			all = append(all, *t)
			continue
		}
		if p.running = append(p.running, *t); t.End > t.Deadline {
			p.late = append(p.late, *t)
		}
	}
	sortByDeadline(all)
	var pending, hopeless []Transfer
	for i := range all {
		if site.hopeless(now, &all[i]) {
			hopeless = append(hopeless, all[i])
		}
	}
	var late []Transfer
	if len(hopeless) == 0 {
		_, p.laid, late = site.firstInTime(now, s, all)
	} else if p.laid, late = site.channels(now, s).edf(now, all); len(late) > len(hopeless) {
		for i := range all {
			if !site.hopeless(now, &all[i]) {
				pending = append(pending, all[i])
			}
		}
		p.laid, late = site.yielding(now, s, pending, hopeless)
	}
	p.late = append(p.late, late...)
	return p
}

// yielding lays out hopeless transfers so that they make no other transfer late. First it puts them
// into the gaps that remain when the others run as late as possible, and then lets all transfers
// run in that order, as early as possible. If that makes others late, hopeless transfers run in the
// time that remains after the others.
func (s Site) yielding(now span.Instant, state State, pending, hopeless []Transfer) (laid, late []Transfer) {
	c := s.channels(now, state)
	if laid, ok := c.jit(now, pending); ok {
		last, _ := c.edf(now, hopeless)
		order := slices.Concat(pending, hopeless)
		if laid, late := s.channels(now, state).edf(now, byStart(order, slices.Concat(laid, last))); len(late) <= len(hopeless) {
			return laid, late
		}
	}
	c, laid, late = s.firstInTime(now, state, pending)
	last, lost := c.edf(now, hopeless)
	return append(laid, last...), append(late, lost...)
}

// byStart returns transfers in the order of their starts in laid, a layout of them.
func byStart(transfers, laid []Transfer) []Transfer {
	places := make([]int, len(laid))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(laid[a].Start, laid[b].Start) })
	order := make([]Transfer, len(places))
	for i, at := range places {
		order[i] = transfers[at]
	}
	return order
}

// sortByDeadline sorts the list by deadline; it is fast if the list is sorted already.
func sortByDeadline(list []Transfer) {
	for i := 1; i < len(list); i++ {
		if a, b := &list[i-1], &list[i]; a.Deadline > b.Deadline || a.Deadline == b.Deadline && a.Entered > b.Entered {
			slices.SortStableFunc(list, byDeadline)
			return
		}
	}
}

// firstInTime lays transfers out by the site's strategy, and by the other strategy if some are late
// with the first. On one channel without limits each strategy finds a layout if one exists.
// Otherwise a strategy may fail if the other succeeds. If a strategy has found a layout, it finds
// one later too, as long as the plan was followed.
func (s Site) firstInTime(now span.Instant, state State, order []Transfer) (c *channels, laid, late []Transfer) {
	if s.Strategy == JIT {
		c = s.channels(now, state)
		if laid, ok := c.jit(now, order); ok {
			return c, laid, nil
		}
	}
	c = s.channels(now, state)
	laid, late = c.edf(now, order)
	if len(late) > 0 && s.Strategy == EDF && (s.Limit > 0 || len(s.Links) > 0 || len(s.Repositories) > 1) {
		other := s.channels(now, state)
		if laid, ok := other.jit(now, order); ok {
			return other, laid, nil
		}
	}
	return c, laid, late
}

// edf lays transfers out in the order of the list, each as early as possible.
//
// With a Lifetime, no transfer begins before its release, which is equally long before each
// deadline. Sorted by deadline, the transfers are then also sorted by release, and this order stays
// optimal on one channel. Proof: if two neighbors are in the opposite order and are exchanged, the
// one with the earlier deadline ends no later than the pair did before, and the other no later than
// the earlier of the two deadlines.
func (c *channels) edf(now span.Instant, order []Transfer) (laid, late []Transfer) {
	laid = make([]Transfer, 0, len(order))
	for i := range order {
		t := c.place(&order[i], now)
		c.take(&t)
		laid = append(laid, t)
		if t.End > c.site.due(&t) {
			late = append(late, t)
		}
	}
	return laid, late
}

// due returns the instant at which a transfer must have ended: its deadline less the margin.
func (s Site) due(t *Transfer) span.Instant { return t.Deadline.Add(-s.Margin) }

// release returns the earliest instant at which a transfer may begin.
func (s Site) release(t *Transfer, now span.Instant) span.Instant {
	if s.Lifetime > 0 {
		return max(now, t.Deadline.Add(-s.Lifetime))
	}
	return now
}

// hopeless reports whether a transfer would be late even without any other transfer.
func (s Site) hopeless(now span.Instant, t *Transfer) bool {
	return s.release(t, now).Add(s.fastest(t)) > s.due(t)
}

// never is the duration of a transfer of an image that no repository has.
const never = math.MaxInt64

// fastest returns the least duration of a transfer, in seconds.
func (s Site) fastest(t *Transfer) int64 {
	fastest := int64(never)
	for _, r := range s.Repositories {
		if t.Image.at(r.Name) {
			fastest = min(fastest, s.Seconds(t, r))
		}
	}
	return fastest
}

// at reports whether a repository has the image.
func (i *Image) at(repository string) bool {
	return len(i.Repositories) == 0 || slices.Contains(i.Repositories, repository)
}

// longest is the largest number of seconds for one transfer, so that sums do not overflow.
const longest = 1 << 50

// Seconds returns the duration of a transfer from a repository, in seconds.
func (s Site) Seconds(t *Transfer, from Repository) int64 {
	if t.Seconds > 0 {
		return t.Seconds
	}
	rate := from.Rate
	if link := s.Links[t.Node]; link > 0 && (rate <= 0 || link < rate) {
		rate = link
	}
	return secondsAt(t.Image.Size, rate)
}

// secondsAt returns the seconds for size bytes at a rate in bytes a second, rounded up.
func secondsAt(size int64, rate float64) int64 {
	if rate <= 0 || size <= 0 {
		return 0
	}
	seconds := float64(size) / rate
	if whole := math.Round(seconds); math.Abs(seconds-whole) < 1e-9*whole {
		seconds = whole // a quotient that is whole in decimals
	}
	if seconds >= longest {
		return longest
	}
	return int64(math.Ceil(seconds))
}

// channels are the repositories, links and pools that transfers occupy over time.
type channels struct {
	site         Site
	repositories []timeline          // by index in the site
	links        map[string]timeline // of nodes with a limit
	pools        pools
}

// channels returns the site's channels, with the transfers under way.
func (s Site) channels(now span.Instant, state State) *channels {
	c := &channels{site: s, repositories: make([]timeline, len(s.Repositories)), links: map[string]timeline{}}
	if s.Limit > 0 {
		c.pools = pooled(state)
	}
	for i := range state.Transfers {
		if t := state.Transfers[i]; t.Started {
			t.End = max(t.End, now) // an overdue transfer may end at any time
			c.occupy(&t)
		}
	}
	return c
}

// place returns t with its first possible start, and the repository that delivers it first.
func (c *channels) place(t *Transfer, now span.Instant) Transfer {
	best := *t
	best.Repository, best.Start, best.End = "", span.Forever, span.Forever
	release := c.release(t, now)
	for i, r := range c.site.Repositories {
		if !t.Image.at(r.Name) {
			continue
		}
		seconds := c.site.Seconds(t, r)
		start := c.free(i, t.Node, release, seconds)
		if end := start.Add(seconds); end < best.End {
			best.Repository, best.Seconds, best.Start, best.End = r.Name, seconds, start, end
		}
	}
	return best
}

// release returns when a transfer may begin at the earliest, by its lifetime and by the pool of its
// node.
func (c *channels) release(t *Transfer, now span.Instant) span.Instant {
	release := c.site.release(t, now)
	if c.site.Limit > 0 {
		release = c.pools[t.Node].room(t.Image, release, t.Expire, c.site.Limit)
	}
	return release
}

// free returns the first start, at or after at, at which both a repository and a node are free for
// that many seconds.
func (c *channels) free(repository int, node string, at span.Instant, seconds int64) span.Instant {
	for {
		start := c.repositories[repository].free(at, seconds)
		if c.site.Links[node] > 0 {
			start = c.links[node].free(start, seconds)
		}
		if start == at {
			return start
		}
		at = start
	}
}

// take adds a transfer that was placed.
func (c *channels) take(t *Transfer) {
	c.occupy(t)
	if c.site.Limit > 0 {
		c.pools.add(t.Node, t.stay())
	}
}

// occupy marks the repository and the link of a transfer as busy. A transfer from a repository that
// the site does not have occupies the first one.
func (c *channels) occupy(t *Transfer) {
	w := span.Span{Start: t.Start, End: t.End}
	i := max(0, slices.IndexFunc(c.site.Repositories, func(r Repository) bool { return r.Name == t.Repository }))
	if i < len(c.repositories) {
		c.repositories[i] = c.repositories[i].take(w)
	}
	if c.site.Links[t.Node] > 0 {
		c.links[t.Node] = c.links[t.Node].take(w)
	}
}

// jit lays transfers out as late as possible (paper 000, Algorithm 3, with erratum E000-4), from
// the last deadline backwards: each ends at its deadline less the margin, or when the transfer
// after it occupies the channel. ok is false if a transfer would have to begin earlier than release
// allows.
func (c *channels) jit(now span.Instant, order []Transfer) (laid []Transfer, ok bool) {
	laid = make([]Transfer, 0, len(order))
	for i := range slices.Backward(order) {
		t, ok := c.placeLast(&order[i], now)
		if !ok {
			return nil, false
		}
		c.take(&t)
		laid = append(laid, t)
	}
	slices.Reverse(laid)
	return laid, true
}

// placeLast returns t with its last possible start before its deadline, and the repository that
// allows it. ok is false if there is none.
func (c *channels) placeLast(t *Transfer, now span.Instant) (last Transfer, ok bool) {
	due := c.site.due(t)
	release := c.release(t, now)
	for i, r := range c.site.Repositories {
		if !t.Image.at(r.Name) {
			continue
		}
		seconds := c.site.Seconds(t, r)
		start := c.freeBefore(i, t.Node, due, seconds)
		if start >= release && (!ok || start > last.Start) {
			last, ok = *t, true
			last.Repository, last.Seconds, last.Start, last.End = r.Name, seconds, start, start.Add(seconds)
		}
	}
	return last, ok
}

// freeBefore returns the last start at which both a repository and a node are free for a transfer
// of that many seconds that ends at or before by.
func (c *channels) freeBefore(repository int, node string, by span.Instant, seconds int64) span.Instant {
	for {
		start := c.repositories[repository].freeBefore(by, seconds)
		if c.site.Links[node] > 0 {
			start = c.links[node].freeBefore(start.Add(seconds), seconds)
		}
		if start.Add(seconds) == by {
			return start
		}
		by = start.Add(seconds)
	}
}
