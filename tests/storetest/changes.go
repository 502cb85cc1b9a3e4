// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/accounting"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func testChanges(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a change tells who did what", func(t *testing.T) { testTrail(t, open(t)) })
	t.Run("the log has an end, which moves on with each change", func(t *testing.T) { testLastChange(t, open(t)) })
	t.Run("a change waits until it is sent", func(t *testing.T) { testOutbox(t, open(t)) })
}

func testTrail(t *testing.T, s Subject) {
	audit := offered[auditor](t, s)
	r := booked("r")
	r.Resources.Custom = map[string]int64{"CUSTOM_GPU": 2}
	var want []reservation.Change
	for _, cause := range []reservation.Cause{
		{Action: reservation.ActionCreate, UserID: "ada", RequestID: "req-1"},
		{Action: reservation.ActionModify, UserID: "grace", RequestID: "req-2", Detail: "one host more"},
		{Action: reservation.ActionStart},
	} {
		r.Name, r.Updated = cause.RequestID, 1_799_000_000+span.Instant(r.Version)
		if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: r, Cause: cause}}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, reservation.Change{At: r.Updated, Cause: cause, Reservation: r})
		r.Version++
	}
	mustCreate(t, s, booked("another"))
	for _, limit := range []int{0, 2} {
		got, err := audit.Trail(t.Context(), "r", limit)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i].Place = 0
		}
		if limit > 0 {
			want = want[:limit]
		}
		if d := diff(want, got); d != "" {
			t.Errorf("trail of at most %d (-want +got):\n%s", limit, d)
		}
	}
}

// ending tells where the change log ends.
type ending interface {
	LastChange(ctx context.Context) (int64, error)
}

func testLastChange(t *testing.T, s Subject) {
	log := offered[ending](t, s)
	last := int64(-1)
	for _, id := range []string{"", "a", "b"} {
		if id != "" {
			mustCreate(t, s, booked(id))
		}
		place, err := log.LastChange(t.Context())
		if err != nil || place <= last || id == "" && place != 0 {
			t.Errorf("after %q the log ends at %d, and ended at %d (%v)", id, place, last, err)
		}
		last = place
	}
}

func testOutbox(t *testing.T, s Subject) {
	out := offered[outbox](t, s)
	waiting := func(want int, wantFirst span.Instant) {
		t.Helper()
		if count, first, err := out.Waiting(t.Context()); count != want || first != wantFirst || err != nil {
			t.Errorf("%d wait since %d (%v), want %d since %d", count, first, err, want, wantFirst)
		}
	}
	waiting(0, 0)
	for n := range 5 {
		r := booked(fmt.Sprint(n))
		r.Updated = 1_799_000_000 + span.Instant(n)
		mustCreate(t, s, r)
	}
	waiting(5, 1_799_000_000)
	unsent := func(limit int) (places []int64, ids []string) {
		t.Helper()
		list, err := out.Unsent(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			places, ids = append(places, c.Place), append(ids, c.Reservation.ID)
		}
		return places, ids
	}
	places, names := unsent(3)
	if d := diff([]string{"0", "1", "2"}, names); d != "" {
		t.Errorf("first page (-want +got):\n%s", d)
	}
	if err := out.MarkSent(t.Context(), job.Lease{}, places[:2]); err != nil {
		t.Fatal(err)
	}
	if _, names = unsent(0); diff([]string{"2", "3", "4"}, names) != "" {
		t.Errorf("unsent are %v, want 2, 3, 4", names)
	}
	waiting(3, 1_799_000_002)
}

// pastReader reads what reservations held.
type pastReader interface {
	Past(ctx context.Context, q reservation.PastQuery) (page []reservation.Past, more bool, err error)
	PastOnHosts(ctx context.Context, q reservation.PastHosts) (list []reservation.Past, unread string, err error)
	PastUsage(ctx context.Context, w span.Span, project string, after accounting.DaySum, limit int) ([]accounting.DaySum, error)
	Kept(ctx context.Context) (reservation.Kept, error)
}

// testPast stores three reservations: a is over, b has released a claim, and c is live and has released nothing.
func testPast(t *testing.T, s Subject) {
	read := offered[pastReader](t, s)
	w := booked("").Span
	for _, id := range []string{"a", "b", "c"} {
		mustCreate(t, s, booked(id))
	}
	over, shrunk := booked("a"), booked("b")
	over.Version, over.Status = 2, reservation.Ended
	over.Events[0].State, over.Events[0].Done = reservation.EventDone, w.Start+5
	mustUpdate(t, s, over)
	gone := reservation.Claim{Host: "node-2", Span: span.Span{Start: w.Start, End: w.Start + 60}}
	shrunk.Version, shrunk.Claims, shrunk.Released = 2, shrunk.Claims[:1], 60
	if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: shrunk, Released: []reservation.Claim{gone}}}}); err != nil {
		t.Fatal(err)
	}
	over.Events, shrunk.Claims, shrunk.Events = over.Events[:1], nil, nil
	released := []reservation.ReleasedClaim{{Claim: gone, Version: 2}}
	whole := []reservation.Past{{Reservation: over}, {Reservation: shrunk, Released: released}}
	for limit, pages := range map[int]int{1: 3, 2: 2, 3: 1} {
		var got []reservation.Past
		q := reservation.PastQuery{Overlaps: w, Limit: limit}
		for more, n := true, 0; more; n++ {
			page, rest, err := read.Past(t.Context(), q)
			if err != nil || n == pages {
				t.Fatalf("page %d of %d: %v", n, limit, err)
			}
			if got, more = append(got, page...), rest; len(page) > 0 {
				last := page[len(page)-1].Reservation
				q.After = reservation.PastMark{Start: last.Span.Start, ID: last.ID}
			}
		}
		if d := diff(whole, got); d != "" {
			t.Errorf("the past in pages of %d (-want +got):\n%s", limit, d)
		}
	}
	first := over
	first.Claims = over.Claims[:1]
	for name, test := range map[string]struct {
		q      reservation.PastHosts
		want   []reservation.Past
		unread string
	}{
		"all":          {reservation.PastHosts{Overlaps: w, Limit: 3}, whole, ""},
		"too many":     {reservation.PastHosts{Overlaps: w, Limit: 2}, []reservation.Past{{Reservation: first}}, "node-2"},
		"by name":      {reservation.PastHosts{Overlaps: w, Hosts: []string{"node-1", "x"}, Limit: 9}, []reservation.Past{{Reservation: first}}, ""},
		"up to a name": {reservation.PastHosts{Overlaps: w, Last: "node-1", Limit: 9}, []reservation.Past{{Reservation: first}}, ""},
		"after":        {reservation.PastHosts{Overlaps: w, After: "node-2", Limit: 9}, nil, ""},
		"earlier":      {reservation.PastHosts{Overlaps: span.Span{Start: 0, End: w.Start}, Limit: 9}, nil, ""},
	} {
		got, unread, err := read.PastOnHosts(t.Context(), test.q)
		if d := diff(test.want, got); d != "" || unread != test.unread || err != nil {
			t.Errorf("%s: unread from %q on, %v (-want +got):\n%s", name, unread, err, d)
		}
	}
}

// testPurgedSums purges two reservations that overlap in two days: what they held stays as sums.
func testPurgedSums(t *testing.T, s Subject) {
	p, out, read := offered[purger](t, s), offered[outbox](t, s), offered[pastReader](t, s)
	w := span.New(1_800_000_000, 86400)
	w.Start -= w.Start % accounting.Day
	w = span.New(w.Start+86400-3600, 2*3600) // an hour before midnight, and one after
	purge := func() {
		t.Helper()
		list, err := out.Unsent(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if err := out.MarkSent(t.Context(), job.Lease{}, []int64{c.Place}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Purge(t.Context(), job.Lease{}, w.End+1, false, 10, nil); err != nil {
			t.Fatal(err)
		}
	}
	var want []accounting.DaySum
	for n := int64(1); n <= 2; n++ {
		r := booked(fmt.Sprint(n))
		r.Span, r.Claims = w, []reservation.Claim{{Host: "a", Span: w}}
		mustCreate(t, s, r)
		r.Version, r.Status, r.Updated = 2, reservation.Ended, w.End
		r.Events[0].State, r.Events[0].Done = reservation.EventDone, w.Start.Add(60)
		released := []reservation.Claim{{Host: "b", Span: span.New(w.Start, 10), Slices: 2}}
		if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: r, Released: released}}}); err != nil {
			t.Fatal(err)
		}
		purge()
		day := w.Start - w.Start%accounting.Day
		want = []accounting.DaySum{
			{Day: day, ProjectID: "demo", Host: "a", Held: n * 3600, Used: n * 3540},
			{Day: day, ProjectID: "demo", Host: "b", Of: accounting.Shape{Slices: 2, Size: r.Resources}, Held: n * 10},
			{Day: day + 86400, ProjectID: "demo", Host: "a", Held: n * 3600, Used: n * 3600},
		}
		kept, err := read.Kept(t.Context())
		if kept.From != w.End || kept.Purges != n || err != nil {
			t.Errorf("kept is %+v, %v", kept, err)
		}
		purge() // there is nothing left
	}
	var got []accounting.DaySum
	var last accounting.DaySum
	for {
		page, err := read.PastUsage(t.Context(), w, "demo", last, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got, last = append(got, page[0]), page[0]
	}
	if d := diff(want, got); d != "" {
		t.Errorf("sums (-want +got):\n%s", d)
	}
	for _, w := range []span.Span{{Start: 0, End: want[0].Day}, {Start: want[2].Day + 86400, End: w.End + 86400}} {
		if other, err := read.PastUsage(t.Context(), w, "", accounting.DaySum{}, 9); len(other) > 0 || err != nil {
			t.Errorf("%v has the sums %v, %v", w, other, err)
		}
	}
	if rest, _, err := read.Past(t.Context(), reservation.PastQuery{Overlaps: w, Limit: 9}); len(rest) > 0 || err != nil {
		t.Errorf("after the purge there is %v, %v", rest, err)
	}
}

func testPurging(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the past is read in pages and by host", func(t *testing.T) { testPast(t, open(t)) })
	t.Run("what is purged stays in sums", func(t *testing.T) { testPurgedSums(t, open(t)) })

	s := open(t)
	p, out := offered[purger](t, s), offered[outbox](t, s)
	const day = 86400
	for n := range 7 {
		use := reservation.Key{ProjectID: "demo", Key: fmt.Sprint(n), ReservationID: fmt.Sprint(n)}
		r := booked(fmt.Sprint(n))
		if err := create(t, s, r, &use); err != nil {
			t.Fatal(err)
		}
		r.Version, r.Updated = 2, span.Instant(n*day)
		r.Status = []reservation.Status{reservation.Ended, reservation.Canceled, reservation.Failed, reservation.Active}[n%4]
		mustUpdate(t, s, r)
	}
	// 0, 1, 2, 4, 5, 6 are over, the last two after the instant, and 1 is not sent.
	list, err := out.Unsent(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Reservation.ID != "1" {
			if err := out.MarkSent(t.Context(), job.Lease{}, []int64{c.Place}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := p.Purge(t.Context(), job.Lease{}, 5*day, true, 2, nil); n != 3 || err != nil {
		t.Errorf("a dry run counts %d (%v), want 3", n, err)
	}
	var steps []int
	n, err := p.Purge(t.Context(), job.Lease{}, 5*day, false, 2, func(done int) { steps = append(steps, done) })
	if n != 3 || err != nil || diff([]int{2, 3}, steps) != "" {
		t.Errorf("purged %d in steps %v (%v), want 2 and 1", n, steps, err)
	}
	kept := mustList(t, s, reservation.Query{Statuses: reservation.Statuses})
	if d := diff([]string{"1", "3", "5", "6"}, ids(kept)); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	for n := range 7 {
		id := fmt.Sprint(n)
		_, used, err := s.Key(t.Context(), "demo", id)
		if gone := id == "0" || id == "2" || id == "4"; used == gone || err != nil {
			t.Errorf("the key of %s is used: %v (%v)", id, used, err)
		}
	}
	// 1 was canceled.
	for _, c := range list {
		if err := out.MarkSent(t.Context(), job.Lease{}, []int64{c.Place}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), "1"); err != nil {
		t.Errorf("a canceled reservation before it is purged: %v", err)
	}
	if n, err := p.Purge(t.Context(), job.Lease{}, 5*day, false, 2, nil); n != 1 || err != nil {
		t.Errorf("once it is sent %d are purged, want 1 (%v)", n, err)
	}
	if _, err := s.Get(t.Context(), "1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a canceled reservation that is purged: %v, want a not_found fault", err)
	}
	for _, r := range kept {
		if len(r.Claims) != 2 || len(r.Events) != 2 {
			t.Errorf("%s has %d claims and %d events left", r.ID, len(r.Claims), len(r.Events))
		}
	}
}
