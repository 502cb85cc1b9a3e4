// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// mostPieces is the largest number of periods in which the search for an earliest start looks.
	mostPieces = 64
	// mostWork is the largest number of transfers that one Admission lays out to find earliest
	// starts. That takes some ten milliseconds, during which the user waits for the answer.
	mostWork = 25_000
)

// earliest returns a start at which a refused demand would be accepted; 0 if it finds none. The
// pools of the demand's nodes change at certain instants. Between two of them, a later start is
// never worse, if there is one channel. So earliest tests each such period at its end and bisects
// the first good one. The last period ends when the transfers could follow all others. earliest may
// miss an earlier start with several channels, with full pools, and with so many transfers that it
// cannot test every period and treats the remaining ones as one.
func (a *Admission) earliest(d Demand) span.Instant {
	left := (mostWork - a.work) / 2 // the rest is for the next refusal
	accepted := func(start span.Instant) bool {
		moved := d
		moved.Span = span.New(start, d.Span.Seconds())
		allowed, n := a.allows(moved)
		a.work, left = a.work+n+1, left-n-1
		return allowed
	}
	first, pieces := d.Span.Start+1, left/2
	all := a.turns(d)
	for i, turn := range all {
		if turn < first || left < pieces && i+1 < len(all) {
			continue
		}
		if left <= 0 {
			return 0
		}
		if !accepted(turn) {
			first = turn + 1
			continue
		}
		for first < turn && left > 0 {
			if middle := first + (turn-first)/2; accepted(middle) {
				turn = middle
			} else {
				first = middle + 1
			}
		}
		return turn
	}
	return 0
}

// turns returns the ends of these periods, in order.
func (a *Accepted) turns(d Demand) []span.Instant {
	var list []span.Instant
	// change adds the instants around the arrival and the expiry of an image, relative to the
	// demand's start.
	change := func(from, expire span.Instant) {
		length := span.Instant(d.Span.Seconds() + a.site.Lifetime)
		list = append(list, from-1, from-length, expire, expire+1)
	}
	for _, node := range d.Nodes {
		for _, e := range a.before.Pools[node] {
			change(e.From, e.Expire)
		}
		for _, i := range a.nodes()[node] {
			change(a.before.Transfers[i].Deadline, a.before.Transfers[i].Expire)
		}
	}
	last := a.followingAll(d)
	list = append(list, last)
	list = slices.DeleteFunc(list, func(t span.Instant) bool {
		return t <= d.Span.Start || t >= span.Forever-span.Instant(longest)
	})
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) > mostPieces {
		list = append(list[:mostPieces], last)
	}
	return list
}

// followingAll returns a start that is late enough for the transfers of a demand to follow all
// others and, if pools are limited, for its pools to be empty.
func (a *Accepted) followingAll(d Demand) span.Instant {
	if a.line != nil {
		return a.line.following(d.Image, d.Nodes).Add(a.site.Margin)
	}
	site, before := a.site, a.before
	now := before.At
	if site.Limit > 0 {
		for _, p := range needed(before, d.Nodes) {
			for _, l := range p.all {
				if l.at != span.Forever {
					now = max(now, l.at)
				}
			}
		}
	}
	site.Strategy, site.Limit, site.Lifetime = EDF, 0, 0
	all := before
	all.Transfers = slices.Clone(before.Transfers)
	for _, node := range d.Nodes {
		all.Transfers = append(all.Transfers, Transfer{Image: d.Image, Node: node, Deadline: span.Forever})
	}
	end := now
	p := layOut(site, now, all)
	for _, t := range p.all() {
		end = max(end, t.End)
	}
	if end == span.Forever { // those without a deadline are laid out just in time for the end of time
		end = a.afterDeadlines(site, d, now)
	}
	return end.Add(site.Margin)
}

// afterDeadlines returns when the transfers of a demand have ended if they begin, one after the other,
// after all others and the deadlines of these.
func (a *Accepted) afterDeadlines(site Site, d Demand, now span.Instant) span.Instant {
	end := now
	p := layOut(site, now, a.before)
	for _, t := range p.all() {
		end = max(end, t.End, t.Deadline)
	}
	for _, node := range d.Nodes {
		end = end.Add(site.fastest(&Transfer{Image: d.Image, Node: node}))
	}
	return end
}
