// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// weekly is the body for a series of two Mondays, 9:00 to 17:00 in Paris, with more fields, each after a comma.
func weekly(more string) string {
	return fmt.Sprintf(`{"name": "course", "rule": "FREQ=WEEKLY;COUNT=2", "local_start": "2026-11-23T09:00", "time_zone": "Europe/Paris", "duration": "8h"%s}`, more)
}

func (p caller) series(more string) v1.Series {
	p.cloud.t.Helper()
	return want[v1.Series](p.cloud.t, p.post("/v1/series", weekly(more)), http.StatusCreated)
}

// became returns the local times of the occurrences of a series, each with its start and the status of its reservation.
func became(s v1.Series) (list []string) {
	for _, o := range s.Occurrences {
		list = append(list, fmt.Sprintf("%s %s %s", o.Local, o.Start.Format("15:04Z07:00"), o.Status))
	}
	return list
}

func TestEachOccurrenceOfASeriesIsAReservation(t *testing.T) {
	c := start(t, setup{})
	answer := c.demo.post("/v1/series", weekly(`, "quantity": 2, "also": ["2027-07-01T09:00"]`))
	s := want[v1.Series](t, answer, http.StatusCreated)
	if location := answer.header.Get("Location"); location != "/v1/series/"+s.ID {
		t.Errorf("the location is %q", location)
	}
	if got := fmt.Sprint(became(s)); got != "[2026-11-23T09:00:00 08:00Z pending 2026-11-30T09:00:00 08:00Z pending 2027-07-01T09:00:00 07:00Z pending]" {
		t.Errorf("the occurrences are %s", got)
	}
	list := want[v1.Reservations](t, c.demo.get("/v1/reservations?series_id="+s.ID), http.StatusOK).Reservations
	if len(list) != 3 || list[2].SeriesID != s.ID || list[2].Occurrence != "2027-07-01T09:00:00" || list[2].Quantity != 2 || list[2].ID != s.Occurrences[2].ReservationID {
		t.Errorf("the reservations are %+v", list)
	}
	shown := want[v1.Series](t, c.demo.get("/v1/series/"+s.ID), http.StatusOK)
	if fmt.Sprint(shown) != fmt.Sprint(s) {
		t.Errorf("the series is shown as %+v, and was booked as %+v", shown, s)
	}
}

func TestASeriesIsOfferedAsItIsBooked(t *testing.T) {
	c := start(t, setup{})
	offer := want[v1.SeriesOfferAnswer](t, c.admin.post("/v1/series?dry_run=true", weekly("")), http.StatusOK).Offer
	if left := want[v1.SeriesList](t, c.admin.get("/v1/series"), http.StatusOK).Series; len(left) != 0 {
		t.Errorf("the offer has left %+v", left)
	}
	s := c.admin.series("")
	for i, o := range offer.Occurrences {
		if b := s.Occurrences[i]; o.Local != b.Local || o.Start != b.Start || o.End != b.End || o.Quantity != b.Quantity || len(o.Hosts) != 1 {
			t.Errorf("offered is %+v, booked is %+v", o, b)
		}
	}
}

// One of two Mondays is taken: the refusal names it, and what would be accepted, which is then booked.
func TestTheRefusalOfASeriesNamesTheOccurrencesAndWhatWouldBeAccepted(t *testing.T) {
	c := start(t, setup{hosts: computes("A", "B", "C")})
	c.other.book(`{"name": "taken", "quantity": 2, "start_time": "2026-11-30T08:00:00Z", "duration": "1h"}`)
	refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/series", weekly(`, "quantity": 3`)), http.StatusConflict)
	r := refused.Refusal
	if len(r.BlockedBy) == 0 || len(r.Occurrences) != 1 || r.Occurrences[0].Local != "2026-11-30T09:00:00" || r.EarliestStart != nil || !strings.Contains(refused.Error.Message, "1 of 2 occurrences") {
		t.Errorf("the refusal is %+v, %+v", refused.Error, r)
	}
	if left := want[v1.SeriesList](t, c.demo.get("/v1/series"), http.StatusOK).Series; len(left) != 0 {
		t.Errorf("the refusal has left %+v", left)
	}
	c.demo.delete("/v1/series/" + c.demo.series(fmt.Sprintf(`, "quantity": %d`, r.LargestQuantity)).ID)
	s := c.demo.series(`, "quantity": 3, "skip_refused": true`)
	if got := fmt.Sprint(became(s)); got != "[2026-11-23T09:00:00 08:00Z pending 2026-11-30T09:00:00 08:00Z ]" || len(s.Refused) != 1 || s.Refused[0].Local != "2026-11-30T09:00:00" {
		t.Errorf("the occurrences are %s, and refused are %+v", got, s.Refused)
	}
}

func TestOneOccurrenceIsSkippedAndTheFollowingOnesAreChangedOrCanceled(t *testing.T) {
	c := start(t, setup{})
	s := c.demo.series(`, "also": ["2026-12-07T09:00", "2026-12-14T09:00"]`)
	c.demo.delete("/v1/reservations/" + s.Occurrences[1].ReservationID)
	offered := want[v1.SeriesOfferAnswer](t, c.demo.patch("/v1/series/"+s.ID+"?dry_run=true", `{"time_of_day": "10:30", "quantity": 2}`), http.StatusOK).Offer
	if len(offered.Occurrences) != 3 || offered.Occurrences[0].Start.Format("15:04") != "09:30" || offered.Occurrences[0].Quantity != 2 {
		t.Errorf("the change is offered as %+v", offered)
	}
	changed := want[v1.Series](t, c.demo.patch("/v1/series/"+s.ID+"?from=2026-12-01", `{"time_of_day": "10:30", "duration": "1h"}`), http.StatusOK)
	if got := fmt.Sprint(became(changed)); got != "[2026-11-23T09:00:00 08:00Z pending 2026-11-30T09:00:00 08:00Z canceled 2026-12-07T09:00:00 09:30Z pending 2026-12-14T09:00:00 09:30Z pending]" {
		t.Errorf("the occurrences are %s", got)
	}
	foreseen := want[v1.SeriesCancellation](t, c.demo.delete("/v1/series/"+s.ID+"?dry_run=true&from=2026-12-08T00:00:00Z"), http.StatusOK)
	if len(foreseen.Reservations) != 1 || foreseen.Reservations[0].ID != s.Occurrences[3].ReservationID {
		t.Errorf("foreseen is %+v", foreseen)
	}
	if a := c.demo.delete("/v1/series/" + s.ID + "?from=2026-12-08T00:00:00Z"); a.status != http.StatusNoContent {
		t.Error(a)
	}
	got := fmt.Sprint(became(want[v1.Series](t, c.demo.get("/v1/series/"+s.ID), http.StatusOK)))
	if got != "[2026-11-23T09:00:00 08:00Z pending 2026-11-30T09:00:00 08:00Z canceled 2026-12-07T09:00:00 09:30Z pending 2026-12-14T09:00:00 09:30Z canceled]" {
		t.Errorf("the occurrences are %s", got)
	}
}

// An occurrence that was moved alone stays where it is among those that follow: the rule tells, not the start of its reservation.
func TestThisAndTheFollowingOccurrencesAreThoseOfTheRule(t *testing.T) {
	c := start(t, setup{})
	s := c.demo.series(`, "also": ["2026-12-07T09:00"]`)
	want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+s.Occurrences[1].ReservationID, `{"start_time": "2026-11-20T13:00:00Z", "end_time": "2026-11-20T14:00:00Z"}`), http.StatusOK)
	for _, from := range []string{"2026-11-30", "2026-11-30T09:00", "2026-11-30T09:00:00%2B01:00", "2026-11-30T08:00:00Z"} {
		foreseen := want[v1.SeriesCancellation](t, c.demo.delete("/v1/series/"+s.ID+"?dry_run=true&from="+from), http.StatusOK)
		if len(foreseen.Reservations) != 2 || foreseen.Reservations[0].ID != s.Occurrences[1].ReservationID {
			t.Errorf("from %s: foreseen is %+v", from, foreseen)
		}
	}
	for _, from := range []string{"", "tomorrow", "2026-13-01"} {
		if failed := wantError(t, c.demo.delete("/v1/series/"+s.ID+"?from="+from), http.StatusBadRequest); failed.Field != "from" {
			t.Errorf("from %q: %+v", from, failed)
		}
	}
	for _, query := range []string{"?from=2026-12-08", "?from=2026-12-08&dry_run=true"} {
		if failed := wantError(t, c.demo.delete("/v1/series/"+s.ID+query), http.StatusConflict); !strings.Contains(failed.Message, "from 2026-12-08T00:00:00 on") {
			t.Errorf("with nothing left: %+v", failed)
		}
	}
	if left := want[v1.SeriesList](t, c.demo.get("/v1/series"), http.StatusOK).Series[0].Left; left != 3 {
		t.Errorf("%d are left", left)
	}
}

// The largest quantity that the refusal of a change names is accepted, and a larger one is not.
func TestTheRefusalOfAChangeOfASeriesNamesTheLargestQuantity(t *testing.T) {
	c := start(t, setup{hosts: computes("A", "B", "C", "D")})
	c.other.book(`{"name": "taken", "start_time": "2026-11-30T08:00:00Z", "duration": "1h"}`)
	s := c.demo.series("")
	refused := want[v1.ErrorAnswer](t, c.demo.patch("/v1/series/"+s.ID, `{"quantity": 4}`), http.StatusConflict)
	if refused.Refusal.LargestQuantity != 3 || len(refused.Refusal.Occurrences) != 1 {
		t.Errorf("the refusal is %+v", refused.Refusal)
	}
	want[v1.Series](t, c.demo.patch("/v1/series/"+s.ID, `{"quantity": 3}`), http.StatusOK)
}

// A change cannot make of a series what could not have been booked: its commit would have hundreds of thousands of claims.
func TestAChangeOfASeriesKeepsItsBounds(t *testing.T) {
	c := start(t, setup{})
	s := c.demo.series("")
	for _, quantity := range []string{"10001", "9223372036854775807"} {
		if failed := wantError(t, c.demo.patch("/v1/series/"+s.ID, `{"quantity": `+quantity+`}`), http.StatusBadRequest); failed.Field != "quantity" || !strings.Contains(failed.Message, "all together may have 20000") {
			t.Errorf("%s: the error is %+v", quantity, failed)
		}
	}
	want[v1.ErrorAnswer](t, c.demo.patch("/v1/series/"+s.ID, `{"quantity": 10000}`), http.StatusConflict)
}

func TestATimeOfDayThatMakesTwoOccurrencesBeginAtOnceIsRefused(t *testing.T) {
	c := start(t, setup{})
	s := c.demo.series(`, "also": ["2026-11-23T14:00"]`)
	if failed := wantError(t, c.demo.patch("/v1/series/"+s.ID, `{"time_of_day": "11:00"}`), http.StatusBadRequest); failed.Field != "time_of_day" {
		t.Errorf("the error is %+v", failed)
	}
}

func TestASeriesWithoutAnAnswerCanBeSentAgain(t *testing.T) {
	c := start(t, setup{})
	send := func(body string) answer {
		return c.demo.send("POST", "/v1/series", body, "Idempotency-Key", "once")
	}
	first, again := want[v1.Series](t, send(weekly("")), http.StatusCreated), want[v1.Series](t, send(weekly("")), http.StatusCreated)
	if first.ID != again.ID {
		t.Errorf("the same request has made the series %s and %s", first.ID, again.ID)
	}
	wantError(t, send(weekly(`, "quantity": 2`)), http.StatusUnprocessableEntity)
}

func TestAWrongFieldOfASeriesIsNamedWithWhatIsAccepted(t *testing.T) {
	c := start(t, setup{})
	for body, field := range map[string]string{
		weekly(`, "rule": "FREQ=HOURLY"`):             "rule",
		weekly(`, "rule": "FREQ=DAILY"`):              "rule",
		weekly(`, "local_start": "yesterday"`):        "local_start",
		weekly(`, "local_start": "2026-11-09T09:00"`): "local_start",
		weekly(`, "time_zone": "Europe/Atlantis"`):    "time_zone",
		weekly(`, "except": ["2026-11-24"]`):          "except",
		weekly(`, "duration": 0`):                     "duration",
		weekly(`, "quantity": 20000`):                 "quantity",
		weekly(`, "start_time": "2026-11-23T09:00Z"`): "start_time",
		weekly(`, "image": "debian"`):                 "image",
		weekly(`, "hold": "10m"`):                     "hold",
		weekly(`, "name": " "`):                       "name",
	} {
		if failed := wantError(t, c.demo.post("/v1/series", body), http.StatusBadRequest); failed.Field != field {
			t.Errorf("%s: the error is about %q: %s", body, failed.Field, failed.Message)
		}
	}
	s := c.demo.series("")
	for body, field := range map[string]string{
		`{"time_of_day": "noon"}`: "time_of_day", `{"duration": -1}`: "duration", `{"quantity": 0}`: "quantity", `{"name": ""}`: "name", `{"rule": "FREQ=DAILY"}`: "rule",
	} {
		if failed := wantError(t, c.demo.patch("/v1/series/"+s.ID, body), http.StatusBadRequest); failed.Field != field {
			t.Errorf("%s: the error is about %q: %s", body, failed.Field, failed.Message)
		}
	}
}
