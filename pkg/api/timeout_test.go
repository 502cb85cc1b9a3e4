// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// hanging are records and a reader that never answer.
type hanging struct{ *memory.Records }

func (hanging) Get(ctx context.Context, _ string) (reservation.Reservation, error) {
	<-ctx.Done()
	return reservation.Reservation{}, ctx.Err()
}

func (hanging) List(ctx context.Context, _ reservation.Query) ([]reservation.Reservation, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Commit(ctx context.Context, _ booking.Commit) error {
	<-ctx.Done()
	return ctx.Err()
}

// with replaces the records of the API.
func with(t *testing.T, records booking.Records) func(*api.Options) {
	return func(o *api.Options) {
		bookings, err := booking.Open(t.Context(), booking.Options{
			Records: records, Keys: memory.New(), Reader: o.Reader.(booking.Reader), Now: o.Now, NewID: uuid.NewString,
			Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		}, o.Inventory.Snapshot())
		must(t, err)
		o.Booking = bookings
	}
}

// serve calls the handler without a connection, as the bubble of synctest requires, and checks
// the answer against the document.
func (p caller) serve(ctx context.Context, method, path, body string) answer {
	t := p.cloud.t
	t.Helper()
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	request.Header.Set("X-Auth-Token", p.token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	recorder := httptest.NewRecorder()
	p.cloud.handler.ServeHTTP(recorder, request)
	a := answer{status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
	p.cloud.contract.hold(t, request, body, a)
	return a
}

func TestEveryRequestIsAnsweredInItsTime(t *testing.T) {
	for name, limit := range map[string]time.Duration{"default": 0, "set": 7 * time.Second} {
		c := start(t, setup{adjust: func(o *api.Options) {
			o.Reader, o.RequestTimeout = hanging{}, limit
			with(t, hanging{memory.New()})(o)
		}})
		synctest.Test(t, func(t *testing.T) {
			gone, hangUp := context.WithCancel(t.Context())
			hangUp() // what has begun continues when the client hangs up
			for _, call := range [][3]string{
				{"GET", "/v1/reservations"}, {"GET", "/v1/reservations/x"}, {"DELETE", "/v1/reservations/x"},
				{"PATCH", "/v1/reservations/x", `{"name": "y"}`}, {"POST", "/v1/reservations", `{"name": "r", "duration": 60}`}, {"GET", "/v1/reservations.ics"},
			} {
				begun, client := time.Now(), gone
				if call[0] == "POST" { // a POST without its client would not begin
					client = t.Context()
				}
				a := c.demo.serve(client, call[0], call[1], call[2])
				want := cmp.Or(limit, 30*time.Second)
				if took := time.Since(begun); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "5" || took != want {
					t.Errorf("%s: %s %s: after %v, Retry-After %q: %v", name, call[0], call[1], took, a.header.Get("Retry-After"), a)
				}
			}
		})
	}
}

// losing are records that do not report whether they have stored, once lost is set.
type losing struct {
	*memory.Records
	lost *atomic.Bool
}

func (l losing) Commit(ctx context.Context, c booking.Commit) error {
	if !l.lost.Load() {
		return l.Records.Commit(ctx, c)
	}
	return &fault.Error{Kind: fault.Unavailable, Message: "the database does not answer", RetryAfter: 5 * time.Second}
}

func TestWhoseRequestIsInDoubtIsToldHowToFindOut(t *testing.T) {
	records := losing{memory.New(), new(atomic.Bool)}
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Reader = records
		with(t, records)(o)
	}})
	stored := c.demo.book(`{"name": "r", "duration": 60}`)
	records.lost.Store(true)
	for name, test := range map[string]struct {
		answer answer
		want   string
	}{
		"with a key":    {c.demo.retry("key", `{"name": "r", "duration": 60}`), "again with the same Idempotency-Key"},
		"without a key": {c.demo.post("/v1/reservations", `{"name": "r", "duration": 60}`), "look at the list before"},
		"a change":      {c.demo.patch("/v1/reservations/"+stored.ID, `{"name": "x"}`), "the change may have been made anyway: look at the reservation before"},
		"a canceling":   {c.demo.delete("/v1/reservations/" + stored.ID), "the reservation may be canceled anyway: look at it before"},
	} {
		e := wantError(t, test.answer, http.StatusServiceUnavailable)
		if test.answer.header.Get("Retry-After") != "5" || !strings.Contains(e.Message, "the database does not answer; ") || !strings.Contains(e.Message, test.want) {
			t.Errorf("%s: %q, Retry-After %q", name, e.Message, test.answer.header.Get("Retry-After"))
		}
	}
	for name, answer := range map[string]answer{
		"booking": c.demo.post("/v1/reservations", `{"name": "r", "duration": 60, "quantity": 9}`), "change": c.demo.patch("/v1/reservations/"+stored.ID, `{"quantity": 9}`),
	} {
		if e := wantError(t, answer, http.StatusConflict); strings.Contains(e.Message, "anyway") {
			t.Errorf("the refusal of a %s is in doubt: %q", name, e.Message)
		}
	}
}

// noting is a reader that records the ids of the request.
type noting struct{ got *serving.RequestIDs }

func (n noting) Get(ctx context.Context, _ string) (reservation.Reservation, error) {
	*n.got, _ = serving.RequestIDsOf(ctx)
	return reservation.Reservation{}, booking.NotFound("x")
}

func (n noting) List(context.Context, reservation.Query) ([]reservation.Reservation, error) {
	return nil, nil
}

func TestWhatIsDoneForARequestKnowsItsIDs(t *testing.T) {
	var got serving.RequestIDs
	c := start(t, setup{adjust: func(o *api.Options) { o.Reader = noting{&got} }})
	global := "req-" + uuid.NewString()
	for given, passed := range map[string]string{global: global, "": "", "req-1": "", strings.ToUpper(global): ""} {
		a := c.demo.send("GET", "/v1/reservations/x", "", "X-Openstack-Request-Id", given)
		if want := (serving.RequestIDs{Own: a.header.Get("X-Openstack-Request-Id"), Global: passed}); got != want {
			t.Errorf("with the id %q: got %+v, want %+v", given, got, want)
		}
	}
	if _, ok := serving.RequestIDsOf(t.Context()); ok {
		t.Error("what belongs to no request has ids")
	}
}

func TestEveryLineOfARequestHasItsIDs(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Log = o.Log.With("component", "api")
		o.Reader = trouble(func() error { return &fault.Error{Kind: fault.Unavailable, Message: "busy"} })
	}})
	global := "req-" + uuid.NewString()
	a := c.demo.send("GET", "/v1/reservations", "", "X-Openstack-Request-Id", global)
	id := want[v1.ErrorAnswer](t, a, http.StatusServiceUnavailable).Error.RequestID
	lines := strings.Split(strings.TrimSpace(c.log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %d lines:\n%s", len(lines), c.log)
	}
	for _, line := range lines {
		if !strings.Contains(line, " component=api ") || strings.Count(line, " request_id="+id) != 1 || strings.Count(line, " global_request_id="+global) != 1 {
			t.Errorf("got %s", line)
		}
	}
}
