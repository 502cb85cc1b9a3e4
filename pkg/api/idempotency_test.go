// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// retry sends a request for a reservation with an idempotency key.
func (p caller) retry(key, body string) answer {
	p.cloud.t.Helper()
	return p.send("POST", "/v1/reservations", body, "Idempotency-Key", key)
}

func TestARepeatedRequestGivesTheSameReservation(t *testing.T) {
	c := start(t, setup{})
	first := c.demo.retry("one", `{"name": "r", "duration": 600}`)
	r := want[v1.Reservation](t, first, http.StatusCreated)
	c.seconds.Add(60)
	second := c.demo.retry("one", `{"name": "r", "duration": 600}`)
	if diff := cmp.Diff(r, want[v1.Reservation](t, second, http.StatusCreated)); diff != "" {
		t.Errorf("the second differs (-first +second):\n%s", diff)
	}
	if first.header.Get("Location") != second.header.Get("Location") {
		t.Errorf("it moved to %s", second.header.Get("Location"))
	}
	if n := len(c.stored()); n != 1 {
		t.Errorf("%d reservations are stored", n)
	}
}

func TestARetryMayWriteTheSameRequestAnew(t *testing.T) {
	c := start(t, setup{})
	first := want[v1.Reservation](t, c.demo.retry("one", `{"duration": 600, "name": "a"}`), http.StatusCreated)
	second := want[v1.Reservation](t, c.demo.retry("one", `{ "name":"\u0061","duration":600 }`), http.StatusCreated)
	if first.ID != second.ID {
		t.Errorf("%s and %s are made", first.ID, second.ID)
	}
}

func TestTheSameKeyWithAnotherBodyIsUnprocessable(t *testing.T) {
	c := start(t, setup{})
	c.demo.retry("one", `{"name": "r", "duration": 600}`)
	before := c.stored()
	wantError(t, c.demo.retry("one", `{"name": "r", "duration": 601}`), http.StatusUnprocessableEntity)
	if diff := cmp.Diff(before, c.stored()); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
}

func TestAKeyBelongsToItsProject(t *testing.T) {
	c := start(t, setup{})
	ours := want[v1.Reservation](t, c.demo.retry("one", `{"name": "r", "duration": 600}`), http.StatusCreated)
	theirs := want[v1.Reservation](t, c.other.retry("one", `{"name": "r", "duration": 60}`), http.StatusCreated)
	if ours.ID == theirs.ID || theirs.ProjectID != "other" {
		t.Errorf("got %+v", theirs)
	}
}

func TestARefusedRequestDoesNotUseItsKeyUp(t *testing.T) {
	c := start(t, setup{})
	for _, body := range []string{`{"name": "r", "duration": 600, "quantity": 4}`, `{"name": "r", "duration": 600, "quantity": 0}`} {
		if a := c.demo.retry("one", body); a.status != http.StatusConflict && a.status != http.StatusBadRequest {
			t.Errorf("got %v", a)
		}
		if _, used, err := c.store.Key(t.Context(), "demo", "one"); used || err != nil {
			t.Errorf("after %s the key is used: %v, %v", body, used, err)
		}
	}
	want[v1.Reservation](t, c.demo.retry("one", `{"name": "r", "duration": 600, "quantity": 3}`), http.StatusCreated)
}

func TestADryRunDoesNotUseItsKeyUp(t *testing.T) {
	c := start(t, setup{})
	offer := c.demo.send("POST", "/v1/reservations?dry_run=true", `{"name": "r", "duration": 600}`, "Idempotency-Key", "one")
	want[v1.OfferAnswer](t, offer, http.StatusOK)
	want[v1.Reservation](t, c.demo.retry("one", `{"name": "r", "duration": 60}`), http.StatusCreated)
}

func TestAKeyHasABound(t *testing.T) {
	c := start(t, setup{})
	if e := wantError(t, c.demo.retry(strings.Repeat("k", 256), `{"name": "r", "duration": 600}`), http.StatusBadRequest); e.Field != "Idempotency-Key" {
		t.Errorf("the error is about %q", e.Field)
	}
	want[v1.Reservation](t, c.demo.retry(strings.Repeat("k", 255), `{"name": "r", "duration": 600}`), http.StatusCreated)
}

func TestRequestsAtOnceWithOneKeyMakeOneReservation(t *testing.T) {
	c := start(t, setup{})
	answers := make([]answer, 6)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = c.demo.retry("one", `{"name": "r", "quantity": 3, "duration": 600}`) })
	}
	group.Wait()
	stored := c.stored()
	if len(stored) != 1 {
		t.Fatalf("%d reservations are stored", len(stored))
	}
	for _, a := range answers {
		if got := want[v1.Reservation](t, a, http.StatusCreated).ID; got != stored[0].ID {
			t.Errorf("an answer has %s, the database %s", got, stored[0].ID)
		}
	}
}

func TestAKeyIsNotGoodForASecondReservation(t *testing.T) {
	c := start(t, setup{})
	r := want[v1.Reservation](t, c.demo.retry("one", `{"name": "r", "duration": 600}`), http.StatusCreated)
	c.demo.delete("/v1/reservations/" + r.ID)
	if e := wantError(t, c.demo.retry("one", `{"name": "r", "duration": 600}`), http.StatusConflict); !strings.Contains(e.Message, r.ID) || !strings.Contains(e.Message, "new Idempotency-Key") {
		t.Errorf("got %+v", e)
	}
}
