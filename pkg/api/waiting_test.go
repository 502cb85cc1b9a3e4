// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

var someWait = setup{limits: planning.Limits{Hold: 900, Holds: 2, Waiting: 2}}

// full is the body of a booking of all hosts for an hour, an hour from now.
func full(name string) string {
	return fmt.Sprintf(`{"name": %q, "quantity": 3, "start_time": %q, "duration": "1h"}`, name, at(3600))
}

// patient is the body of a request for the time of full that waits for half an hour.
func patient(name, more string) string {
	return fmt.Sprintf(`{"name": %q, "start_time": %q, "duration": "1h", "wait_until": %q%s}`, name, at(3600), at(1800), more)
}

func TestARefusedRequestWaitsAndIsBookedByTheCancellationThatMakesRoom(t *testing.T) {
	c := start(t, someWait)
	first := c.other.book(full("in the way"))
	offered := want[v1.OfferAnswer](t, c.demo.post("/v1/reservations?dry_run=true", patient("soon", "")), http.StatusOK).Offer
	if offered.WaitUntil == nil || offered.WaitUntil.Format(time.RFC3339) != at(1800) || len(offered.Hosts) != 0 {
		t.Errorf("the offer is %+v", offered)
	}
	foreign := c.other.book(patient("before it", `, "quantity": 3`))
	c.wait(1)
	made := c.demo.book(patient("soon", ""))
	w := made.Waiting
	if made.Status != "waiting" || len(made.Hosts) != 0 || w == nil || w.Until.Format(time.RFC3339) != at(1800) || w.Place != 2 || w.Of != 2 || w.NextStart != nil || w.Hold != 0 {
		t.Fatalf("it is %+v, waiting %+v", made, w)
	}
	if made.Start.Format(time.RFC3339) != at(3600) || made.WindowEnd.Format(time.RFC3339) != at(7200) {
		t.Errorf("it asks for %v until %v", made.Start, made.WindowEnd)
	}
	path := "/v1/reservations/" + made.ID
	for who, by := range map[string]caller{"the owner": c.demo, "an admin": c.admin} {
		shown := want[v1.Reservation](t, by.get(path), http.StatusOK)
		if len(shown.Hosts) != 0 || shown.Waiting.Place != 2 || shown.Waiting.NextStart == nil || shown.Waiting.NextStart.Format(time.RFC3339) != at(7200) {
			t.Errorf("%s sees %+v, waiting %+v", who, shown, shown.Waiting)
		}
	}
	listed := want[v1.Reservations](t, c.demo.get("/v1/reservations?status=waiting"), http.StatusOK).Reservations
	if len(listed) != 1 || listed[0].ID != made.ID || listed[0].Waiting.Place != 2 || listed[0].Waiting.NextStart != nil {
		t.Errorf("listed are %+v", listed)
	}
	if used := want[v1.Limits](t, c.demo.get("/v1/limits"), http.StatusOK); used.Limits.MaxWaitingPerProject != 2 || used.Used.Waiting != 1 || used.Used.Reservations != 0 {
		t.Errorf("the limits are %+v", used)
	}

	want[v1.Reservation](t, c.other.patch("/v1/reservations/"+first.ID, `{"quantity": 2}`), http.StatusOK)
	booked := want[v1.Reservation](t, c.demo.get(path), http.StatusOK)
	if booked.Status != "pending" || booked.Waiting != nil || booked.WindowStart != nil || !slices.ContainsFunc(booked.Events, func(e v1.Event) bool { return e.Type == "booked" }) {
		t.Errorf("with room it is %+v", booked)
	}
	if left := want[v1.Reservation](t, c.other.get("/v1/reservations/"+foreign.ID), http.StatusOK); left.Status != "waiting" || left.Waiting.Place != 1 || left.Waiting.Of != 1 {
		t.Errorf("the one for which there is no room is %+v, waiting %+v", left, left.Waiting)
	}
}

func TestAWaitEndsWithRoomForAHoldOrWithoutAny(t *testing.T) {
	c := start(t, someWait)
	first := c.other.book(full("in the way"))
	short := c.demo.book(fmt.Sprintf(`{"name": "short", "start_time": %q, "duration": "1h", "wait_until": %q}`, at(3600), at(60)))
	held := c.demo.book(fmt.Sprintf(`{"name": "held", "start_time": %q, "duration": "1h", "wait_until": %q, "hold": "10m"}`, at(3600), at(1800)))
	if held.Waiting == nil || held.Waiting.Hold != 600 || held.HeldUntil != nil {
		t.Errorf("it waits as %+v, held until %v", held.Waiting, held.HeldUntil)
	}
	c.wait(60)
	over := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+short.ID), http.StatusOK)
	if last := over.Events[len(over.Events)-1]; over.Status != "canceled" || over.Waiting != nil || last.Type != "expire" || last.Detail != planning.WaitExpired {
		t.Errorf("after its wait it is %+v", over)
	}
	if a := c.other.delete("/v1/reservations/" + first.ID); a.status != http.StatusNoContent {
		t.Fatal(a)
	}
	if now := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+held.ID), http.StatusOK); now.Status != "pending" || now.HeldUntil == nil || now.HeldUntil.Format(time.RFC3339) != at(660) {
		t.Errorf("with room it is %+v, held until %v", now, now.HeldUntil)
	}
}

func TestWhatWaitsIsCanceledAndNotChanged(t *testing.T) {
	c := start(t, someWait)
	c.other.book(full("in the way"))
	r := c.demo.book(patient("soon", ""))
	path := "/v1/reservations/" + r.ID
	for _, body := range []string{`{"name": "other"}`, `{"quantity": 2}`, `{"hold": 0}`, fmt.Sprintf(`{"end_time": %q}`, at(9000))} {
		if failed := wantError(t, c.demo.patch(path, body), http.StatusConflict); !strings.Contains(failed.Message, "waits for room") {
			t.Errorf("PATCH of %s: %s", body, failed.Message)
		}
	}
	if failed := wantError(t, c.demo.patch(path, fmt.Sprintf(`{"wait_until": %q}`, at(600))), http.StatusBadRequest); failed.Field != "wait_until" || !strings.Contains(failed.Message, "ask for it again") {
		t.Errorf("another wait: %+v", failed)
	}
	wantError(t, c.other.delete(path), http.StatusNotFound)
	foreseen := want[v1.CancellationAnswer](t, c.demo.send("DELETE", path+"?dry_run=true", ""), http.StatusOK).Cancellation
	if foreseen.Status != "waiting" || len(foreseen.Servers) != 0 {
		t.Errorf("a cancellation would do %+v", foreseen)
	}
	if a := c.demo.delete(path); a.status != http.StatusNoContent {
		t.Fatal(a)
	}
	if over := want[v1.Reservation](t, c.demo.get(path), http.StatusOK); over.Status != "canceled" || over.Waiting != nil {
		t.Errorf("afterwards it is %+v", over)
	}
}

func TestARequestThatCannotWaitIsRefused(t *testing.T) {
	c := start(t, someWait)
	c.other.book(full("in the way"))
	for name, body := range map[string]string{
		"in the past":            strings.Replace(patient("r", ""), at(1800), at(0), 1),
		"beyond the last start":  strings.Replace(patient("r", ""), at(1800), at(3601), 1),
		"before the year 1970":   strings.Replace(patient("r", ""), at(1800), "1960-01-01T00:00:00Z", 1),
		"later than all others":  strings.Replace(patient("r", ""), at(1800), "9999-12-31T23:59:59Z", 1),
		"beyond the last hold":   strings.Replace(patient("r", `, "hold": "10m"`), at(1800), at(3300), 1),
		"in another field":       `{"name": "g", "duration": "1h", "wait_until": "` + at(60) + `", "parts": [{}]}`,
		"in a lease of the past": `{"name": "r", "duration": "1h", "wait_until": "soon"}`,
	} {
		path := "/v1/reservations"
		if strings.Contains(body, "parts") {
			path = "/v1/groups"
		}
		failed := wantError(t, c.demo.post(path, body), http.StatusBadRequest)
		if !strings.HasPrefix(failed.Field, "wait_until") && !strings.Contains(failed.Message, "wait_until") {
			t.Errorf("%s: %+v", name, failed)
		}
	}
	c.demo.book(patient("first", ""))
	c.demo.book(patient("second", ""))
	refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", patient("third", "")), http.StatusConflict)
	if refused.Refusal == nil || !strings.Contains(refused.Error.Message, "as many waiting reservations as it may, 2") {
		t.Errorf("one more: %+v", refused)
	}
	if none := wantError(t, start(t, setup{}).demo.post("/v1/reservations", patient("r", "")), http.StatusBadRequest); none.Field != "wait_until" || !strings.Contains(none.Message, "not offered") {
		t.Errorf("without a limit: %+v", none)
	}
}

// It has no time yet: calendars, leases and hints that name it do without it.
func TestWhatWaitsIsInNoFeedAndNoLease(t *testing.T) {
	c := start(t, someWait)
	c.other.book(full("in the way"))
	r := c.demo.book(patient("soon", ""))
	if got := readCalendar(t, c.demo.get("/v1/reservations.ics")); len(got) != 0 {
		t.Errorf("the feed has %v", got)
	}
	if a := c.demo.get("/v1/leases"); a.status != http.StatusOK || strings.Contains(string(a.body), r.ID) {
		t.Errorf("the leases are %v", a)
	}
	for _, a := range []answer{c.demo.get("/v1/leases/" + r.ID), c.demo.put("/v1/leases/"+r.ID, `{"name": "other"}`), c.demo.delete("/v1/leases/" + r.ID), c.demo.get("/v1/groups/" + r.ID)} {
		if a.status != http.StatusNotFound {
			t.Errorf("as a lease it is %v", a)
		}
	}
	if now, _ := c.bookings.Reservation(r.ID); now.Status != reservation.Waiting {
		t.Errorf("afterwards it is %s", now.Status)
	}
}
