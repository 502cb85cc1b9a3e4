// SPDX-License-Identifier: Apache-2.0

package oslotest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

func now() time.Time { return time.Now() }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

func (c *cloud) notifier() *oslo.Notifier {
	return oslo.NewNotifier(c.transport, oslo.NotifierOptions{
		Exchange: "almanac", PublisherID: "almanac.host", NewID: NewID, Now: func() time.Time { return noon },
	})
}

func (c *cloud) listen(pool string, handle func(context.Context, oslo.Notification) error) {
	c.Helper()
	listener := oslo.NewListener(c.transport, oslo.ListenerOptions{
		Exchange: "almanac", Priorities: []oslo.Priority{oslo.Info, oslo.Error}, Pool: pool,
		Handle: handle, Pause: time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	c.background(listener.Serve)
	c.wait(listener.Ready(), "the listener is ready")
}

func testNotification(t *testing.T, c *cloud) {
	ctx := oslo.WithContext(c.soon(), oslo.Context{
		"request_id": json.RawMessage(`"req-1"`),
		"auth_token": json.RawMessage(`"secret"`),
	})
	sent := oslo.Notification{ID: "id-1", EventType: "reservation.create.end", Payload: json.RawMessage(`{"name":"<ä>"}`)}
	if err := c.notifier().Notify(ctx, sent); err != nil {
		t.Fatal(err)
	}
	got := make(chan oslo.Notification, 1)
	c.listen("", func(_ context.Context, n oslo.Notification) error { got <- n; return nil })
	want := sent
	want.PublisherID, want.Priority, want.Time = "almanac.host", oslo.Info, noon
	want.Context = oslo.NewRequestContext("req-1", "") // without the token
	if diff := cmp.Diff(want, receive(c, got, "the notification comes")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testRequeue(t *testing.T, c *cloud) {
	got := make(chan string, 10)
	failed := false
	c.listen("", func(_ context.Context, n oslo.Notification) error {
		got <- n.ID
		switch {
		case n.ID == "bad":
			return fault.New(fault.Invalid, "never")
		case !failed:
			failed = true
			return errors.New("not now")
		}
		return nil
	})
	for _, id := range []string{"again", "bad", "good"} {
		n := oslo.Notification{ID: id, EventType: "e", Priority: oslo.Error, Payload: json.RawMessage("{}")}
		if err := c.notifier().Notify(c.soon(), n); err != nil {
			t.Fatal(err)
		}
	}
	count := map[string]int{}
	for range 4 {
		count[receive(c, got, "the notifications come")]++
	}
	if diff := cmp.Diff(map[string]int{"again": 2, "bad": 1, "good": 1}, count); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testPools(t *testing.T, c *cloud) {
	got := make(chan string, 10)
	for _, pool := range []string{"blue", "green"} {
		c.listen(pool, func(_ context.Context, n oslo.Notification) error { got <- pool + " " + n.ID; return nil })
	}
	if err := c.notifier().Notify(c.soon(), oslo.Notification{ID: "x", EventType: "e", Payload: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{receive(c, got, "one pool"): true, receive(c, got, "the other pool"): true}
	if diff := cmp.Diff(map[string]bool{"blue x": true, "green x": true}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testOwnQueue(t *testing.T, c *cloud) {
	got := make(chan string, 10)
	ctx, stop := context.WithCancel(c.soon())
	listener := oslo.NewListener(c.transport, oslo.ListenerOptions{
		Exchange: "almanac", Priorities: []oslo.Priority{oslo.Info, oslo.Error}, Pool: "mine", Own: true,
		Handle: func(_ context.Context, n oslo.Notification) error { got <- n.ID; return nil },
	})
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(ctx) }()
	c.wait(listener.Ready(), "the listener is ready")
	notify := func(id string) {
		if err := c.notifier().Notify(c.soon(), oslo.Notification{ID: id, EventType: "e", Payload: json.RawMessage("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	notify("x")
	if id := receive(c, got, "the notification comes"); id != "x" {
		t.Errorf("got %s", id)
	}
	stop()
	if err := receive(c, ended, "the listener ends"); err != nil {
		t.Error(err)
	}
	notify("y")
	others := make(chan string, 10)
	c.listen("", func(_ context.Context, n oslo.Notification) error { others <- n.ID; return nil })
	if first, second := receive(c, others, "the first"), receive(c, others, "the second"); first != "x" || second != "y" {
		t.Errorf("the others got %s and %s", first, second)
	}
	if len(got) != 0 {
		t.Errorf("a listener that has ended got %s", <-got)
	}
}
