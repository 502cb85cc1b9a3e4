// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// offers asks for an offer.
func (s *scene) offers(by string, q asked) reply {
	s.t.Helper()
	return s.send(inquiry{by, "POST", "/v1/reservations?dry_run=true", "", q.body()})
}

// length returns how long the reservation would last, from the start at the earliest.
func (q asked) length(now span.Instant) int64 {
	if q.duration != 0 {
		return q.duration
	}
	return int64(q.end - q.ready(now))
}

// ready returns the earliest start.
func (q asked) ready(now span.Instant) span.Instant {
	if q.start != 0 {
		return q.start
	}
	return now
}

// immediate reports whether the request names no time.
func (q asked) immediate() bool { return q.start == 0 && q.end == 0 }

// at returns the same request for this start alone.
func (q asked) at(start, now span.Instant) asked {
	q.start, q.end, q.duration = start, 0, q.length(now)
	return q
}

func (q asked) times(quantity int) asked {
	q.quantity = quantity
	return q
}

// askReservation asks for a reservation and holds the answer to what it says.
func (s *scene) askReservation(by string, q asked) {
	s.t.Helper()
	a := s.offers(by, q)
	s.t.Logf("question at %v: %v", s.now, a)
	switch {
	case a.granted():
		s.holdOffer(by, q, a)
	case a.refusal != nil:
		s.holdRefusal(by, q, *a.refusal)
	}
}

// holdOffer checks that a booking is what the offer says, that its start alone would be granted too, and
// that first-fit skips no start.
func (s *scene) holdOffer(by string, q asked, a reply) {
	s.t.Helper()
	offer := decode[v1.OfferAnswer](s.t, answer{body: a.body}).Offer
	start, ready := span.At(offer.Start), q.ready(s.now)
	if int64(span.At(offer.End)-start) != q.length(s.now) || start < ready || q.end != 0 && span.At(offer.End) > q.end {
		s.t.Fatalf("the offer is not for the time of the request")
	}
	s.grants(by, q.at(start, s.now), "the start of the offer")
	exact := s.exact(q)
	switch {
	case q.immediate() && start > ready:
		exact.refuses(by, q.at(ready, s.now), "now, though the request without a time starts later,")
	case !q.immediate() && (q.policy == "" || q.policy == "first-fit"):
		for _, t := range s.probes(ready, start, q.length(s.now)) {
			exact.refuses(by, q.at(t, s.now), "a start before that of first-fit")
		}
	}
	booked := s.copied(nil).send(inquiry{by, "POST", "/v1/reservations", "", q.body()})
	if !booked.granted() {
		s.t.Fatalf("the offer cannot be booked: %v", booked)
	}
	r := decode[v1.Reservation](s.t, answer{body: booked.body})
	got := v1.Offer{
		Start: r.Start, End: r.End, Quantity: r.Quantity, Kind: r.Kind, Policy: r.Policy, PolicyReason: r.PolicyReason, Hosts: slices.Sorted(slices.Values(r.Hosts)),
		Matched: offer.Matched, DelayedByBoot: r.DelayedByBoot,
	}
	if diff := cmp.Diff(offer, got); diff != "" {
		s.t.Fatalf("the booking differs (-offer +booking):\n%s", diff)
	}
}

// grants asks back, and ends the test unless it is granted; what names the fact.
func (s *scene) grants(by string, q asked, what string) {
	s.t.Helper()
	if a := s.offers(by, q); !a.granted() {
		s.t.Fatalf("%s is refused: %v", what, a)
	}
}

// bounds reports whether what an answer names is a bound, and something better may be granted:
// docs/images.md says it of requests with an image, for limited pools and images that hosts drop.
func (s *scene) bounds(a reply) bool {
	if s.facts == nil || s.facts.Site.Limit == 0 && s.facts.Site.Lifetime == 0 {
		return false
	}
	if a.inquiry.body["image"] != nil {
		return true
	}
	id := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(a.inquiry.path, "?dry_run=true"), "/v1/reservations/"), "/v1/leases/")
	r, err := s.memory.Get(s.t.Context(), id)
	return err == nil && r.Image != ""
}

// refuses asks back, and ends the test unless it is refused.
func (s *scene) refuses(by string, q asked, what string) {
	s.t.Helper()
	if a := s.offers(by, q); a.refusal == nil && !s.bounds(a) {
		s.t.Fatalf("%s is not refused: %v", what, a)
	}
}

// holdRefusal checks every fact in the refusal of a request.
func (s *scene) holdRefusal(by string, q asked, r v1.Refusal) {
	s.t.Helper()
	ready := q.ready(s.now)
	if q.maintained == nil {
		s.holdLargest(q.quantity, r, func(n int) reply { return s.offers(by, q.times(n)) })
	} else if r.EarliestStart != nil {
		s.grants(by, q.at(span.At(*r.EarliestStart), s.now), "the earliest start")
	}
	s = s.exact(q)
	s.holdEarliest(r.EarliestStart, ready, q.length(s.now), func(start span.Instant) reply { return s.offers(by, q.at(start, s.now)) })
	s.holdFree(by, q.at(ready, s.now), r.Free)
	s.holdBlocks(r, span.New(ready, q.length(s.now)), nil, func(s *scene) reply { return s.offers(by, q) })
	if r.Constraint == string(reservation.HostsFree) && len(r.BlockedBy) == 0 && q.image == "" && s.limits.Hosts == 0 {
		everybody := map[string]bool{}
		for _, one := range s.live() {
			everybody[one.ID] = true
		}
		if a := s.copied(everybody).offers(by, q.at(ready, s.now)); a.granted() {
			s.t.Fatalf("nothing blocks it, but without all reservations it is granted: %v", a)
		}
	}
}

// holdLargest checks that the largest quantity of a refusal is granted, and that none is between it and
// the quantity that was refused.
func (s *scene) holdLargest(refused int, r v1.Refusal, again func(quantity int) reply) {
	s.t.Helper()
	if r.LargestQuantity >= refused {
		s.t.Fatalf("%d were refused, and %d are the largest quantity", refused, r.LargestQuantity)
	}
	for n := 1; n < refused; n++ {
		a := again(n)
		switch {
		case n == r.LargestQuantity && !a.granted():
			s.t.Fatalf("the largest quantity is refused: %v", a)
		case n > r.LargestQuantity && a.granted() && !s.bounds(a):
			s.t.Fatalf("more than the largest quantity, %d, is granted: %v", r.LargestQuantity, a)
		}
	}
}

// holdFree checks how many are free for a request with one start: so many are granted, without an image
// and where no limits are, and one more is not.
func (s *scene) holdFree(by string, q asked, free int) {
	s.t.Helper()
	if q.image = ""; q.together != nil && q.together.Rule == "spread" { // free are those on too few values too
		return
	}
	unlimited := s.copied(nil, func(c *scene) { c.limits = planning.Limits{} })
	if q.maintained != nil {
		count := 0
		for _, host := range q.maintained {
			one := q
			if one.maintained = []string{host}; unlimited.offers(by, one).granted() {
				count++
			}
		}
		if count != free {
			s.t.Fatalf("%d are said to be free, and %d are", free, count)
		}
		return
	}
	if free > 0 {
		unlimited.grants(by, q.times(free), "what is free")
	}
	unlimited.refuses(by, q.times(free+1), "one more than what is free")
}

// holdBlocks checks that blocks name the reservations that hold them in the requested time, and that
// without these the answer is no refusal. The reservations that would change block nothing.
func (s *scene) holdBlocks(r v1.Refusal, wanted span.Span, own []reservation.Reservation, again func(*scene) reply) {
	s.t.Helper()
	if len(r.BlockedBy) == 0 {
		return
	}
	gone := map[string]bool{}
	for _, b := range r.BlockedBy {
		holders := s.holders(b, wanted, own)
		if len(holders) == 0 {
			s.t.Fatalf("nobody holds %v", b)
		}
		for _, id := range holders {
			gone[id] = true
		}
		if b.Reservations == nil {
			continue
		}
		var named []string
		for _, one := range b.Reservations {
			named = append(named, one.ID)
		}
		if slices.Sort(named); !slices.Equal(named, holders) {
			s.t.Fatalf("%v is held by %v", b, holders)
		}
	}
	if a := again(s.copied(gone)); !a.granted() {
		s.t.Fatalf("without the reservations that block it, it is refused: %v", a)
	}
}

// holders returns the ids of the live reservations that hold the host of a block at some time of it that is
// wanted, without those that would change.
func (s *scene) holders(b v1.Block, wanted span.Span, own []reservation.Reservation) (ids []string) {
	w := span.Span{Start: span.At(b.Start), End: span.At(b.End)}
	for _, r := range s.live() {
		if slices.ContainsFunc(own, func(o reservation.Reservation) bool { return o.ID == r.ID }) {
			continue
		}
		if slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool {
			return c.Host == b.Host && c.Span.Overlaps(w) && c.Span.Overlaps(wanted)
		}) {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// end returns an instant after which nothing changes in the scene.
func (s *scene) end() span.Instant {
	last := s.now.Add(30 * tick)
	for _, r := range s.live() {
		last = max(last, r.Span.End+2*tick)
	}
	return last
}

// probes returns instants of [from, to) at which something that lasts for length may begin to have room,
// or cease to: each minute, and a second before, at and after each time at which the scene changes.
func (s *scene) probes(from, to span.Instant, length int64) (list []span.Instant) {
	turns := []span.Instant{from, to, s.now, s.now.Add(s.limits.StartAhead)}
	for t := from / tick * tick; t < to; t += tick {
		list = append(list, t)
	}
	for _, r := range s.live() {
		turns = append(turns, r.Span.Start, r.Span.End)
		for _, c := range r.Claims {
			turns = append(turns, c.Span.Start, c.Span.End)
		}
	}
	for i := range s.hosts {
		turns = append(turns, s.hosts[i].AwakeAt(s.now))
	}
	if s.facts != nil {
		for n := range int64(8) {
			turns = append(turns, s.now.Add(30*n))
		}
		for _, entries := range s.facts.Pools {
			turns = append(turns, entries[0].Expire)
		}
	}
	for _, t := range turns {
		for near := t - 1; near <= t+1 && t < span.Forever; near++ {
			list = append(list, near, near.Add(-length))
		}
	}
	list = slices.DeleteFunc(list, func(t span.Instant) bool { return t < from || t >= to })
	slices.Sort(list)
	return slices.Compact(list)
}

// askWindows asks when hosts are free, and holds the answer to what bookings get.
func (s *scene) askWindows(by string, q asked) {
	s.t.Helper()
	q.kind, q.size, q.affinity, q.policy, q.image = "host", asked{}.size, "", "", ""
	query := url.Values{"quantity": {strconv.Itoa(q.quantity)}, "duration": {strconv.FormatInt(q.length(s.now), 10)}}
	if q.filter != "" {
		query.Set("host_properties", q.filter)
	}
	if q.start != 0 {
		query.Set("start", clock(q.start))
	}
	end := q.end
	if end == 0 {
		end = q.ready(s.now).Add(20 * tick)
	}
	query.Set("end", clock(end))
	if w := q.together; w != nil {
		if w.Rule == "fewest" || w.Required != nil && !*w.Required { // which rule no start out
			w.Rule, w.Values, w.Required = "", 0, nil
		}
		for name, value := range map[string]string{"together_by": w.By, "together_rule": w.Rule, "apart_from": strings.Join(w.ApartFrom, ",")} {
			if value != "" && (w.Rule != "" || w.ApartFrom != nil) {
				query.Set(name, value)
			}
		}
		if w.Values > 0 {
			query.Set("together_values", strconv.Itoa(w.Values))
		}
		if w.Rule == "" && w.ApartFrom == nil {
			q.together = nil
		}
	}
	a := s.send(inquiry{by, "GET", "/v1/availability?" + query.Encode(), "", nil})
	s.t.Logf("question at %v: %v", s.now, a)
	from, to := q.ready(s.now), end.Add(1-q.length(s.now))
	if a.refusal != nil {
		for _, t := range s.probes(from, to, q.length(s.now)) {
			s.refuses(by, q.at(t, s.now), "a start, though the availability is refused,")
		}
		return
	}
	if !a.granted() {
		return
	}
	unlimited := s.copied(nil, func(c *scene) { c.limits = planning.Limits{} })
	answered := decode[v1.Availability](s.t, answer{body: a.body})
	windows := answered.Windows
	s.holdNextStart(by, q, answered, to)
	for _, w := range windows {
		start, latest := span.At(w.Start), span.At(w.LatestStart)
		s.grants(by, q.at(start, s.now), "the start of a window")
		s.grants(by, q.at(latest, s.now), "the latest start of a window")
		if span.At(w.End) != latest.Add(q.length(s.now)) || latest >= to || start < from {
			s.t.Fatalf("the window from %v to %v is not one for the request", w.Start, w.End)
		}
		unlimited.grants(by, q.at(start, s.now).times(w.Free), "what is free in a window")
		unlimited.refuses(by, q.at(start, s.now).times(w.Free+1), "one more than what is free in a window")
	}
	for _, t := range s.probes(from, to, q.length(s.now)) {
		inside := slices.ContainsFunc(windows, func(w v1.Window) bool { return span.At(w.Start) <= t && t <= span.At(w.LatestStart) })
		if got := s.offers(by, q.at(t, s.now)); got.granted() != inside {
			s.t.Fatalf("%v is in a window: %v; a booking: %v", t, inside, got)
		}
	}
}

// holdNextStart checks that the next start is the first one from to on that is granted, and that there is none without it.
func (s *scene) holdNextStart(by string, q asked, a v1.Availability, to span.Instant) {
	s.t.Helper()
	if len(a.Windows) > 0 {
		if a.NextStart != nil {
			s.t.Fatalf("there are windows, and the next start is %v", a.NextStart)
		}
		return
	}
	end := max(s.end(), to)
	if a.NextStart != nil {
		end = span.At(*a.NextStart)
		s.grants(by, q.at(end, s.now), "the next start")
	}
	for _, t := range s.probes(to, end, q.length(s.now)) {
		s.refuses(by, q.at(t, s.now), "a start before the next one")
	}
}
