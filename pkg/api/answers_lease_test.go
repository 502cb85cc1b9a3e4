// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// offersLease asks for an offer of a lease, which only microversion 1.1 has.
func (s *scene) offersLease(by string, q leased) reply {
	s.t.Helper()
	return s.send(inquiry{by, "POST", "/v1/leases", "1.1", dry(q.body())})
}

// dry returns a body that asks for an offer only.
func dry(body map[string]any) map[string]any {
	body = maps.Clone(body)
	body["dry_run"] = true
	return body
}

// offeredLease is the answer to a dry run.
type offeredLease struct {
	Offer struct {
		StartDate    blazarTime `json:"start_date"`
		EndDate      blazarTime `json:"end_date"`
		Reservations []blazar.OfferedReservation
	}
}

// blazarTime is a time as Blazar writes it.
type blazarTime struct{ span.Instant }

// UnmarshalJSON implements json.Unmarshaler.
func (b *blazarTime) UnmarshalJSON(text []byte) error {
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return err
	}
	at, err := time.Parse("2006-01-02T15:04:05.000000", written)
	b.Instant = span.At(at)
	return err
}

// askLease asks for a lease and holds the answer to what it says.
func (s *scene) askLease(by string, q leased) {
	s.t.Helper()
	a := s.offersLease(by, q)
	s.t.Logf("question at %v: %v", s.now, a)
	s.holdVersions(a, inquiry{by, "POST", "/v1/leases", "", q.body()}, q.duration == 0)
	switch {
	case a.granted():
		s.holdLeaseOffer(by, q, a)
	case a.refusal != nil:
		s.holdLeaseRefusal(by, q, *a.refusal)
	}
}

// holdVersions checks that an offer is what is done, or refused with the same facts, at microversion 1.1,
// and at 1.0 if the call means the same there.
func (s *scene) holdVersions(offer reply, doing inquiry, also bool) {
	s.t.Helper()
	for _, version := range []string{"1.0", "1.1"} {
		if version == "1.0" && !also {
			continue
		}
		doing.version = version
		c := s.copied(nil)
		done := c.send(doing)
		if done.granted() != offer.granted() {
			s.t.Fatalf("it differs from the dry run: %v", done)
		}
		if diff := gocmp.Diff(offer.refusal, done.refusal); diff != "" {
			s.t.Fatalf("the refusal at %s differs from that of the dry run (-dry +done):\n%s", version, diff)
		}
		if done.granted() {
			c.holdLease(offer, done)
		}
	}
}

// holdLease checks that a lease is stored as it was offered.
func (s *scene) holdLease(offer, done reply) {
	s.t.Helper()
	o := decode[offeredLease](s.t, answer{body: offer.body}).Offer
	id := decode[struct{ Lease struct{ ID string } }](s.t, answer{body: done.body}).Lease.ID
	l, err := s.memory.Lease(s.t.Context(), id)
	if fault.Is(err, fault.NotFound) { // it was canceled, and belongs to no lease
		var r reservation.Reservation
		r, err = s.memory.Get(s.t.Context(), id)
		l = reservation.OwnLease(r)
	}
	must(s.t, err)
	got := blazar.OfferOf(&l, false, func(*reservation.Reservation) bool { return true })
	for i := range o.Reservations {
		o.Reservations[i].ID = ""
	}
	order := func(list []blazar.OfferedReservation) []string {
		texts := make([]string, len(list))
		for i := range list {
			text, _ := json.Marshal(list[i])
			texts[i] = string(text)
		}
		slices.Sort(texts)
		return texts
	}
	if diff := gocmp.Diff(order(o.Reservations), order(got.Reservations)); diff != "" || l.Span != (span.Span{Start: o.StartDate.Instant, End: o.EndDate.Instant}) {
		s.t.Fatalf("the lease, %v, differs from its offer (-offer +done):\n%s\n%v", l.Span, diff, done)
	}
}

// at returns the same lease for one start.
func (q leased) at(start span.Instant) leased {
	length := q.length()
	q.start, q.end, q.duration = start, start.Add(length), length
	if start%tick != 0 { // a body has whole minutes: the first start within two of them
		q.end = (q.end/tick + 1) * tick
	}
	return q
}

// length returns how long the lease lasts.
func (q leased) length() int64 {
	if q.duration != 0 {
		return q.duration
	}
	return int64(q.end/tick*tick - q.start/tick*tick)
}

// holdLeaseOffer checks that no start before that of the offer is granted.
func (s *scene) holdLeaseOffer(by string, q leased, a reply) {
	s.t.Helper()
	o := decode[offeredLease](s.t, answer{body: a.body}).Offer
	if q.duration == 0 {
		return
	}
	start := o.StartDate.Instant
	if int64(o.EndDate.Instant-start) != q.duration || start < q.start/tick*tick || o.EndDate.Instant > q.end {
		s.t.Fatalf("the offer is not for the time of the request")
	}
	s.holdEarliestLease(by, q, &start, "the start of the offer")
}

// holdEarliestLease checks that a lease would be granted at its earliest start, if there is one, and not
// before it.
func (s *scene) holdEarliestLease(by string, q leased, earliest *span.Instant, what string) {
	s.t.Helper()
	last := s.end()
	if earliest != nil {
		last = *earliest
		a := s.offersLease(by, q.at(last))
		if !a.granted() {
			s.t.Fatalf("%s is refused: %v", what, a)
		}
		if got := decode[offeredLease](s.t, answer{body: a.body}).Offer.StartDate.Instant; got != last {
			s.t.Fatalf("%s is %v, but one could start at %v: %v", what, last, got, a)
		}
	}
	for _, t := range s.probes(max(q.start, s.now), last, q.length()) {
		if t%tick != 0 {
			continue
		}
		if a := s.offersLease(by, q.at(t)); a.refusal == nil {
			s.t.Fatalf("a start before %s is not refused: %v", what, a)
		}
	}
}

// holdLeaseRefusal checks every fact in the refusal of a lease. What is about quantities is about its one
// reservation.
func (s *scene) holdLeaseRefusal(by string, q leased, r v1.Refusal) {
	s.t.Helper()
	var earliest *span.Instant
	if r.EarliestStart != nil {
		earliest = new(span.At(*r.EarliestStart))
	}
	s.holdEarliestLease(by, q, earliest, "the earliest start")
	s.holdBlocks(r, span.Always, nil, func(s *scene) reply { return s.offersLease(by, q) })
	if len(q.members) > 1 {
		return
	}
	m := q.members[0]
	least, _ := m["min"].(int)
	if m["amount"] != nil {
		least = m["amount"].(int)
	}
	s.holdLargest(least, r, func(n int) reply { return s.offersLease(by, q.times(n)) })
	if m["resource_type"] != blazar.FloatingIPs {
		native := memberAsked(m)
		native.start, native.duration = max(q.start, s.now), cmp.Or(q.duration, int64(q.end/tick*tick-max(q.start, s.now)))
		s.holdFree(by, native, r.Free)
	}
}

// times returns the lease with another quantity of its one reservation.
func (q leased) times(n int) leased {
	m := maps.Clone(q.members[0])
	if m["amount"] != nil {
		m["amount"] = n
	} else {
		m["min"], m["max"] = n, n
	}
	q.members = []map[string]any{m}
	return q
}

// changesLease asks for an offer of a change of a lease.
func (s *scene) changesLease(l *reservation.LeaseRecord, c leaseChange) reply {
	s.t.Helper()
	return s.send(inquiry{l.ProjectID + "/admin", "PUT", "/v1/leases/" + l.ID, "1.1", dry(c.body())})
}

// askLeaseChange asks for a change of a lease in Blazar's form and holds the answer to what it says.
func (s *scene) askLeaseChange(l reservation.LeaseRecord, c leaseChange) {
	s.t.Helper()
	a := s.changesLease(&l, c)
	s.t.Logf("question at %v about %v with %d reservations: %v", s.now, l.Span, len(l.Reservations), a)
	s.holdVersions(a, inquiry{a.inquiry.by, "PUT", a.inquiry.path, "", c.body()}, true)
	if a.refusal == nil {
		return
	}
	s.holdBlocks(*a.refusal, span.Always, l.Reservations, func(s *scene) reply { return s.changesLease(&l, c) })
	s.holdLatestLease(&l, c, *a.refusal)
	switch {
	case len(l.Reservations) > 1 && a.refusal.EarliestStart != nil:
		s.t.Fatalf("a change of a lease with several reservations names an earliest start")
	case len(l.Reservations) == 1 && l.Span.Start > s.now:
		s.holdEarliestMove(&l, c, *a.refusal)
	}
}

// holdLatestLease checks the latest end of the refusal of a change, which only an extension has: the end
// moves to a later minute and the start stays, whatever the change says of the reservations.
func (s *scene) holdLatestLease(l *reservation.LeaseRecord, c leaseChange, r v1.Refusal) {
	s.t.Helper()
	stays := c.start == nil || *c.start/tick == l.Span.Start/tick
	if c.end != nil && stays && *c.end/tick > l.Span.End/tick {
		s.holdLatest(r, l.Span.End, *c.end, tick, func(end span.Instant) reply {
			return s.changesLease(l, leaseChange{start: c.start, end: &end, members: c.members})
		})
	} else if r.LatestEnd != nil {
		s.t.Fatalf("it is no extension")
	}
}

// holdEarliestMove checks that a changed lease, which has not begun, would be granted at the earliest
// start of its refusal, if there is one, and not before it.
func (s *scene) holdEarliestMove(l *reservation.LeaseRecord, c leaseChange, r v1.Refusal) {
	s.t.Helper()
	to := l.Span
	if c.start != nil && *c.start/tick != to.Start/tick {
		to.Start = max(*c.start, s.now) // a start that has passed means now
	}
	if c.end != nil && *c.end/tick != to.End/tick {
		to.End = *c.end
	}
	moved := func(start span.Instant) reply {
		body := leaseChange{members: c.members}.body()
		body["duration"], body["dry_run"] = to.Seconds(), true
		if start != l.Span.Start {
			body["start_date"] = minutes(start)
		}
		if start%tick != 0 && start != l.Span.Start { // a body has whole minutes: the first start within two of them
			body["deadline"] = minutes(start.Add(to.Seconds() + tick - 1))
		}
		return s.send(inquiry{l.ProjectID + "/admin", "PUT", "/v1/leases/" + l.ID, "1.1", body})
	}
	last := s.end()
	if r.EarliestStart != nil {
		last = span.At(*r.EarliestStart)
		a := moved(last)
		if !a.granted() {
			s.t.Fatalf("the earliest start is refused: %v", a)
		}
		if got := decode[offeredLease](s.t, answer{body: a.body}).Offer.StartDate.Instant; got != last && !s.bounds(a) {
			s.t.Fatalf("the earliest start is %v, but it could be %v: %v", last, got, a)
		}
	}
	for _, t := range append(s.probes(max(to.Start, s.now), last, to.Seconds()), l.Span.Start) {
		sameMinute := t/tick == l.Span.Start/tick
		if t >= last || t < max(to.Start, s.now) || t != l.Span.Start && (sameMinute || t%tick != 0) {
			continue
		}
		if a := moved(t); a.refusal == nil && !s.bounds(a) {
			s.t.Fatalf("a start before the earliest is not refused: %v", a)
		}
	}
}

// memberAsked returns the native request for one reservation of a lease, without its times.
func memberAsked(m map[string]any) asked {
	q := asked{kind: "host"}
	if m["resource_type"] == blazar.Instances {
		q.kind, q.affinity = "instance", "none"
		q.size = resource.Vector{VCPUs: m["vcpus"].(int64), MemoryMB: m["memory_mb"].(int64), DiskGB: m["disk_gb"].(int64)}
		switch m["affinity"] {
		case true:
			q.affinity = "same"
		case false:
			q.affinity = "different"
		}
	}
	for _, f := range drawnFilters {
		if f.query == m["resource_properties"] {
			q.filter = f.same
		}
	}
	return q
}
