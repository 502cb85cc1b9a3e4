// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// toThisMachine lets webhooks lead to servers of the tests.
const toThisMachine = "OS_WEBHOOKS__ALLOWED=http://127.0.0.1/32:*"

// receiver is a program that webhooks tell. It checks each signature.
type receiver struct {
	t      *testing.T
	url    string
	status atomic.Int64 // its answer
	checks atomic.Pointer[standardwebhooks.Webhook]

	mu     sync.Mutex
	events []toldEvent
}

type toldEvent struct {
	ID, Type, Subject string
	Data              v1.Reservation
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t}
	r.status.Store(http.StatusNoContent)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // its sender was killed
	}
	checks := r.checks.Load()
	if checks == nil {
		r.t.Errorf("a receiver without a secret is told %s", body)
	} else if err := checks.Verify(body, request.Header); err != nil {
		r.t.Errorf("the signature: %v", err)
	}
	if status := int(r.status.Load()); status >= 300 {
		w.WriteHeader(status)
		return
	}
	var e toldEvent
	if err := json.Unmarshal(body, &e); err != nil {
		r.t.Errorf("%v: %s", err, body)
	}
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// trust lets the receiver check signatures with a secret.
func (r *receiver) trust(secret string) {
	checks, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	r.checks.Store(checks)
}

func (r *receiver) told() []toldEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// typesOf returns the types of the events about a reservation, in the order of arrival.
func (r *receiver) typesOf(id string) (types []string) {
	for _, e := range r.told() {
		if e.Subject == id {
			types = append(types, e.Type)
		}
	}
	return types
}

// decoded runs a command line as a user and decodes its answer.
func decoded[T any](g *built.Guarded, u labtest.User, arguments ...string) (answer T) {
	g.T.Helper()
	out, stderr, exit := g.As(u, append(arguments, "-f", "api")...)
	built.WantExit(g.T, strings.Join(arguments, " "), stderr, exit, 0)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		g.T.Fatalf("%v: %s", err, out)
	}
	return answer
}

func TestAProgramIsToldOfItsProjectsReservationsThroughTheCommandLine(t *testing.T) {
	g := built.StartGuarded(t, toThisMachine)
	r := startReceiver(t)
	made := decoded[v1.Webhook](g, labtest.Demo, "webhook", "create", "chat", "--url", r.url+"/?token=1")
	r.trust(made.Secret)
	r.status.Store(http.StatusServiceUnavailable)
	booked := decoded[v1.Reservation](g, labtest.Demo, "reservation", "create", "told", "--start", "+1d", "--duration", "1h")
	var shown v1.Webhook
	built.Eventually(t, "no try has failed", func() bool {
		shown = decoded[v1.Webhook](g, labtest.Demo, "webhook", "show", "chat")
		return shown.LastFailure != nil
	})
	if shown.Waiting != 1 || shown.NextTry == nil || !strings.Contains(shown.LastError, "503") || shown.Secret != "" {
		t.Errorf("it is shown as %+v", shown)
	}
	decoded[v1.Reservation](g, labtest.Demo, "reservation", "change", "told", "--name", "told again")
	r.status.Store(http.StatusNoContent)
	want := []string{"reservation.create", "reservation.change"}
	built.Eventually(t, "the program is not told", func() bool { return len(r.typesOf(booked.ID)) == 2 })
	if got := r.typesOf(booked.ID); !slices.Equal(got, want) {
		t.Errorf("it is told %v, want %v", got, want)
	}
	if first := r.told()[0].Data; first.Name != "told" || len(first.Hosts) != 0 {
		t.Errorf("before the start it is told %+v", first)
	}
	built.Eventually(t, "something waits", func() bool {
		shown = decoded[v1.Webhook](g, labtest.Demo, "webhook", "show", "chat")
		return shown.Waiting == 0 && shown.LastSuccess != nil
	})
	if strings.Contains(g.Log.String(), strings.TrimPrefix(made.Secret, "whsec_")) || strings.Contains(g.Log.String(), "token=1") {
		t.Error("the log has the secret or the token of the URL")
	}
	if _, stderr, exit := g.As(labtest.Demo, "webhook", "create", "metadata", "--url", "http://169.254.169.254/latest"); exit == 0 || !strings.Contains(stderr, "operator allows") {
		t.Errorf("a forbidden receiver: exit %d, %s", exit, stderr)
	}
	if _, stderr, exit := g.As(labtest.Demo, "webhook", "create", "all", "--url", r.url, "--all-projects"); exit == 0 || !strings.Contains(stderr, "webhooks:create_all_projects") {
		t.Errorf("a tenant asks for all projects: exit %d, %s", exit, stderr)
	}
	if _, stderr, exit := g.As(labtest.Demo, "webhook", "delete", "chat"); exit != 0 {
		t.Error(stderr)
	}
	if left := decoded[v1.Webhooks](g, labtest.Demo, "webhook", "list"); len(left.Webhooks) != 0 {
		t.Errorf("%+v are left", left.Webhooks)
	}
}

// Six clients book at two replicas, one of which is killed in each round. Each booking that was acknowledged is told, and what
// arrives twice has the same id.
func TestUnderKillsAProgramIsToldOfEachBooking(t *testing.T) {
	receive := startReceiver(t)
	b := startRetried(t, func(g *built.Guarded) {
		made := decoded[v1.Webhook](g, labtest.Demo, "webhook", "create", "all of it", "--url", receive.url)
		receive.trust(made.Secret)
	}, toThisMachine)
	begin := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Hour)
	underKills(t, b.r, b.sent.Load, func(_ context.Context, i int, random *rand.Rand) {
		start, duration := begin.Add(time.Duration(random.IntN(200))*time.Hour), v1.Duration(3600)
		b.book(i, v1.ReservationRequest{Name: fmt.Sprint("client ", i), StartTime: &start, Duration: &duration})
	}, func(quiet bool) {
		if quiet {
			b.nothingLostOrDoubled()
		}
	})
	arrived := func() (events int, ids map[string]string) {
		ids = map[string]string{} // of the creation, by reservation
		for _, e := range receive.told() {
			if e.Type != "reservation.create" {
				continue
			}
			if known := ids[e.Subject]; known != "" && known != e.ID {
				t.Errorf("the creation of %s is told as %s and %s", e.Subject, known, e.ID)
			}
			events, ids[e.Subject] = events+1, e.ID
		}
		return events, ids
	}
	missing := func() (list []string) {
		_, ids := arrived()
		for _, its := range b.booked {
			if ids[its.answer.ID] == "" {
				list = append(list, its.answer.ID)
			}
		}
		return list
	}
	built.Eventually(t, "bookings are not told", func() bool { return len(missing()) == 0 })
	events, ids := arrived()
	t.Logf("%d bookings, %d events about %d reservations", len(b.booked), events, len(ids))
	if len(ids) != len(b.booked) {
		t.Errorf("%d reservations are told, %d are booked", len(ids), len(b.booked))
	}
}
