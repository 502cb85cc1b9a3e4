// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// held is the body of a booking of an hour, from tomorrow on, that is held for ten minutes.
func held(name string) string {
	return fmt.Sprintf(`{"name": %q, "hold": "10m", "start_time": %q, "duration": "1h"}`, name, at(86400))
}

var someHolds = setup{limits: planning.Limits{Hold: 900, Holds: 2}}

// The request that an offer names books it, and with a hold it holds it.
func TestAnOfferIsHeldAndConfirmed(t *testing.T) {
	c := start(t, someHolds)
	answered := want[v1.Offers](t, c.demo.post("/v1/offers", fmt.Sprintf(`{"quantity": 2, "duration": "1h", "windows": [{"start": %q}]}`, at(3600))), http.StatusOK)
	if answered.MaxHold != 900 {
		t.Errorf("offers can be held for %v", answered.MaxHold)
	}
	body := answered.Offers[0].Request
	body.Hold = new(v1.Duration(600))
	offered := want[v1.OfferAnswer](t, c.demo.post("/v1/reservations?dry_run=true", encode(t, body)), http.StatusOK).Offer
	r := want[v1.Reservation](t, c.demo.post("/v1/reservations", encode(t, body)), http.StatusCreated)
	if r.HeldUntil == nil || r.HeldUntil.Format(time.RFC3339) != at(600) || offered.HeldUntil == nil || !offered.HeldUntil.Equal(*r.HeldUntil) || r.Status != "pending" {
		t.Errorf("it is %s until %v, the offer until %v", r.Status, r.HeldUntil, offered.HeldUntil)
	}
	if used := want[v1.Limits](t, c.demo.get("/v1/limits"), http.StatusOK); used.Used.Holds != 1 || *used.Limits.MaxHoldsPerProject != 2 || used.Limits.MaxHold != 900 {
		t.Errorf("the limits are %+v", used)
	}
	if got := readCalendar(t, c.demo.get("/v1/reservations.ics")); got[0]["STATUS"] != "TENTATIVE" {
		t.Errorf("the feed has %v", got)
	}
	path := "/v1/reservations/" + r.ID
	wantError(t, c.demo.patch(path, `{"name": "other"}`), http.StatusConflict)
	wantError(t, c.demo.patch(path, `{"hold": "20m"}`), http.StatusBadRequest)
	wantError(t, c.demo.patch(path, `{"held_until": null}`), http.StatusBadRequest)
	wantError(t, c.other.patch(path, `{"hold": 0}`), http.StatusNotFound)
	for range 2 {
		if r := want[v1.Reservation](t, c.demo.patch(path, `{"hold": 0}`), http.StatusOK); r.HeldUntil != nil {
			t.Errorf("it is held until %v", r.HeldUntil)
		}
	}
	if got := readCalendar(t, c.demo.get("/v1/reservations.ics")); got[0]["STATUS"] != "CONFIRMED" {
		t.Errorf("the feed has %v", got)
	}
}

func TestAnExpiredHoldIsNoUseAndSaysWhatHappened(t *testing.T) {
	c := start(t, someHolds)
	r := c.demo.book(held("perhaps"))
	c.wait(600)
	over := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+r.ID), http.StatusOK)
	if over.Status != "canceled" || over.HeldUntil != nil || len(over.Events) != 2 || over.Events[1].Type != "expire" || over.Events[1].Detail != planning.HoldExpired {
		t.Errorf("%+v", over)
	}
	if failed := wantError(t, c.demo.patch("/v1/reservations/"+r.ID, `{"hold": 0}`), http.StatusConflict); !strings.Contains(failed.Message, "the hold expired at "+at(600)) {
		t.Errorf("a late confirmation: %s", failed.Message)
	}
	c.wait(90000)
	usage := want[v1.Usage](t, c.demo.get(fmt.Sprintf("/v1/usage?start=%s&end=%s", at(0), at(90000))), http.StatusOK)
	for _, row := range usage.Rows {
		if row.Reserved != 0 || row.Used != 0 {
			t.Errorf("its use is %+v", row)
		}
	}
}

func TestTheLimitOnHoldsIsARefusal(t *testing.T) {
	c := start(t, someHolds)
	c.demo.book(held("first"))
	c.wait(60)
	c.demo.book(held("second"))
	refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", held("third")), http.StatusConflict)
	if refused.Refusal == nil || refused.Refusal.Constraint != "max_holds_per_project" || !strings.Contains(refused.Error.Message, "the next one expires at "+at(600)) {
		t.Errorf("%+v", refused)
	}
}

func TestAGroupIsNotHeld(t *testing.T) {
	c := start(t, someHolds)
	if failed := wantError(t, c.demo.post("/v1/groups", `{"name": "g", "duration": "1h", "hold": "10m", "parts": [{}]}`), http.StatusBadRequest); failed.Field != "hold" || !strings.Contains(failed.Message, "book the group and cancel it") {
		t.Errorf("%+v", failed)
	}
}

// A reservation that belongs to no lease can be changed as a lease and as a group of one.
func TestALeaseAndAGroupThatAreHeldDoNotChangeEither(t *testing.T) {
	c := start(t, someHolds)
	r := c.demo.book(held("perhaps"))
	for _, body := range []string{`{"name": "other"}`, fmt.Sprintf(`{"end_date": %q}`, minutes(noon.Add(100_000)))} {
		if a := c.demo.put("/v1/leases/"+r.ID, body); a.status != http.StatusConflict || !strings.Contains(string(a.body), "confirm it before") {
			t.Errorf("PUT of %s: %v", body, a)
		}
	}
	if failed := wantError(t, c.demo.patch("/v1/groups/"+r.ID, `{"name": "other"}`), http.StatusConflict); !strings.Contains(failed.Message, "confirm it before") {
		t.Errorf("PATCH of the group: %+v", failed)
	}
	want[v1.Group](t, c.demo.patch("/v1/groups/"+r.ID, `{"name": "perhaps"}`), http.StatusOK)
	if now := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+r.ID), http.StatusOK); now.HeldUntil == nil || now.Name != "perhaps" {
		t.Errorf("afterwards it is %+v", now)
	}
}
