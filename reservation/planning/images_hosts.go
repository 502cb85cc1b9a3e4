// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// This file has the choice of hosts for one start, if a request has an image.

// try is the result of a choice: ok is true if the image can be on the hosts of claims in time. If it
// cannot, claims has the hosts that need the fewest transfers.
type try struct {
	claims []reservation.Claim
	ok     bool
}

// tryAt chooses hosts for a start at which there is room: those of docs/concepts.md "Which hosts" if
// the image can be on them in time; otherwise those that need the fewest transfers.
func (s imaging) tryAt(start span.Instant) try {
	s.staged.work -= len(s.order)
	claims := s.claims(start)
	if s.allows(claims, start) {
		return try{claims, true}
	}
	return s.fewestTransfers(start)
}

// imageWithoutClaims reports whether the image could be on hosts at the start of q without the reservations
// that hold hosts of q then. These also need and bring images.
func (s imaging) imageWithoutClaims(q calendar.Query) bool {
	window := q.Window(q.Ready)
	inTheWay := func(d staging.Demand) bool {
		return d.Span.Overlaps(window) && slices.ContainsFunc(d.Nodes, func(host string) bool {
			number, known := s.view.Hosts.numbers[host]
			return known && q.Hosts.Has(number)
		})
	}
	capacity := make([]resource.Vector, len(s.view.Hosts.names))
	for number := range q.Hosts.All() {
		capacity[number] = s.view.Hosts.Host(number).Capacity
	}
	empty := onCalendar(s.search, calendar.New(capacity, s.view.Now))
	empty.staged = newStaged(s.staged.image, s.staged.admission.Without(inTheWay).Admission())
	_, room := empty.find(q, calendar.PolicyFirstFit)
	return room && empty.imaging().tryAt(q.Ready).ok
}

func (s imaging) allows(claims []reservation.Claim, start span.Instant) bool {
	return s.staged.allows(planned, claims, s.query.Window(start))
}

// places returns all hosts with room at a start, in the order of docs/concepts.md "Which hosts".
func (s imaging) places(start span.Instant) []calendar.Room {
	if s.request.Kind == reservation.Instances {
		return s.rooms(start, s.request.Quantity, nil)
	}
	numbers := s.choose(len(s.order), start, nil)
	places := make([]calendar.Room, len(numbers))
	for i, number := range numbers {
		places[i] = calendar.Room{Host: number, Slices: 1}
	}
	return places
}

// claimsOn returns the claims on the first of places, up to the requested quantity.
func (s imaging) claimsOn(places []calendar.Room, start span.Instant) []reservation.Claim {
	if s.request.Kind == reservation.Instances {
		return s.fill(places, s.request.Quantity, start)
	}
	numbers := make([]int, 0, s.request.Quantity)
	for _, p := range places[:min(len(places), s.request.Quantity)] {
		numbers = append(numbers, p.Host)
	}
	return s.claimWhole(numbers, s.query.Window(start))
}

// fewestTransfers returns the choice of hosts that have the image and, as far as these do not suffice,
// of those that lack it and have room for the most instances.
func (s imaging) fewestTransfers(start span.Instant) try {
	if s.ruled().sameRequired() {
		return s.fewestOnEach(start)
	}
	having, lacking := s.byImage(s.places(start), start)
	claims := s.claimsOn(slices.Concat(having, lacking), start)
	switch {
	case s.allows(claims, start):
		return try{claims, true}
	case !s.staged.admission.OneChannel() || !slices.ContainsFunc(lacking, func(p calendar.Room) bool { return s.replaces(p.Host, start) }):
		return try{claims, false}
	}
	if others := s.oneByOne(having, lacking, start); others != nil {
		return try{others, true}
	}
	return try{claims, false}
}

// byImage divides places into those that have the image at a start, and the others, with those first
// that have room for the most instances, and of these those with the fastest link.
func (s imaging) byImage(places []calendar.Room, start span.Instant) (having, lacking []calendar.Room) {
	for _, p := range places {
		if s.has(p.Host, start) {
			having = append(having, p)
		} else {
			lacking = append(lacking, p)
		}
	}
	slices.SortStableFunc(lacking, func(a, b calendar.Room) int {
		return cmp.Or(cmp.Compare(b.Slices, a.Slices), cmp.Compare(s.secondsTo(a), s.secondsTo(b)))
	})
	return having, lacking
}

func (s imaging) secondsTo(p calendar.Room) int64 {
	return s.staged.admission.Seconds(s.staged.image, s.view.Hosts.names[p.Host])
}

// replaces reports whether a transfer for a start makes a later one to the host needless.
func (s imaging) replaces(number int, start span.Instant) bool {
	return s.staged.later(s.view.Hosts.names[number], start)
}

// oneByOne adds to the hosts that have the image one after the other that lacks it, as long as the
// transfers are possible. It returns nil if they do not suffice.
//
// A set of new transfers for one start is possible if, until each deadline after it, there is time for
// those that make no transfer until then needless. These bounds are nested, so the possible sets are
// the independent sets of a laminar matroid, and this greedy choice has room for the most instances. If
// images age, transfers may not begin at once, and it may miss a possible choice.
func (s imaging) oneByOne(having, lacking []calendar.Room, start span.Instant) []reservation.Claim {
	var chosen []calendar.Room
	left := s.request.Quantity
	if s.request.Affinity != calendar.AffinitySame { // one host has room for all
		for _, p := range having {
			left -= p.Slices
		}
	}
	hurts := false // a further transfer that makes no other one needless is impossible
	for _, p := range lacking {
		replaces := s.replaces(p.Host, start)
		if left <= 0 || s.staged.work <= 0 {
			break
		}
		if hurts && !replaces || s.request.Affinity == calendar.AffinitySame && p.Slices < left {
			continue
		}
		if with := append(slices.Clip(chosen), p); s.allows(s.claimsOn(with, start), start) {
			chosen, left = with, left-p.Slices
		} else {
			hurts = hurts || !replaces
		}
	}
	if left > 0 {
		return nil
	}
	return s.claimsOn(slices.Concat(having, chosen), start)
}

// preferred returns a choice of hosts for a start that follows the order of docs/concepts.md "Which
// hosts" as far as the transfers allow. claims are a possible choice with the fewest transfers.
func (s imaging) preferred(start span.Instant, claims []reservation.Claim) []reservation.Claim {
	places := s.places(start)
	upTo := func(transfers int) []reservation.Claim {
		var some []calendar.Room
		for _, p := range places {
			if s.has(p.Host, start) {
				some = append(some, p)
			} else if transfers > 0 {
				some, transfers = append(some, p), transfers-1
			}
		}
		return s.claimsOn(some, start)
	}
	most := sort.Search(min(len(places), s.request.Quantity), func(n int) bool { return !s.allows(upTo(n+1), start) })
	if better := upTo(most); countClaimed(better) == s.request.Quantity && s.allows(better, start) {
		return better
	}
	return claims
}
