// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func asError(t *testing.T, err error) *client.Error {
	t.Helper()
	failed, ok := errors.AsType[*client.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *client.Error", err)
	}
	return failed
}

func TestAnErrorHasAllOfTheAnswer(t *testing.T) {
	refusal := &v1.Refusal{
		Constraint: "free_hosts", Matched: 4, Free: 1,
		BlockedBy:       []v1.Block{{Host: "n1", Start: noon.UTC(), End: noon.UTC().Add(time.Hour)}},
		EarliestStart:   new(noon.UTC().Add(time.Hour)),
		LargestQuantity: 1,
	}
	f := serve(t, say(http.StatusConflict, v1.ErrorAnswer{
		Error:   v1.Error{Kind: "refused", Field: "quantity", Message: "too many", RequestID: "req-9"},
		Refusal: refusal,
	}))
	_, err := dial(t, f, nil).CreateReservation(t.Context(), v1.ReservationRequest{}, client.CreateOptions{IdempotencyKey: "k"})
	want := &client.Error{
		Status: 409, Kind: fault.Refused, Field: "quantity", Message: "too many", RequestID: "req-9", Refusal: refusal,
	}
	if diff := cmp.Diff(want, asError(t, err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if err.Error() != "quantity: too many" {
		t.Errorf("reads %q", err)
	}
}

func TestAnInternalErrorNamesItsRequest(t *testing.T) {
	f := serve(t, say(http.StatusInternalServerError, v1.ErrorAnswer{
		Error: v1.Error{Kind: "internal", Message: "something went wrong", RequestID: "req-9"},
	}))
	_, err := dial(t, f, nil).Properties(t.Context())
	if !strings.Contains(err.Error(), "req-9") {
		t.Errorf("reads %q", err)
	}
}

func TestAnswersOfSomethingElseAreToldFromAlmanacs(t *testing.T) {
	for name, status := range map[string]int{"a page": 200, "a missing page": 404, "a proxy": 502} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = w.Write([]byte("<html>"))
			})
			_, err := dial(t, f, nil).Properties(t.Context())
			failed := asError(t, err)
			if failed.Kind != fault.Unavailable || failed.Status != status {
				t.Errorf("got kind %s, status %d", failed.Kind, failed.Status)
			}
			if !strings.Contains(err.Error(), f.URL) {
				t.Errorf("%q does not contain the address", err)
			}
		})
	}
}

func TestAnUnhealthyAlmanacSaysWhy(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"health":    {`{"detailed": false, "reasons": ["the database does not answer"]}`, "the database does not answer"},
		"a proxy's": {"no server is up", "no server is up"},
		"readiness": {`{"ready": false, "draining": true, "parts": [{"name": "database", "ok": true}, {"name": "messaging", "ok": false, "reason": "refused"}]}`,
			"messaging: refused; draining"},
	} {
		f := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, test.body, http.StatusServiceUnavailable) })
		_, err := dial(t, f, nil).Readiness(t.Context())
		if want := f.URL + " answered 503 Service Unavailable: " + test.want; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if failed := asError(t, err); failed.Status != 503 || failed.Kind != fault.Unavailable {
			t.Errorf("%s: got %d, %s", name, failed.Status, failed.Kind)
		}
	}
}

func TestWhoIsTurnedAwayComesBackLater(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error": {"kind": "too_many", "message": "slow down"}}`))
	})
	var waits []time.Duration
	failed := asError(t, changeName(t.Context(), dial(t, f, &waits)))
	if failed.Kind != fault.TooMany || len(f.requests()) != 4 || !slices.Equal(waits, slices.Repeat([]time.Duration{2 * time.Second}, 3)) {
		t.Errorf("got %v after %d requests and the waits %v", failed, len(f.requests()), waits)
	}
}

func TestNoServerIsSaidInASentence(t *testing.T) {
	f := serve(t, nil)
	f.Close()
	_, err := dial(t, f, nil).Properties(t.Context())
	failed := asError(t, err)
	want := "no Almanac answers at " + f.URL + "; start one with almanacd, or set the URL of a running one"
	if failed.Status != 0 || failed.Kind != fault.Unavailable || err.Error() != want {
		t.Errorf("got %d, %s, %q", failed.Status, failed.Kind, err)
	}
}

func TestATimeoutIsToldAndNotRepeated(t *testing.T) {
	f := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	// A busy machine may need longer to send the request.
	for limit := 20 * time.Millisecond; len(f.requests()) == 0 && limit < time.Minute; limit *= 4 {
		c, err := client.New(client.Options{URL: f.URL, HTTPClient: &http.Client{Timeout: limit}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Properties(t.Context())
		if !asError(t, err).Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
	if len(f.requests()) != 1 {
		t.Errorf("sent %d requests", len(f.requests()))
	}
}

func TestOnlySafeCallsAreRepeated(t *testing.T) {
	create := func(key string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateReservation(ctx, v1.ReservationRequest{Name: "a"}, client.CreateOptions{IdempotencyKey: key})
			return err
		}
	}
	tests := map[string]struct {
		call      func(context.Context, *client.Client) error
		wantCalls int
	}{
		"get":               {func(ctx context.Context, c *client.Client) error { return c.Health(ctx) }, 4},
		"post with a key":   {create("k"), 4},
		"post without one":  {create(""), 1},
		"delete":            {func(ctx context.Context, c *client.Client) error { return c.DeleteReservation(ctx, "r") }, 1},
		"change of a thing": {changeName, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := serve(t, busy("1"))
			var waits []time.Duration
			err := tc.call(t.Context(), dial(t, f, &waits))
			if failed := asError(t, err); failed.Status != 503 || failed.RetryAfter != time.Second {
				t.Errorf("got status %d, retry after %v", failed.Status, failed.RetryAfter)
			}
			if len(f.requests()) != tc.wantCalls || len(waits) != tc.wantCalls-1 {
				t.Errorf("sent %d requests and waited %v", len(f.requests()), waits)
			}
			for _, again := range f.requests() {
				if diff := cmp.Diff(f.requests()[0], again); diff != "" {
					t.Errorf("another request (-first +again):\n%s", diff)
				}
			}
		})
	}
}

func changeName(ctx context.Context, c *client.Client) error {
	_, err := c.ChangeReservation(ctx, "r", v1.ReservationChange{Name: new("b")})
	return err
}

func busy(retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", retryAfter)
		say(http.StatusServiceUnavailable, v1.ErrorAnswer{Error: v1.Error{Kind: "unavailable", Message: "locked"}})(w, r)
	}
}

func TestWhatHasNoNearEndIsLeftToTheCaller(t *testing.T) {
	for name, retryAfter := range map[string]string{"an hour": "3600", "not said": ""} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, busy(retryAfter))
			if err := dial(t, f, nil).Health(t.Context()); err == nil {
				t.Error("got no error")
			}
			if len(f.requests()) != 1 {
				t.Errorf("sent %d requests", len(f.requests()))
			}
		})
	}
}

func TestABrokenConnectionIsTriedAgainAfterGrowingWaits(t *testing.T) {
	f := serve(t, nil)
	var sent atomic.Int64
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1) <= 3 {
			panic(http.ErrAbortHandler) // cuts the connection
		}
		say(http.StatusCreated, v1.Reservation{ID: "r1"})(w, r)
	})
	var waits []time.Duration
	made, err := dial(t, f, &waits).CreateReservation(t.Context(), v1.ReservationRequest{}, client.CreateOptions{IdempotencyKey: "k"})
	if err != nil || made.ID != "r1" {
		t.Fatalf("got %v, %v", made, err)
	}
	if diff := cmp.Diff([]time.Duration{100e6, 200e6, 400e6}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestACallerWhoGivesUpEndsTheRepeats(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		busy("1")(w, r)
		cancel()
	})
	if err := dial(t, f, nil).Health(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(f.requests()) != 1 {
		t.Errorf("sent %d requests", len(f.requests()))
	}
}
