// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func testSeries(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a series and its reservations are stored together", func(t *testing.T) { testSeriesTogether(t, open(t)) })
	t.Run("a series of any pattern is read as it was stored", func(t *testing.T) { testAnySeries(t, open(t)) })
	t.Run("series are listed, the latest first", func(t *testing.T) { testSeriesList(t, open(t)) })
	t.Run("a series is purged after its reservations", func(t *testing.T) { testSeriesPurge(t, open(t)) })
}

// seriesMade returns a new series of that time.
func seriesMade(id string, created span.Instant) reservation.Series {
	return reservation.Series{
		ID: id, ProjectID: "demo", UserID: "ada", Name: "course", Duration: 7200, Created: created,
		Pattern: reservation.Pattern{Rule: "FREQ=WEEKLY;BYDAY=MO,TU", TimeZone: "Europe/Paris", Start: "2027-01-04T09:00:00"},
	}
}

// occurrenceOf returns the revision of a new reservation of a series on one of its days.
func occurrenceOf(s reservation.Series, id string, day int) booking.Revision {
	r := booked(id)
	r.ProjectID, r.Span = s.ProjectID, span.New(r.Span.Start.Add(int64(day)*86_400), s.Duration)
	r.Claims = []reservation.Claim{{Host: "host of " + s.ID, Span: r.Span}}
	r.Occurrence = reservation.Occurrence{SeriesID: s.ID, Local: fmt.Sprintf("2027-01-%02dT09:00:00", day)}
	return booking.Revision{Reservation: r, Cause: reservation.Cause{Action: reservation.ActionCreate}}
}

func commitSeries(t *testing.T, s Subject, series reservation.Series, of ...booking.Revision) error {
	t.Helper()
	return s.Commit(t.Context(), booking.Commit{Series: &series, Revisions: of})
}

func mustCommitSeries(t *testing.T, s Subject, series reservation.Series, of ...booking.Revision) {
	t.Helper()
	if err := commitSeries(t, s, series, of...); err != nil {
		t.Fatal(err)
	}
}

func wantSeries(t *testing.T, s Subject, want reservation.SeriesRecord) {
	t.Helper()
	got, err := offered[reservation.SeriesReader](t, s).Series(t.Context(), want.ID)
	if d := diff(want, got); d != "" || err != nil {
		t.Errorf("series %s (-want +got): %v\n%s", want.ID, err, d)
	}
}

func testSeriesTogether(t *testing.T, s Subject) {
	reader := offered[reservation.SeriesReader](t, s)
	one := seriesMade("one", 100)
	first, second, third := occurrenceOf(one, "z", 4), occurrenceOf(one, "y", 5), occurrenceOf(one, "x", 11)
	third.Reservation.Status = reservation.Canceled // which the series still has
	mustCommitSeries(t, s, one, second, third, first)
	whole := reservation.SeriesRecord{Series: one, Reservations: []reservation.Reservation{first.Reservation, second.Reservation, third.Reservation}}
	wantSeries(t, s, whole)
	wantStored(t, s, second.Reservation)
	mustCreate(t, s, booked("alone"))
	if live, err := reader.LiveInSeries(t.Context(), []string{"one", "nothing"}); err != nil || diff(map[string]int{"one": 2}, live) != "" {
		t.Errorf("live are %v, %v", live, err)
	}

	later := second
	later.Reservation.Version, later.Reservation.Span.Start = 2, later.Reservation.Span.Start+600
	mustUpdate(t, s, later.Reservation)
	whole.Reservations[1] = later.Reservation
	wantSeries(t, s, whole)
	if got := mustList(t, s, reservation.Query{SeriesID: "one"}); diff([]string{"z", "y"}, ids(got)) != "" {
		t.Errorf("the reservations of the series that are not canceled are %v", ids(got))
	}

	other := seriesMade("other", 100)
	if err := commitSeries(t, s, other, occurrenceOf(other, "new", 4), occurrenceOf(other, "z", 5)); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("a series with a reservation that exists already: %v, want ErrStale", err)
	}
	if err := commitSeries(t, s, one, occurrenceOf(one, "new", 12)); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("a series that exists already: %v, want ErrStale", err)
	}
	if _, err := s.Get(t.Context(), "new"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the other reservation of a refused series: %v, want NotFound", err)
	}
	for _, id := range []string{"other", "z", ""} {
		if _, err := reader.Series(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("series %q: %v, want NotFound", id, err)
		}
	}
	wantSeries(t, s, whole)
}

func testAnySeries(t *testing.T, s Subject) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		one := reservation.Series{
			ID: fmt.Sprint("s-", n), ProjectID: name().Draw(rt, "project"), UserID: name().Draw(rt, "user"), Name: name().Draw(rt, "name"),
			Duration: rapid.Int64Min(1).Draw(rt, "duration"), Created: anyInstant().Draw(rt, "created"),
			Pattern: reservation.Pattern{
				Rule: rapid.String().Draw(rt, "rule"), TimeZone: rapid.String().Draw(rt, "zone"), Start: rapid.String().Draw(rt, "start"),
				Except: rapid.SliceOf(rapid.String()).Draw(rt, "except"), Also: rapid.SliceOf(rapid.String()).Draw(rt, "also"),
			},
		}
		mustCommitSeries(t, s, one, occurrenceOf(one, fmt.Sprint("r-", n), 4))
		got, err := offered[reservation.SeriesReader](t, s).Series(t.Context(), one.ID)
		if d := diff(one, got.Series); d != "" || err != nil {
			rt.Fatalf("(-stored +read): %v\n%s", err, d)
		}
	})
}

func testSeriesList(t *testing.T, s Subject) {
	reader := offered[reservation.SeriesReader](t, s)
	for i, one := range []reservation.Series{
		seriesMade("old", 100), seriesMade("b", 200), seriesMade("a", 200), seriesMade("foreign", 200), seriesMade("case", 250), seriesMade("new", 300),
	} {
		switch one.ID {
		case "foreign":
			one.ProjectID = "other"
		case "case":
			one.ProjectID = "Demo"
		}
		mustCommitSeries(t, s, one, occurrenceOf(one, fmt.Sprint("r-", i), 4))
	}
	for _, c := range []struct {
		q    reservation.SeriesQuery
		want []string
	}{
		{reservation.SeriesQuery{}, []string{"new", "case", "a", "b", "foreign", "old"}},
		{reservation.SeriesQuery{ProjectID: "demo"}, []string{"new", "a", "b", "old"}},
		{reservation.SeriesQuery{ProjectID: "demo", Limit: 2}, []string{"new", "a"}},
		{reservation.SeriesQuery{ProjectID: "demo", Limit: 2, Marker: "a"}, []string{"b", "old"}},
		{reservation.SeriesQuery{ProjectID: "demo", Limit: 2, Marker: "old"}, nil},
		{reservation.SeriesQuery{Limit: 2, Marker: "b"}, []string{"foreign", "old"}},
		{reservation.SeriesQuery{ProjectID: "nobody"}, nil},
	} {
		list, err := reader.SeriesList(t.Context(), c.q)
		var got []string
		for _, one := range list {
			got = append(got, one.ID)
			if one.Rule != "FREQ=WEEKLY;BYDAY=MO,TU" || one.Duration != 7200 {
				t.Errorf("%s is listed as %+v", one.ID, one)
			}
		}
		if d := diff(c.want, got); d != "" || err != nil {
			t.Errorf("%+v (-want +got): %v\n%s", c.q, err, d)
		}
	}
	for _, q := range []reservation.SeriesQuery{{Marker: "nobody"}, {ProjectID: "demo", Marker: "foreign"}} {
		if _, err := reader.SeriesList(t.Context(), q); fault.Of(err) == nil || fault.Of(err).Field != "marker" {
			t.Errorf("%+v: %v, want an invalid fault on marker", q, err)
		}
	}
}

func testSeriesPurge(t *testing.T, s Subject) {
	p, out, reader := offered[purger](t, s), offered[outbox](t, s), offered[reservation.SeriesReader](t, s)
	made := booked("").Updated
	past, young, lasting := seriesMade("past", made-10), seriesMade("young", made+1000), seriesMade("lasting", made-10)
	over := func(series reservation.Series, id string, day int) booking.Revision {
		r := occurrenceOf(series, id, day)
		r.Reservation.Status = reservation.Ended
		return r
	}
	mustCommitSeries(t, s, past, over(past, "a", 4), over(past, "b", 5))
	mustCommitSeries(t, s, young, over(young, "c", 4))
	mustCommitSeries(t, s, lasting, over(lasting, "d", 4), occurrenceOf(lasting, "e", 5))
	kept := func(id string) bool {
		t.Helper()
		_, err := reader.Series(t.Context(), id)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	purge := func(before span.Instant) {
		t.Helper()
		if _, err := p.Purge(t.Context(), job.Lease{}, before, false, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	purge(made + 500)
	if !kept("past") || !kept("young") || !kept("lasting") {
		t.Error("a series is purged before its reservations, whose changes are not sent")
	}
	list, err := out.Unsent(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if err := out.MarkSent(t.Context(), job.Lease{}, []int64{c.Place}); err != nil {
			t.Fatal(err)
		}
	}
	purge(made + 500)
	if kept("past") || !kept("young") || !kept("lasting") {
		t.Errorf("that all of it is over, and old, keeps it: %v; a young one without reservations is kept: %v; one that lasts: %v", kept("past"), kept("young"), kept("lasting"))
	}
	if got, err := reader.Series(t.Context(), "lasting"); err != nil || diff([]string{"e"}, ids(got.Reservations)) != "" {
		t.Errorf("of the series that lasts %v are left: %v", ids(got.Reservations), err)
	}
	purge(made + 2000)
	if kept("young") || !kept("lasting") {
		t.Errorf("later the young one is kept: %v, and the one that lasts: %v", kept("young"), kept("lasting"))
	}
}
