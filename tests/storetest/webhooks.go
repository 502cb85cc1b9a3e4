// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

// hooks has webhooks and what waits for them.
type hooks interface {
	AddWebhook(ctx context.Context, w webhook.Webhook, most int) error
	Webhook(ctx context.Context, id string) (webhook.Webhook, error)
	Webhooks(ctx context.Context, q webhook.Query) ([]webhook.Webhook, error)
	RemoveWebhook(ctx context.Context, id string) error
	WebhooksOf(ctx context.Context, projects []string) ([]webhook.Webhook, error)
	Unhooked(ctx context.Context, limit int) ([]reservation.Change, error)
	Hook(ctx context.Context, lease job.Lease, places []int64, deliveries []webhook.Delivery, now span.Instant, most int) (int, error)
	DueWebhooks(ctx context.Context, now span.Instant, limit int) ([]webhook.Due, error)
	NextDelivery(ctx context.Context, id string) (webhook.Webhook, reservation.Change, error)
	Tried(ctx context.Context, lease job.Lease, t webhook.Try) (int, error)
}

// RunWebhooks tests stores whose changes wait for webhooks. Each call of create makes a new database and returns a function
// that opens a store on it.
func RunWebhooks(t *testing.T, create func(t *testing.T) (open func(t *testing.T) Subject)) {
	t.Run("a webhook is read as it was stored", func(t *testing.T) { testWebhookStored(t, create(t)(t)) })
	t.Run("webhooks are listed, the oldest first", func(t *testing.T) { testWebhookList(t, create(t)(t)) })
	t.Run("a change leaves the log with its deliveries", func(t *testing.T) { testHooked(t, create(t)(t)) })
	t.Run("deliveries wait in order, and end as a model has it", func(t *testing.T) { testDeliveryModel(t, create(t)(t)) })
	t.Run("a project has no more webhooks than its bound", func(t *testing.T) {
		open := create(t)
		testWebhookBound(t, open(t), open(t))
	})
	t.Run("what is added while the last delivery ends is not forgotten", func(t *testing.T) {
		open := create(t)
		testHookedMeanwhile(t, open(t), open(t))
	})
	t.Run("a try under a lost lease stores nothing", func(t *testing.T) {
		open := create(t)
		testTriedUnderALostLease(t, open(t), open(t))
	})
}

func webhookMade(id string, created span.Instant) webhook.Webhook {
	return webhook.Webhook{
		ID: id, ProjectID: "demo", UserID: "ada", Name: "chat", URL: "https://hooks.example.org/almanac?token=1",
		Types: []string{"reservation.create", "reservation.end"}, Secret: "whsec_c2VjcmV0", Created: created,
	}
}

func mustAddWebhook(t *testing.T, s hooks, w webhook.Webhook) {
	t.Helper()
	if err := s.AddWebhook(t.Context(), w, 100); err != nil {
		t.Fatal(err)
	}
}

func testWebhookStored(t *testing.T, s Subject) {
	h := offered[hooks](t, s)
	want := webhookMade("w", 100)
	want.AllProjects = true
	mustAddWebhook(t, h, want)
	got, err := h.Webhook(t.Context(), "w")
	if d := diff(want, got); d != "" || err != nil || got.Secret != want.Secret {
		t.Errorf("(-want +got): %v\n%s", err, d)
	}
	if err := h.RemoveWebhook(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Webhook(t.Context(), "w"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a deleted webhook is found: %v", err)
	}
	if err := h.RemoveWebhook(t.Context(), "w"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is deleted twice: %v", err)
	}
}

func testWebhookList(t *testing.T, s Subject) {
	h := offered[hooks](t, s)
	for _, w := range []webhook.Webhook{webhookMade("new", 300), webhookMade("b", 200), webhookMade("a", 200), webhookMade("foreign", 250), webhookMade("all", 50)} {
		switch w.ID {
		case "foreign":
			w.ProjectID = "other"
		case "all":
			w.ProjectID, w.AllProjects = "operators", true
		}
		mustAddWebhook(t, h, w)
	}
	names := func(list []webhook.Webhook, err error) (ids []string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range list {
			ids = append(ids, w.ID)
		}
		return ids
	}
	for _, c := range []struct {
		q    webhook.Query
		want []string
	}{
		{webhook.Query{}, []string{"all", "a", "b", "foreign", "new"}},
		{webhook.Query{ProjectID: "demo"}, []string{"a", "b", "new"}},
		{webhook.Query{ProjectID: "demo", Limit: 1, Marker: "a"}, []string{"b"}},
		{webhook.Query{ProjectID: "nobody"}, nil},
	} {
		if d := diff(c.want, names(h.Webhooks(t.Context(), c.q))); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.q, d)
		}
	}
	if _, err := h.Webhooks(t.Context(), webhook.Query{ProjectID: "demo", Marker: "foreign"}); fault.Of(err) == nil || fault.Of(err).Field != "marker" {
		t.Errorf("the marker of another project: %v", err)
	}
	of := names(h.WebhooksOf(t.Context(), []string{"demo", "nobody"}))
	slices.Sort(of)
	if d := diff([]string{"a", "all", "b", "new"}, of); d != "" {
		t.Errorf("who is told about the project demo (-want +got):\n%s", d)
	}
}

// testHooked stores two changes: one that a webhook is told of, and one that nobody is told of.
func testHooked(t *testing.T, s Subject) {
	h := offered[hooks](t, s)
	mustAddWebhook(t, h, webhookMade("w", 100))
	mustCreate(t, s, booked("told"))
	mustCreate(t, s, booked("untold"))
	changes, err := h.Unhooked(t.Context(), 0)
	if err != nil || len(changes) != 2 {
		t.Fatalf("%d changes wait: %v", len(changes), err)
	}
	places := []int64{changes[0].Place, changes[1].Place}
	deliveries := []webhook.Delivery{{WebhookID: "w", Place: places[0], Changed: changes[0].At}, {WebhookID: "deleted", Place: places[0], Changed: changes[0].At}}
	for range 2 { // the second time does nothing
		if _, err := h.Hook(t.Context(), job.Lease{}, places, deliveries, 500, 10); err != nil {
			t.Fatal(err)
		}
	}
	if changes, err = h.Unhooked(t.Context(), 0); err != nil || len(changes) != 0 {
		t.Errorf("%d changes wait still: %v", len(changes), err)
	}
	w, next, err := h.NextDelivery(t.Context(), "w")
	if err != nil || next.Place != places[0] || next.Reservation.ID != "told" || w.NextTry != 500 {
		t.Errorf("next is %q at %v: %v", next.Reservation.ID, w.NextTry, err)
	}
	if w, err := h.Webhook(t.Context(), "w"); err != nil || w.Waiting != 1 {
		t.Errorf("%d deliveries wait: %v", w.Waiting, err)
	}
	if _, err := h.Tried(t.Context(), job.Lease{}, webhook.Try{WebhookID: "w", Place: places[0], At: 501, Verdict: webhook.Verdict{Done: true, Delivered: true}}); err != nil {
		t.Fatal(err)
	}
	got, err := h.Webhook(t.Context(), "w")
	if want := (webhook.Standing{Succeeded: 501}); got.Standing != want || err != nil {
		t.Errorf("it stands at %+v, want %+v: %v", got.Standing, want, err)
	}
	if due, err := h.DueWebhooks(t.Context(), 1000, 10); len(due) != 0 || err != nil {
		t.Errorf("due are %v: %v", due, err)
	}
}

// modelOfHook is what waits for a webhook.
type modelOfHook struct {
	waiting []webhook.Delivery
	webhook.Standing
}

// testDeliveryModel draws deliveries and tries, and compares what is due with lists in memory.
func testDeliveryModel(t *testing.T, s Subject) {
	h := offered[hooks](t, s)
	const most = 5
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		run++
		models := map[string]*modelOfHook{}
		var ids []string
		for i := range 3 {
			id := fmt.Sprintf("%d-%d", run, i)
			w := webhookMade(id, 100)
			w.ProjectID = id
			if err := h.AddWebhook(ctx, w, 1); err != nil {
				t.Fatal(err)
			}
			ids, models[id] = append(ids, id), &modelOfHook{}
		}
		defer func() {
			for _, id := range ids {
				if err := h.RemoveWebhook(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
		}()
		now, place := span.Instant(1000), int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(rapid.Int64Range(0, 50).Draw(t, "later"))
			if rapid.Bool().Draw(t, "adds") {
				place++
				addDelivery(t, h, s, models, ids, place, now, most)
			} else {
				tryDelivery(t, h, models[rapid.SampledFrom(ids).Draw(t, "tried")], ids, models, now)
			}
			for _, id := range ids {
				wantStanding(t, h, id, models[id])
			}
			wantDue(t, h, models, now)
		}
	})
}

// addDelivery stores a change and tells some webhooks of it.
func addDelivery(t *rapid.T, h hooks, s Subject, models map[string]*modelOfHook, ids []string, place int64, now span.Instant, most int) {
	r := booked(fmt.Sprintf("%s/%d", ids[0], place))
	r.Updated = now
	mustCreate(t, s, r)
	changes, err := h.Unhooked(context.Background(), 0)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%d changes wait: %v", len(changes), err)
	}
	var told []webhook.Delivery
	dropped := 0
	for _, id := range ids {
		if !rapid.Bool().Draw(t, "told "+id) {
			continue
		}
		d := webhook.Delivery{WebhookID: id, Place: changes[0].Place, Changed: now}
		told = append(told, d)
		m := models[id]
		if m.Disabled != "" {
			continue
		}
		if m.waiting = append(m.waiting, d); m.NextTry == 0 {
			m.NextTry = now
		}
		if len(m.waiting) > most {
			m.waiting, m.Dropped, dropped = m.waiting[1:], m.Dropped+1, dropped+1
		}
	}
	got, err := h.Hook(context.Background(), job.Lease{}, []int64{changes[0].Place}, told, now, most)
	if err != nil || got != dropped {
		t.Fatalf("%d are dropped, want %d: %v", got, dropped, err)
	}
}

// tryDelivery ends a try of the first delivery of a webhook.
func tryDelivery(t *rapid.T, h hooks, m *modelOfHook, ids []string, models map[string]*modelOfHook, now span.Instant) {
	if len(m.waiting) == 0 {
		return
	}
	id := ids[slices.IndexFunc(ids, func(id string) bool { return models[id] == m })]
	v := rapid.SampledFrom([]webhook.Verdict{
		{Done: true, Delivered: true},
		{Error: "no answer", Failures: m.Failures + 1, Wait: 30},
		{Done: true, Error: "400", Wait: 7},
		{Error: "410", Failures: m.Failures + 1, Disabled: "gone"},
	}).Draw(t, "verdict")
	try := webhook.Try{WebhookID: id, Place: m.waiting[0].Place, At: now, Before: now.Add(-rapid.Int64Range(10, 200).Draw(t, "age")), Verdict: v}
	left, gone := []webhook.Delivery(nil), 0
	for i, d := range m.waiting {
		switch {
		case i == 0 && v.Delivered:
		case i == 0 && v.Done, v.Disabled != "", d.Changed < try.Before:
			gone++
		default:
			left = append(left, d)
		}
	}
	m.waiting, m.Dropped, m.Failures, m.Disabled = left, m.Dropped+int64(gone), v.Failures, v.Disabled
	if m.NextTry = now.Add(v.Wait); len(left) == 0 {
		m.NextTry = 0
	}
	if v.Delivered {
		m.Succeeded = now
	} else {
		m.Failed, m.LastError = now, v.Error
	}
	if got, err := h.Tried(context.Background(), job.Lease{}, try); err != nil || got != gone {
		t.Fatalf("%d are given up, want %d: %v", got, gone, err)
	}
}

func wantStanding(t *rapid.T, h hooks, id string, m *modelOfHook) {
	w, next, err := h.NextDelivery(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	first := int64(0)
	if len(m.waiting) > 0 {
		first = m.waiting[0].Place
	}
	if w.Standing != m.Standing || next.Place != first {
		t.Fatalf("webhook %s stands at %+v with %d next, want %+v and %d", id, w.Standing, next.Place, m.Standing, first)
	}
}

func wantDue(t *rapid.T, h hooks, models map[string]*modelOfHook, now span.Instant) {
	var want []string
	for id, m := range models {
		if m.NextTry > 0 && m.NextTry <= now {
			want = append(want, id)
		}
	}
	found, err := h.DueWebhooks(context.Background(), now, 10)
	var got []string
	for _, d := range found {
		if d.Failing != (models[d.ID].Failures > 0) || d.At != models[d.ID].NextTry || d.ProjectID != d.ID {
			t.Fatalf("due is %+v of %+v", d, models[d.ID])
		}
		got = append(got, d.ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || err != nil {
		t.Fatalf("due are %v, want %v: %v", got, want, err)
	}
}

func testWebhookBound(t *testing.T, stores ...Subject) {
	one, two := offered[hooks](t, stores[0]), offered[hooks](t, stores[1])
	const most = 4
	var added sync.WaitGroup
	errs := make(chan error, 12)
	for i := range cap(errs) {
		added.Go(func() { errs <- []hooks{one, two}[i%2].AddWebhook(t.Context(), webhookMade(fmt.Sprint(i), 100), most) })
	}
	added.Wait()
	close(errs)
	for err := range errs {
		if err != nil && !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	if list, err := one.Webhooks(t.Context(), webhook.Query{}); len(list) != most || err != nil {
		t.Errorf("the project has %d webhooks, want %d: %v", len(list), most, err)
	}
}

// testHookedMeanwhile adds a delivery through one store while the other ends the delivery before it: whichever comes first,
// the webhook has a next try.
func testHookedMeanwhile(t *testing.T, stores ...Subject) {
	one, two := offered[hooks](t, stores[0]), offered[hooks](t, stores[1])
	mustAddWebhook(t, one, webhookMade("w", 100))
	add := func(n int) int64 {
		mustCreate(t, stores[0], booked(fmt.Sprint(n)))
		changes, err := one.Unhooked(t.Context(), 0)
		if err != nil || len(changes) != 1 {
			t.Fatalf("%d changes wait: %v", len(changes), err)
		}
		return changes[0].Place
	}
	hook := func(place int64) error {
		_, err := one.Hook(t.Context(), job.Lease{}, []int64{place}, []webhook.Delivery{{WebhookID: "w", Place: place, Changed: 1000}}, 1000, 10)
		return err
	}
	last := add(0)
	if err := hook(last); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		place := add(n + 1)
		var both sync.WaitGroup
		both.Go(func() {
			if err := hook(place); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			done := webhook.Try{WebhookID: "w", Place: last, At: 1000, Verdict: webhook.Verdict{Done: true, Delivered: true}}
			if _, err := two.Tried(t.Context(), job.Lease{}, done); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		w, next, err := two.NextDelivery(t.Context(), "w")
		if err != nil || next.Place != place || w.NextTry == 0 {
			t.Fatalf("after %d, %d is next at %d, want %d: %v", n, next.Place, w.NextTry, place, err)
		}
		last = place
	}
}

func testTriedUnderALostLease(t *testing.T, stores ...Subject) {
	one, two := offered[hooks](t, stores[0]), offered[leases](t, stores[1])
	mustAddWebhook(t, one, webhookMade("w", 100))
	lost := takenOver(t, stores[0], two)
	mustCreate(t, stores[0], booked("r"))
	changes, err := one.Unhooked(t.Context(), 0)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%d changes wait: %v", len(changes), err)
	}
	place := changes[0].Place
	if _, err := one.Hook(t.Context(), lost, []int64{place}, []webhook.Delivery{{WebhookID: "w", Place: place, Changed: 1}}, 5, 10); !errors.Is(err, job.ErrLost) {
		t.Errorf("deliveries are stored: %v", err)
	}
	if _, err := one.Tried(t.Context(), lost, webhook.Try{WebhookID: "w", Verdict: webhook.Verdict{Delivered: true}, At: 9}); !errors.Is(err, job.ErrLost) {
		t.Errorf("a try is stored: %v", err)
	}
	if w, err := one.Webhook(t.Context(), "w"); w.Standing != (webhook.Standing{}) || err != nil {
		t.Errorf("it stands at %+v: %v", w.Standing, err)
	}
}

// takenOver returns a lease that another store has acquired since.
func takenOver(t *testing.T, s Subject, other leases) job.Lease {
	t.Helper()
	first := offered[leases](t, s)
	lost, _ := take(t, first, time.Hour)
	if err := first.Release(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if _, held := take(t, other, time.Hour); !held {
		t.Fatal("the other does not get the lease")
	}
	return lost
}
