// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// firstDay is the begin of the first day of the series of these tests, which lasts from 24:00 on at base.
var firstDay = at(0).Add(86_400 - int64(base)%86_400)

// daily asks for hosts from 09:00 to 10:00 in UTC on each of the next days.
// localOf returns a time as the local time of a series, whose zone is UTC.
func localOf(at span.Instant) string { return at.Time().UTC().Format("2006-01-02T15:04:05") }

func daily(quantity, days int) planning.SeriesRequest {
	rule, err := recurrence.Parse(recurrence.Pattern{
		Rule: fmt.Sprintf("FREQ=DAILY;COUNT=%d", days), TimeZone: "UTC", Start: firstDay.Time().UTC().Format("2006-01-02") + "T09:00:00",
	})
	if err != nil {
		panic(err)
	}
	return planning.SeriesRequest{Rule: rule, Request: reservation.Request{Terms: reservation.Terms{Name: "course", Quantity: quantity}, Duration: 3600}}
}

// onDay returns the hour of a series on one of its days, the first of which is 0.
func onDay(day int) span.Span { return span.New(firstDay.Add(int64(day)*86_400+9*3600), 3600) }

func (s *scene) series(t tester, req planning.SeriesRequest) reservation.SeriesRecord {
	t.Helper()
	r, _, err := s.bookings.BookSeries(t.Context(), owner, req, nil)
	if err != nil {
		t.Fatalf("book a series: %v", err)
	}
	return r
}

// storedSeries returns all series of the records, in the order of their ids.
func (s *scene) storedSeries(t tester) (list []reservation.SeriesRecord) {
	t.Helper()
	all, err := s.memory.SeriesList(t.Context(), reservation.SeriesQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		r, err := s.memory.Series(t.Context(), one.ID)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// wantWhole fails unless each stored series has all its reservations, and each reservation its series.
func (s *scene) wantWhole(t tester, series, occurrences int) {
	t.Helper()
	list, sum := s.storedSeries(t), 0
	for _, one := range list {
		if sum += len(one.Reservations); len(one.Reservations) != occurrences {
			t.Errorf("series %s has %d reservations instead of %d", one.ID, len(one.Reservations), occurrences)
		}
	}
	if len(list) != series || sum != len(s.stored(t)) {
		t.Errorf("%d series with %d reservations are stored, want %d; there are %d reservations", len(list), sum, series, len(s.stored(t)))
	}
}

func days(list []reservation.Reservation) (on []string) {
	for _, r := range list {
		on = append(on, fmt.Sprintf("%d %s", (int64(r.Span.Start)-int64(firstDay))/86_400, r.Status))
	}
	return on
}

func TestASeriesIsStoredWithItsReservations(t *testing.T) {
	s := newScene(t, named("a", "b"))
	made := s.series(t, daily(2, 3))
	for i, r := range made.Reservations {
		local := onDay(i).Start.Time().UTC().Format("2006-01-02T15:04:05")
		if r.Occurrence != (reservation.Occurrence{SeriesID: made.ID, Local: local}) || r.Span != onDay(i) || r.Name != "course" || !slices.Equal(claimed(r), []string{"a", "b"}) {
			t.Errorf("the %d. reservation is %+v", i+1, r)
		}
	}
	if made.Duration != 3600 || made.ProjectID != owner.ProjectID || made.UserID != owner.UserID || made.Name != "course" || made.TimeZone != "UTC" || made.Created != base {
		t.Errorf("the series is %+v", made.Series)
	}
	if diff := cmp.Diff([]reservation.SeriesRecord{made}, s.storedSeries(t)); diff != "" {
		t.Errorf("(-answered +stored):\n%s", diff)
	}
	s.wantWhole(t, 1, 3)
	s.restart(t)
	if live := s.bookings.Live(span.Always); len(live) != 3 {
		t.Errorf("after a restart there are %d reservations", len(live))
	}
	s.check(t)
}

func TestASeriesForWhichThereIsNoRoomIsNotBooked(t *testing.T) {
	s := newScene(t, named("a", "b"))
	w := onDay(1)
	s.book(t, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: w.Start, End: w.End})
	for what, act := range map[string]func() error{
		"a booking": func() error { _, _, err := s.bookings.BookSeries(t.Context(), owner, daily(2, 3), nil); return err },
		"an offer":  func() error { _, err := s.bookings.OfferSeries(t.Context(), owner, daily(2, 3)); return err },
	} {
		s.refuses(t, what, func(err error) bool {
			r := refusal(t, err)
			return len(r.Occurrences) == 1 && r.Occurrences[0].Start == w.Start && r.LargestQuantity == 1 && strings.HasPrefix(r.Message, "1 of 3 occurrences cannot be had")
		}, act)
	}
	some := daily(2, 3)
	some.Skip = true
	offer, err := s.bookings.OfferSeries(t.Context(), owner, some)
	if err != nil || len(offer.Occurrences) != 2 || len(offer.Refused) != 1 || len(s.stored(t)) != 1 {
		t.Errorf("an offer that skips: %+v, %v", offer, err)
	}
	made, refused, err := s.bookings.BookSeries(t.Context(), owner, some, nil)
	if err != nil || !slices.Equal(days(made.Reservations), []string{"0 pending", "2 pending"}) || cmp.Diff(offer.Refused, refused) != "" {
		t.Errorf("a booking that skips: %v, %+v, %v", days(made.Reservations), refused, err)
	}
	s.check(t)
}

// A commit of a series is stored, stale, or in doubt: stored without an answer, or not stored. In each case the series is there with
// all its reservations or not at all, and the same request with its key leads to one series, the one that was stored without an answer.
func TestASeriesIsStoredWholeOrNotAtAll(t *testing.T) {
	unavailable := func(booking.Commit) error { return fault.New(fault.Unavailable, "the database does not answer") }
	for name, c := range map[string]struct {
		before, after func(booking.Commit) error
		stored        int
		answered      func(err error) bool
	}{
		"stored":               {stored: 1, answered: func(err error) bool { return err == nil }},
		"stale":                {before: func(booking.Commit) error { return reservation.ErrStale }, answered: func(err error) bool { return fault.Is(err, fault.Unavailable) }},
		"in doubt, not stored": {before: unavailable, answered: func(err error) bool { return fault.Is(err, fault.Unavailable) }},
		"in doubt, stored":     {after: unavailable, stored: 1, answered: func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
				use := &booking.KeyUse{Key: "k", BodyHash: "one"}
				g.set(func(g *gates) { g.beforeCommit, g.afterCommit = c.before, c.after })
				first, _, err := b.bookings.BookSeries(t.Context(), owner, daily(1, 3), use)
				if !c.answered(err) {
					t.Fatalf("the answer is %v", err)
				}
				b.wantWhole(t, c.stored, 3)
				g.set(func(g *gates) { g.beforeCommit, g.afterCommit = nil, nil })
				again, refused, err := b.bookings.BookSeries(t.Context(), owner, daily(1, 3), use)
				if err != nil || len(refused) > 0 || len(again.Reservations) != 3 || first.ID != "" && first.ID != again.ID {
					t.Fatalf("the same request makes %+v after %s, %v", again, first.ID, err)
				}
				b.wantWhole(t, 1, 3)
				_, _, err = b.bookings.BookSeries(t.Context(), owner, daily(1, 1), nil)
				refusal(t, err) // the host is taken
				agree(t, []*scene{a, b})
			})
		})
	}
}

func TestASeriesWithoutAKeyIsNotBookedAgainWhileItsAnswerIsLost(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		g.set(func(g *gates) {
			g.afterCommit = func(booking.Commit) error { return fault.New(fault.Unavailable, "the database does not answer") }
		})
		if _, _, err := b.bookings.BookSeries(t.Context(), owner, daily(1, 3), nil); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("got %v", err)
		}
		g.set(func(g *gates) { g.afterCommit = nil })
		_, _, err := b.bookings.BookSeries(t.Context(), owner, daily(1, 3), nil)
		refusal(t, err)
		b.wantWhole(t, 1, 3)
		agree(t, []*scene{a, b})
	})
}

func TestAChangeOfASeriesInDoubtIsTakenOverOrBack(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			gated(t, []string{"a", "b"}, func(t *testing.T, a, b *scene, g *gates) {
				made := b.series(t, daily(1, 3))
				fail := func(booking.Commit) error { return fault.New(fault.Unavailable, "the database does not answer") }
				g.set(func(g *gates) {
					if g.beforeCommit = fail; stored {
						g.beforeCommit, g.afterCommit = nil, fail
					}
				})
				if _, err := b.bookings.ChangeSeries(t.Context(), owner, made.ID, "", planning.SeriesChange{At: new("11:00")}); !fault.Is(err, fault.Unavailable) {
					t.Fatalf("got %v", err)
				}
				g.set(func(g *gates) { g.beforeCommit, g.afterCommit = nil, nil })
				list, err := b.bookings.ChangeSeries(t.Context(), owner, made.ID, "", planning.SeriesChange{Change: quantity(2)})
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range list {
					if moved := r.Span.Start == onDay(i).Start+2*3600; moved != stored || r.Quantity != 2 {
						t.Errorf("the next change starts from %v and results in %d hosts", r.Span, r.Quantity)
					}
				}
				agree(t, []*scene{a, b})
			})
		})
	}
}

func TestAKeyStandsForOneSeriesOfOneProject(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	use := &booking.KeyUse{Key: "k", BodyHash: "one"}
	book := func(by booking.Caller, use *booking.KeyUse) (reservation.SeriesRecord, error) {
		made, _, err := s.bookings.BookSeries(t.Context(), by, daily(1, 3), use)
		return made, err
	}
	first, err := book(owner, use)
	if err != nil {
		t.Fatal(err)
	}
	again, err := book(owner, use)
	if diff := cmp.Diff(first, again); err != nil || diff != "" {
		t.Errorf("the same request again: %v (-first +again):\n%s", err, diff)
	}
	if _, err := book(owner, &booking.KeyUse{Key: "k", BodyHash: "two"}); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("another request with the key: %v, want unprocessable", err)
	}
	if _, err := s.bookings.Book(t.Context(), owner, during(1, 100, 200), &booking.KeyUse{Key: "k", BodyHash: "two"}); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("a reservation with the key: %v, want unprocessable", err)
	}
	if r, err := book(projects[1], use); err != nil || r.ID == first.ID {
		t.Errorf("another project's use of the key returns %s, %v", r.ID, err)
	}
	s.restart(t)
	if again, err := book(owner, use); err != nil || again.ID != first.ID {
		t.Errorf("after a restart: %s, %v; want %s", again.ID, err, first.ID)
	}
	if _, err := s.bookings.CancelSeries(t.Context(), owner, first.ID, localOf(onDay(1).Start)); err != nil {
		t.Fatal(err)
	}
	if again, err := book(owner, use); err != nil || !slices.Equal(days(again.Reservations), []string{"0 pending", "1 canceled", "2 canceled"}) {
		t.Errorf("after a part was canceled: %v, %v", days(again.Reservations), err)
	}
	if _, err := s.bookings.CancelSeries(t.Context(), owner, first.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := book(owner, use); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), first.ID) {
		t.Errorf("after all was canceled: %v, want a conflict that names %s", err, first.ID)
	}
	s.check(t)
}

func TestAKeySentToThreeReplicasMakesOneSeries(t *testing.T) {
	for range 10 {
		all := replicas(t, 3, named("a"), unsteady(0))
		var clients sync.WaitGroup
		ids, errs := make([]string, 9), make([]error, 9)
		for i := range ids {
			clients.Go(func() {
				var made reservation.SeriesRecord
				made, _, errs[i] = all[i%3].bookings.BookSeries(t.Context(), owner, daily(1, 3), &booking.KeyUse{Key: "k", BodyHash: "one"})
				ids[i] = made.ID
			})
		}
		clients.Wait()
		for i := range ids {
			if errs[i] != nil || ids[i] != ids[0] {
				t.Fatalf("request %d got %s, %v; another %s", i, ids[i], errs[i], ids[0])
			}
		}
		all[0].wantWhole(t, 1, 3)
		agree(t, all)
	}
}

func TestOfManySeriesForOneHostOneIsBooked(t *testing.T) {
	for range 10 {
		all := replicas(t, 2, named("a"), unsteady(0))
		var clients sync.WaitGroup
		var booked atomic.Int64
		for i := range 8 {
			clients.Go(func() {
				if _, _, err := all[i%2].bookings.BookSeries(t.Context(), owner, daily(1, 3), nil); err == nil {
					booked.Add(1)
				} else if r := refusal(t, err); len(r.Occurrences) != 3 {
					t.Errorf("%d occurrences are refused, want all 3", len(r.Occurrences))
				}
			})
		}
		clients.Wait()
		if booked.Load() != 1 {
			t.Fatalf("%d series got the host, want 1", booked.Load())
		}
		all[0].wantWhole(t, 1, 3)
		agree(t, all)
	}
}

func TestLimitsHoldForSeriesAcrossReplicas(t *testing.T) {
	for name, l := range map[string]planning.Limits{"hosts at once": {Hosts: 3}, "host-hours": {HostSeconds: 3 * 3 * 3600}} {
		t.Run(name, func(t *testing.T) {
			all := replicas(t, 3, named("a", "b", "c", "d", "e", "f"), unsteady(0), limited(l))
			var clients sync.WaitGroup
			var booked atomic.Int64
			for i := range 18 {
				clients.Go(func() {
					req := daily(1, 3)
					req.HostProperties = fmt.Sprintf(`["=", "$name", %q]`, string(rune('a'+i%6)))
					if _, _, err := all[i%3].bookings.BookSeries(t.Context(), owner, req, nil); err == nil {
						booked.Add(1)
					} else {
						refusal(t, err)
					}
				})
			}
			clients.Wait()
			if booked.Load() != 3 {
				t.Errorf("%d series of one host are booked, the limit allows 3", booked.Load())
			}
			all[0].wantWhole(t, 3, 3)
			agree(t, all)
		})
	}
}

func TestASeriesIsCanceledFromAnOccurrenceOn(t *testing.T) {
	s := newScene(t, named("a"))
	made := s.series(t, daily(1, 4))
	s.passTo(t, onDay(0).Start) // one is active
	if _, err := s.bookings.CancelSeries(t.Context(), owner, made.ID, localOf(onDay(3).End)); !fault.Is(err, fault.Conflict) {
		t.Errorf("after the last one: %v, want a conflict", err)
	}
	canceled, err := s.bookings.CancelSeries(t.Context(), owner, made.ID, localOf(onDay(2).Start))
	if err != nil || !slices.Equal(days(canceled), []string{"2 canceled", "3 canceled"}) {
		t.Fatalf("%v, %v", days(canceled), err)
	}
	if stored := s.storedSeries(t)[0]; !slices.Equal(days(stored.Reservations), []string{"0 active", "1 pending", "2 canceled", "3 canceled"}) {
		t.Errorf("there are %v", days(stored.Reservations))
	}
	s.series(t, planning.SeriesRequest{Request: daily(1, 1).Request, Rule: ruleOn(t, 2)}) // its host is free
	if canceled, err = s.bookings.CancelSeries(t.Context(), owner, made.ID, ""); err != nil || !slices.Equal(days(canceled), []string{"0 canceled", "1 canceled"}) {
		t.Fatalf("%v, %v", days(canceled), err)
	}
	s.refuses(t, "once more", says(fault.Conflict, "nothing of the series is left for this"), func() error {
		_, err := s.bookings.CancelSeries(t.Context(), owner, made.ID, "")
		return err
	})
}

// ruleOn returns the rule of a series with one occurrence, on a day of the others.
func ruleOn(t *testing.T, day int) recurrence.Rule {
	t.Helper()
	rule, err := recurrence.Parse(recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=1", TimeZone: "UTC", Start: onDay(day).Start.Time().UTC().Format("2006-01-02T15:04")})
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestASeriesIsChangedFromAnInstantOnWhatHasBegunStays(t *testing.T) {
	s := newScene(t, named("a", "b"))
	made := s.series(t, daily(1, 4))
	s.passTo(t, onDay(1).Start) // the first is over, the second active
	before := s.storedSeries(t)[0]
	change := planning.SeriesChange{At: new("12:00"), Change: quantity(2)}
	offered, err := s.bookings.OfferSeriesChange(t.Context(), owner, made.ID, "", change)
	if diff := cmp.Diff(before, s.storedSeries(t)[0]); err != nil || diff != "" {
		t.Fatalf("an offer: %v\n%s", err, diff)
	}
	changed, err := s.bookings.ChangeSeries(t.Context(), owner, made.ID, "", change)
	if diff := cmp.Diff(offered, changed); err != nil || diff != "" {
		t.Fatalf("%v (-offered +changed):\n%s", err, diff)
	}
	for i, r := range changed {
		if r.Span.Start != onDay(2+i).Start+3*3600 || r.Quantity != 2 || r.Version != before.Reservations[2+i].Version+1 {
			t.Errorf("the %d. one that is changed is %+v", i+1, r)
		}
	}
	after := s.storedSeries(t)[0]
	if diff := cmp.Diff(before.Reservations[:2], after.Reservations[:2]); diff != "" || len(changed) != 2 {
		t.Errorf("of %d that change; the others:\n%s", len(changed), diff)
	}
	if last, err := s.bookings.ChangeSeries(t.Context(), owner, made.ID, localOf(onDay(3).Start), planning.SeriesChange{Change: renamed("last")}); err != nil || len(last) != 1 || last[0].Span.Start != onDay(3).Start+3*3600 {
		t.Errorf("from the last one on: %+v, %v", last, err)
	}
	if same, err := s.bookings.ChangeSeries(t.Context(), owner, made.ID, localOf(onDay(3).Start), planning.SeriesChange{Change: renamed("last")}); err != nil || same[0].Version != changed[1].Version+1 {
		t.Errorf("the same again: %+v, %v", same, err)
	}
	s.check(t)
}

func TestAChangeForWhichOneOccurrenceHasNoRoomChangesNone(t *testing.T) {
	s := newScene(t, named("a", "b"))
	made := s.series(t, daily(1, 4))
	w := onDay(2)
	s.book(t, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: w.Start, End: w.End})
	s.refuses(t, "two hosts", func(err error) bool {
		r := refusal(t, err)
		return len(r.Occurrences) == 1 && r.Occurrences[0].Start == w.Start
	}, func() error {
		_, err := s.bookings.ChangeSeries(t.Context(), owner, made.ID, "", planning.SeriesChange{Change: quantity(2)})
		return err
	})
	if _, err := s.bookings.ChangeSeries(t.Context(), owner, made.ID, localOf(w.End), planning.SeriesChange{Change: quantity(2)}); err != nil {
		t.Errorf("from the next one on: %v", err)
	}
	s.check(t)
}

func TestOneReservationOfASeriesIsCanceledAndOneChangedAloneBeforeAllChange(t *testing.T) {
	s := newScene(t, named("a", "b"))
	made := s.series(t, daily(1, 4))
	if _, err := s.bookings.Cancel(t.Context(), owner, made.Reservations[1].ID); err != nil {
		t.Fatal(err)
	}
	w := onDay(3)
	s.change(t, made.Reservations[2].ID, planning.Change{Start: &w.Start, End: &w.End, Quantity: new(1)}) // beside the last one
	changed, err := s.bookings.ChangeSeries(t.Context(), owner, made.ID, "", planning.SeriesChange{Change: quantity(1), Duration: new(int64(7200))})
	if err != nil || !slices.Equal(days(changed), []string{"0 pending", "3 pending", "3 pending"}) {
		t.Fatalf("%v, %v", days(changed), err)
	}
	changed, err = s.bookings.ChangeSeries(t.Context(), owner, made.ID, "", planning.SeriesChange{At: new("09:30"), Change: quantity(2)})
	if err != nil || !slices.Equal(days(changed), []string{"0 pending", "2 pending", "3 pending"}) {
		t.Fatalf("%v, %v", days(changed), err)
	}
	for _, r := range changed {
		if r.Span.Seconds() != 7200 || r.Quantity != 2 || int64(r.Span.Start-firstDay)%86_400 != 9*3600+1800 {
			t.Errorf("%s has %d hosts for %v", r.ID, r.Quantity, r.Span)
		}
	}
	if r := s.get(t, made.Reservations[1].ID); r.Status != reservation.Canceled {
		t.Errorf("the canceled one is %s", r.Status)
	}
	s.check(t)
}

func TestAChangeOfASeriesIsOfTheVersionThatItsCallerExpects(t *testing.T) {
	s := newScene(t, named("a", "b"))
	made := s.series(t, daily(1, 3))
	read := made.VersionText()
	s.change(t, made.Reservations[1].ID, renamed("other"))
	for what, act := range map[string]func() error{
		"a change": func() error {
			_, err := s.bookings.ChangeSeries(t.Context(), expecting(read), made.ID, "", planning.SeriesChange{Change: quantity(2)})
			return err
		},
		"an offer": func() error {
			_, err := s.bookings.OfferSeriesChange(t.Context(), expecting(read), made.ID, "", planning.SeriesChange{Change: quantity(2)})
			return err
		},
		"a cancellation": func() error { _, err := s.bookings.CancelSeries(t.Context(), expecting(read), made.ID, ""); return err },
	} {
		s.refuses(t, what, overtaken("series"), act)
	}
	now := s.storedSeries(t)[0]
	if _, err := s.bookings.ChangeSeries(t.Context(), expecting(now.VersionText()), made.ID, "", planning.SeriesChange{Change: quantity(2)}); err != nil {
		t.Error(err)
	}
	now = s.storedSeries(t)[0]
	if _, err := s.bookings.CancelSeries(t.Context(), expecting(now.VersionText()), made.ID, ""); err != nil {
		t.Error(err)
	}
}

// Of several changes of the same version at several replicas, one is stored.
func TestOfChangesOfTheSameVersionOfASeriesOneIsStored(t *testing.T) {
	for range 10 {
		all := replicas(t, 3, named("a", "b"), unsteady(0))
		made := all[0].series(t, daily(1, 3))
		var clients sync.WaitGroup
		var stored atomic.Int64
		for i := range 6 {
			clients.Go(func() {
				_, err := all[i%3].bookings.ChangeSeries(t.Context(), expecting(made.VersionText()), made.ID, "", planning.SeriesChange{Change: renamed(fmt.Sprint("name ", i))})
				if err == nil {
					stored.Add(1)
				} else if !fault.Is(err, fault.Precondition) {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		list := all[0].storedSeries(t)[0].Reservations
		if stored.Load() != 1 || list[0].Name != list[1].Name || list[1].Name != list[2].Name || list[0].Version != 2 {
			t.Fatalf("%d changes are stored, and they are called %q, %q and %q", stored.Load(), list[0].Name, list[1].Name, list[2].Name)
		}
		agree(t, all)
	}
}

func TestOnlyTheOwnerOrAnAdminChangesASeries(t *testing.T) {
	s := newScene(t, named("a", "b"))
	made := s.series(t, daily(1, 3))
	foreign := booking.Caller{ProjectID: "another"}
	for what, act := range map[string]func() error{
		"a change": func() error {
			_, err := s.bookings.ChangeSeries(t.Context(), foreign, made.ID, "", planning.SeriesChange{Change: quantity(2)})
			return err
		},
		"an offer": func() error {
			_, err := s.bookings.OfferSeriesChange(t.Context(), foreign, made.ID, "", planning.SeriesChange{Change: quantity(2)})
			return err
		},
		"a cancellation": func() error { _, err := s.bookings.CancelSeries(t.Context(), foreign, made.ID, ""); return err },
		"of none":        func() error { _, err := s.bookings.CancelSeries(t.Context(), owner, "nothing", ""); return err },
	} {
		s.refuses(t, what, says(fault.NotFound, "there is no series"), act)
	}
	admin := booking.Caller{ProjectID: "admins", Admin: true}
	if list, err := s.bookings.ChangeSeries(t.Context(), admin, made.ID, "", planning.SeriesChange{Change: quantity(2)}); err != nil || list[0].ProjectID != owner.ProjectID {
		t.Errorf("an admin: %+v, %v", list, err)
	}
	if _, err := s.bookings.CancelSeries(t.Context(), admin, made.ID, ""); err != nil {
		t.Errorf("an admin cancels: %v", err)
	}
	s.check(t)
}

// The limit is that of the project of the series, whoever changes it.
func TestAnAdminsChangeOfASeriesCountsForItsProject(t *testing.T) {
	all := replicas(t, 2, named("a", "b", "c"), limited(planning.Limits{Hosts: 2}))
	made := all[0].series(t, daily(1, 3))
	all[1].series(t, daily(1, 3)) // which the first replica has not read
	admin := booking.Caller{ProjectID: "admins", Admin: true}
	_, err := all[0].bookings.ChangeSeries(t.Context(), admin, made.ID, "", planning.SeriesChange{Change: quantity(2)})
	if r := refusal(t, err); r.Constraint != reservation.MaxHosts || len(r.Occurrences) != 3 {
		t.Errorf("%v", err)
	}
	agree(t, all)
}

func TestAChangeOfASeriesThatIsCanceledMeanwhileIsAConflict(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		made := b.series(t, daily(1, 2))
		a.follow(t)
		goOn := g.holdCommit(anyCommit)
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := b.bookings.ChangeSeries(t.Context(), owner, made.ID, "", planning.SeriesChange{At: new("12:00")}); !fault.Is(err, fault.Conflict) {
				t.Errorf("the change: %v, want a conflict", err)
			}
		})
		synctest.Wait()
		if _, err := a.bookings.CancelSeries(t.Context(), owner, made.ID, ""); err != nil {
			t.Error(err)
		}
		close(goOn)
		running.Wait()
		agree(t, []*scene{a, b})
	})
}

func TestACloudWhoseChecksKnowNoSeriesBooksNone(t *testing.T) {
	s := newScene(t, named("a"), func(o *booking.Options) { o.Enforcement = enforcement.New(enforcement.Options{}) })
	for what, do := range map[string]func() error{
		"a booking":        func() error { _, _, err := s.bookings.BookSeries(t.Context(), owner, daily(1, 3), nil); return err },
		"the offer of one": func() error { _, err := s.bookings.OfferSeries(t.Context(), owner, daily(1, 3)); return err },
		"a change": func() error {
			_, err := s.bookings.ChangeSeries(t.Context(), owner, "any", "", planning.SeriesChange{})
			return err
		},
		"the offer of another": func() error {
			_, err := s.bookings.OfferSeriesChange(t.Context(), owner, "any", "", planning.SeriesChange{})
			return err
		},
	} {
		s.refuses(t, what, says(fault.Denied, "book and change the reservations one by one"), do)
	}
}

// actOnSeriesAtRandom books, changes or cancels a series of a few minutes each day.
func (s *scene) actOnSeriesAtRandom(ctx context.Context, chance *rand.Rand, by booking.Caller) error {
	some, err := s.memory.SeriesList(ctx, reservation.SeriesQuery{})
	if err != nil {
		return err
	}
	if len(some) > 0 && chance.IntN(3) > 0 {
		id := some[chance.IntN(len(some))].ID
		if chance.IntN(4) == 0 {
			_, err = s.bookings.CancelSeries(ctx, booking.Caller{Admin: true}, id, localOf(s.clock()+span.Instant(chance.IntN(90_000))))
			return err
		}
		c := planning.SeriesChange{Duration: new(10 + 10*chance.Int64N(10))}
		if chance.IntN(2) == 0 {
			c.At = new(s.clock().Add(10 + chance.Int64N(200)).Time().UTC().Format("15:04:05"))
		}
		if chance.IntN(2) == 0 {
			c.Quantity = new(1 + chance.IntN(3))
		}
		_, err = s.bookings.ChangeSeries(ctx, by, id, "", c)
		return err
	}
	rule, err := recurrence.Parse(recurrence.Pattern{
		Rule: "FREQ=DAILY;COUNT=3", TimeZone: "UTC", Start: s.clock().Add(10 + chance.Int64N(200)).Time().UTC().Format("2006-01-02T15:04:05"),
	})
	if err != nil {
		return err
	}
	req := planning.SeriesRequest{Rule: rule, Skip: chance.IntN(2) == 0}
	req.Terms, req.Duration = reservation.Terms{Quantity: 1 + chance.IntN(3)}, 10+10*chance.Int64N(10)
	_, _, err = s.bookings.BookSeries(ctx, by, req, nil)
	return err
}
