// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	source "github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// patience bounds every wait for a condition.
const patience = 2 * time.Minute

func connect(t *testing.T, url string) *amqp.Transport {
	t.Helper()
	where, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(where, amqp.Options{Name: t.Name(), NewID: oslotest.NewID, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return transport
}

func hear(t *testing.T, transport oslo.Transport, queue string) *source.Events {
	t.Helper()
	events := source.NewEvents(transport, source.EventOptions{Queue: queue, Gather: 50 * time.Millisecond, Idle: func(n oslo.Notification) bool {
		return n.EventType == "aggregate.remove_host.end"
	}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- events.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	await(t, events.Ready(), "the events are heard")
	return events
}

func await[T any](t *testing.T, c <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(patience):
		t.Fatalf("after %v, still waiting until %s", patience, what)
	}
	return got
}

func TestEveryListenerHearsOfAChangeOnceAndTakesItFromNobody(t *testing.T) {
	transport := connect(t, labtest.RabbitMQ(t))
	one, other := hear(t, transport, "almanac-one"), hear(t, transport, "almanac-other")
	// Events in the form of nova-compute.
	notifier := oslo.NewNotifier(transport, oslo.NotifierOptions{
		Exchange: "nova", PublisherID: "nova-compute:cmp-001", Topics: []string{"versioned_notifications"}, NewID: oslotest.NewID, Now: time.Now,
	})
	send := func(types ...string) {
		for _, kind := range types {
			n := oslo.Notification{EventType: kind, Payload: json.RawMessage(`{}`)}
			if err := notifier.Notify(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	send("scheduler.select_destinations.end", "instance.exists", "flavor.create", "aggregate.remove_host.end")
	send("instance.update", "instance.create.start", "instance.create.end")
	await(t, one.Changed(), "one hears it")
	await(t, other.Changed(), "the other hears it")
	for _, kind := range []string{"service.update", "aggregate.add_host.end", "compute.exception"} {
		send(kind)
		await(t, one.Changed(), "one hears "+kind)
	}

	sent := make(chan string, 20)
	metering := oslo.NewListener(transport, oslo.ListenerOptions{
		Exchange: "nova", Topics: []string{"versioned_notifications"}, Priorities: []oslo.Priority{oslo.Info},
		Handle: func(_ context.Context, n oslo.Notification) error { sent <- n.EventType; return nil },
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = metering.Serve(ctx) }()
	for range 10 {
		await(t, sent, "the reader of Nova's own queue receives all events")
	}
}
