// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// morning is the time of every test.
var morning = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// api answers as Almanac does and records the requests, except those for its time.
type api struct {
	*httptest.Server
	clock time.Time
	mux   *http.ServeMux
	mu    sync.Mutex
	asks  []ask
}

type ask struct {
	Line string // method and address
	Key  string // idempotency key
	Body string
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{mux: http.NewServeMux(), clock: morning}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(http.StatusNotFound, "not_found", "there is no such thing")(w, r)
	})
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the body: %v", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.Header().Set("Date", a.clock.Format(http.TimeFormat))
		if r.Method+r.URL.RequestURI() == "GET/v1" {
			return
		}
		a.mu.Lock()
		a.asks = append(a.asks, ask{r.Method + " " + r.URL.RequestURI(), r.Header.Get("Idempotency-Key"), string(body)})
		a.mu.Unlock()
		a.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// on answers a call, such as "GET /v1/hosts", with a status and a body.
func (a *api) on(call string, status int, body any) {
	a.mux.HandleFunc(call, answerWith(status, body))
}

func answerWith(status int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		if body != nil {
			_ = json.NewEncoder(w).Encode(body)
		}
	}
}

func fail(status int, kind, message string) http.HandlerFunc {
	return answerWith(status, v1.ErrorAnswer{Error: v1.Error{Kind: kind, Message: message, RequestID: "req-7"}})
}

func (a *api) asked() []ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asks)
}

// lines returns the requests without their bodies.
func (a *api) lines() []string {
	return each(a.asked(), func(q ask) string { return q.Line })
}

// result is the outcome of a command line.
type result struct {
	code           int
	stdout, stderr string
	waited         time.Duration
}

// almanac runs a command line against a, at the time morning. Waiting takes no time but moves
// the clock.
func almanac(t *testing.T, a *api, args ...string) result {
	t.Helper()
	return almanacWith(t, a, "", args...)
}

func almanacWith(t *testing.T, a *api, stdin string, args ...string) result {
	t.Helper()
	return almanacAt(t, a, false, stdin, args...)
}

// almanacAt is almanacWith with a terminal as stdin, or not.
func almanacAt(t *testing.T, a *api, terminal bool, stdin string, args ...string) result {
	t.Helper()
	clock := morning
	var stdout, stderr bytes.Buffer
	p := &process{
		stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr,
		env: func(name string) string { return map[string]string{"ALMANAC_URL": a.URL}[name] },
		now: func() time.Time { return clock }, interactive: func() bool { return terminal },
		pause: func(ctx context.Context, d time.Duration) error {
			clock = clock.Add(d)
			return ctx.Err()
		},
	}
	code := p.run(t.Context(), args)
	return result{code, stdout.String(), stderr.String(), clock.Sub(morning)}
}

// wantDone fails the test unless the command line succeeded.
func (r result) wantDone(t *testing.T) {
	t.Helper()
	if r.code != exitDone {
		t.Fatalf("exit code %d, stderr:\n%s", r.code, r.stderr)
	}
}

// wantFailure fails the test unless the exit code is code, stdout is empty, and stderr contains
// all mentions.
func (r result) wantFailure(t *testing.T, code int, mentions ...string) {
	t.Helper()
	if r.code != code || r.stdout != "" {
		t.Errorf("exit code %d, want %d; stdout %q, stderr:\n%s", r.code, code, r.stdout, r.stderr)
	}
	for _, mention := range mentions {
		if !strings.Contains(r.stderr, mention) {
			t.Errorf("stderr does not mention %q:\n%s", mention, r.stderr)
		}
	}
}

// training returns a reservation as the API returns it.
func training() v1.Reservation {
	return v1.Reservation{
		ID: "r-1", Name: "training", ProjectID: "demo", UserID: "ann", Kind: "host", Status: "pending",
		Start: morning.Add(time.Hour), End: morning.Add(3 * time.Hour), Quantity: 2, Policy: "first-fit",
		Hosts: []string{"node-01", "node-02"}, HostProperties: json.RawMessage(`[">=", "$vcpus", 8]`),
		OnEnd: "delete", BeforeEnd: 3600, CreatedAt: morning, UpdatedAt: morning,
		Events: []v1.Event{
			{Type: "created", Time: morning, State: "done", DoneAt: new(morning)},
			{Type: "start", Time: morning.Add(time.Hour), State: "pending"},
		},
	}
}

func named(id, name, status string) v1.Reservation {
	r := training()
	r.ID, r.Name, r.Status = id, name, status
	return r
}
