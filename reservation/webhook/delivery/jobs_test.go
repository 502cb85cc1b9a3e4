// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/webhook"
	"github.com/almanac-cloud/almanac/reservation/webhook/delivery"
)

// world is a database with the receivers of its webhooks.
type world struct {
	t     *testing.T
	file  string
	now   atomic.Int64
	mu    sync.Mutex
	got   map[string][]string // ids of events, by URL, in the order of arrival
	about map[string]string   // the reservation of an event
	// answer returns what a receiver answers; nil means 200.
	answer  func(ctx context.Context, m delivery.Message) webhook.Answer
	atOnce  int
	most    int
	counted map[string]int
	count   int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, file: filepath.Join(t.TempDir(), "almanac.db"), got: map[string][]string{}, about: map[string]string{}, counted: map[string]int{}}
	w.now.Store(1000)
	return w
}

// replica is a process on the database.
type replica struct {
	*store.Store
	fill, send func(ctx context.Context) error
}

func (w *world) replica(name string) replica {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), store.Options{Connection: "sqlite:///" + w.file, BusyTimeout: time.Minute, Webhooks: true, Holder: name})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Migrate(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	jobs := delivery.Deliveries{Options: delivery.Options{
		Store: s, Leases: s, Post: w.post, Source: "almanac", GiveUpAfter: 86_400, Chance: func() float64 { return 0 },
		Now: func() span.Instant { return span.Instant(w.now.Load()) }, Log: slog.New(slog.DiscardHandler),
		Count: func(outcome string, n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.counted[outcome] += n
		},
	}}.Jobs()
	return replica{s, jobs[0].Step, jobs[1].Step}
}

// post notes a message as its receiver does, and answers.
func (w *world) post(ctx context.Context, m delivery.Message) webhook.Answer {
	var event struct{ Subject string }
	if err := json.Unmarshal(m.Body, &event); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	w.got[m.URL] = append(w.got[m.URL], m.ID)
	w.about[m.ID] = event.Subject
	w.atOnce++
	w.most = max(w.most, w.atOnce)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.atOnce--
		w.mu.Unlock()
	}()
	if w.answer == nil {
		return webhook.Answer{Status: 200}
	}
	return w.answer(ctx, m)
}

func (w *world) webhook(r replica, id, project string) {
	w.t.Helper()
	one := webhook.Webhook{ID: id, ProjectID: project, Name: id, URL: "https://" + id, Secret: secret, Created: 1}
	if err := r.AddWebhook(w.t.Context(), one, 100); err != nil {
		w.t.Fatal(err)
	}
}

// book stores n changes of a project, and returns their reservations.
func (w *world) book(r replica, project string, n int) (ids []string) {
	w.t.Helper()
	for range n {
		w.count++
		one := changed(1, reservation.ActionCreate, reservation.Pending).Reservation
		one.ID, one.ProjectID, one.Updated = fmt.Sprintf("r-%04d", w.count), project, span.Instant(w.now.Load())
		if err := r.Commit(w.t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: one, Cause: reservation.Cause{Action: reservation.ActionCreate}}}}); err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, one.ID)
	}
	return ids
}

func (w *world) must(step func(ctx context.Context) error) {
	w.t.Helper()
	if err := step(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// told returns the reservations that a webhook was told of, each once, in the order of the first arrival.
func (w *world) told(id string) (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range w.got["https://"+id] {
		if r := w.about[event]; !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

func TestEachWebhookIsToldOfTheChangesOfItsProjectInTheirOrder(t *testing.T) {
	w := newWorld(t)
	a := w.replica("a")
	w.webhook(a, "one", "demo")
	w.webhook(a, "two", "demo")
	w.webhook(a, "foreign", "other")
	want := w.book(a, "demo", 120)
	w.book(a, "nobody", 3)
	w.must(a.fill)
	w.must(a.send)
	for _, id := range []string{"one", "two"} {
		if got := w.told(id); !slices.Equal(got, want) || len(w.got["https://"+id]) != len(want) {
			t.Errorf("%s is told of %v, want %v", id, got, want)
		}
	}
	if got := w.told("foreign"); len(got) != 0 {
		t.Errorf("another project is told of %v", got)
	}
	if want := map[string]int{delivery.Delivered: 240}; !maps.Equal(w.counted, want) {
		t.Errorf("counted are %v, want %v", w.counted, want)
	}
}

// A job that does not end looks like one that hangs.
func TestAStepEndsAlthoughThereIsAlwaysMoreToSend(t *testing.T) {
	w := newWorld(t)
	a := w.replica("a")
	w.webhook(a, "hook", "demo")
	w.answer = func(context.Context, delivery.Message) webhook.Answer {
		w.now.Add(1)
		return webhook.Answer{Status: 200}
	}
	want := w.book(a, "demo", 25)
	w.must(a.fill)
	for step, sent := range []int{10, 20, 25} {
		w.must(a.send)
		if got := w.told("hook"); !slices.Equal(got, want[:sent]) {
			t.Errorf("after step %d it is told of %v, want the first %d", step, got, sent)
		}
	}
}

func TestAReceiverThatFailsIsTriedAgainLaterAndThenToldInOrderUntilItIsTooLate(t *testing.T) {
	w := newWorld(t)
	a := w.replica("a")
	w.webhook(a, "hook", "demo")
	w.answer = func(context.Context, delivery.Message) webhook.Answer {
		return webhook.Answer{Status: 503, RetryAfter: 60}
	}
	old := w.book(a, "demo", 2)
	w.must(a.fill)
	for range 3 {
		w.must(a.send)
	}
	if got := w.got["https://hook"]; len(got) != 1 {
		t.Fatalf("it is tried %d times at once", len(got))
	}
	if shown, err := a.Webhook(t.Context(), "hook"); err != nil || shown.NextTry != 1060 || shown.Waiting != 2 || shown.Failures != 1 || !strings.Contains(shown.LastError, "503") {
		t.Errorf("it is shown as %+v: %v", shown.Standing, err)
	}
	w.now.Store(1000 + 86_400)
	young := w.book(a, "demo", 2)
	w.must(a.fill)
	w.now.Store(1000 + 86_401) // the first two are older than a day
	w.answer = nil
	w.must(a.send)
	if got := w.told("hook"); !slices.Equal(got, append(old[:1], young...)) {
		t.Errorf("told are %v", got)
	}
	if shown, err := a.Webhook(t.Context(), "hook"); err != nil || shown.Dropped != 2 || shown.Waiting != 0 || shown.NextTry != 0 || shown.Failures != 0 {
		t.Errorf("it is shown as %+v: %v", shown.Standing, err)
	}
	if want := map[string]int{delivery.Delivered: 2, delivery.Failed: 1, delivery.GivenUp: 2}; !maps.Equal(w.counted, want) {
		t.Errorf("counted are %v, want %v", w.counted, want)
	}
}

func TestAReceiverThatIsGoneGetsNothingMore(t *testing.T) {
	w := newWorld(t)
	a := w.replica("a")
	w.webhook(a, "hook", "demo")
	w.answer = func(context.Context, delivery.Message) webhook.Answer { return webhook.Answer{Status: 410} }
	for range 2 {
		w.book(a, "demo", 2)
		w.must(a.fill)
		w.must(a.send)
		w.now.Add(7200)
	}
	shown, err := a.Webhook(t.Context(), "hook")
	if err != nil || len(w.got["https://hook"]) != 1 || !strings.Contains(shown.Disabled, "410") || shown.Waiting != 0 || shown.Dropped != 2 {
		t.Errorf("after %d tries it is %+v: %v", len(w.got["https://hook"]), shown.Standing, err)
	}
}

func TestTheOldestIsDroppedIfTooManyWait(t *testing.T) {
	w := newWorld(t)
	a := w.replica("a")
	w.webhook(a, "hook", "demo")
	w.answer = func(context.Context, delivery.Message) webhook.Answer { return webhook.Answer{Status: 500} }
	all := w.book(a, "demo", delivery.MostWaiting+7)
	w.must(a.fill)
	shown, err := a.Webhook(t.Context(), "hook")
	if err != nil || shown.Waiting != delivery.MostWaiting || shown.Dropped != 7 || w.counted[delivery.Dropped] != 7 {
		t.Errorf("it is %+v, counted %v: %v", shown.Standing, w.counted, err)
	}
	if _, next, err := a.NextDelivery(t.Context(), "hook"); err != nil || next.Reservation.ID != all[7] {
		t.Errorf("next is %s, want %s: %v", next.Reservation.ID, all[7], err)
	}
}

// Many receivers of many projects hang; the others are told meanwhile.
func TestReceiversThatHangDelayNoOther(t *testing.T) {
	w := newWorld(t)
	a := w.replica("a")
	const dead, changes = 40, 20
	for i := range dead {
		w.webhook(a, fmt.Sprint("dead-", i), fmt.Sprint("project-", i))
	}
	w.answer = func(context.Context, delivery.Message) webhook.Answer { return webhook.Answer{Status: 500} }
	for i := range dead {
		w.book(a, fmt.Sprint("project-", i), 1)
	}
	w.must(a.fill)
	w.must(a.send) // now they are known to fail
	w.webhook(a, "live", "demo")
	want := w.book(a, "demo", changes)
	w.must(a.fill)
	w.now.Add(3600)
	release, all := make(chan struct{}), make(chan struct{})
	var live atomic.Int64
	w.answer = func(ctx context.Context, m delivery.Message) webhook.Answer {
		if m.URL == "https://live" {
			if live.Add(1) == changes {
				close(all)
			}
			return webhook.Answer{Status: 200}
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return webhook.Answer{Err: "no answer"}
	}
	ended := make(chan error, 1)
	go func() { ended <- a.send(t.Context()) }()
	select {
	case <-all:
	case <-time.After(30 * time.Second):
		t.Error("the live receiver is not told while others hang")
	}
	close(release)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := w.told("live"); !slices.Equal(got, want) {
		t.Errorf("it is told of %v, want %v", got, want)
	}
	if w.most > 16 {
		t.Errorf("%d requests are in progress at once", w.most)
	}
}

// A replica dies after a receiver has accepted a change, and before that is stored: the other one sends it again, with the
// same id, and everything else once.
func TestAKilledReplicaLosesNothingAndWhatIsSentTwiceHasTheSameID(t *testing.T) {
	w := newWorld(t)
	a, b := w.replica("a"), w.replica("b")
	w.webhook(a, "hook", "demo")
	want := w.book(a, "demo", 30)
	w.must(a.fill)
	dying, kill := context.WithCancel(t.Context())
	tries := 0
	w.answer = func(context.Context, delivery.Message) webhook.Answer {
		if tries++; tries == 11 {
			kill()
		}
		return webhook.Answer{Status: 200}
	}
	if err := a.send(dying); !errors.Is(err, context.Canceled) {
		t.Fatalf("the killed replica ends with %v", err)
	}
	w.must(b.send) // the lease is still that of the first
	if got := len(w.got["https://hook"]); got != 11 {
		t.Fatalf("two replicas send: %d", got)
	}
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.must(b.send)
	if got := w.told("hook"); !slices.Equal(got, want) {
		t.Errorf("told are %v, want %v", got, want)
	}
	if got := w.got["https://hook"]; len(got) != 31 || got[10] != got[11] {
		t.Errorf("%d arrive; the eleventh and the twelfth are %v", len(got), got[10:12])
	}
}

// A replica that has lost its lease, as after a long pause, stores nothing of what it sends.
func TestAReplicaWithoutItsLeaseEndsNoDelivery(t *testing.T) {
	w := newWorld(t)
	a, b := w.replica("a"), w.replica("b")
	w.webhook(a, "hook", "demo")
	w.book(a, "demo", 1)
	w.must(a.fill)
	w.answer = func(context.Context, delivery.Message) webhook.Answer {
		if err := a.Leave(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if _, held, err := b.Take(t.Context(), "webhook deliveries", time.Minute); err != nil || !held {
			t.Errorf("the lease is not taken over: %v", err)
		}
		return webhook.Answer{Status: 200}
	}
	if err := a.send(t.Context()); !errors.Is(err, job.ErrLost) {
		t.Errorf("it ends with %v", err)
	}
	if shown, err := b.Webhook(t.Context(), "hook"); err != nil || shown.Waiting != 1 {
		t.Errorf("%d wait: %v", shown.Waiting, err)
	}
}
