// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

var target = oslo.Target{Exchange: "almanac", Topic: "almanac.test"}

// echo runs a server that answers "echo" with its arguments.
func echo(t *testing.T, transport *amqp.Transport, queues oslo.QueueOptions) *oslo.Server {
	t.Helper()
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Exchange: target.Exchange, Topic: target.Topic, Name: "one", NewID: oslotest.NewID, Queues: queues,
		Endpoints: []oslo.Endpoint{{Version: "1.0", Methods: map[string]oslo.Handler{
			"echo": func(_ context.Context, r *oslo.Request) (any, error) { return r.Args, nil },
		}}},
	})
	serve(t, server.Serve)
	return server
}

// patience bounds every wait for a condition and every call that has an answer.
const patience = 2 * time.Minute

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); !so(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

func TestAWrongPasswordIsToldOnceAndNotShown(t *testing.T) {
	u, err := oslo.ParseURL(labtest.RabbitMQ(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Hosts[0].Password = "wr0ng"
	var log lockedBuffer
	transport, err := amqp.Open(u, amqp.Options{
		RetryInterval: 50 * time.Millisecond, RetryBackoff: time.Millisecond,
		NewID: oslotest.NewID, Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	// The broker needs a second for its refusal.
	eventually(t, "the trouble is known", func() bool { return transport.Status().LastError != "" })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // enough for several attempts
	defer cancel()
	err = newClient(t, transport, patience).Call(ctx, target, "echo", nil, nil)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "refuses the user name or password") {
		t.Errorf("a call with a wrong password: %v", err)
	}
	told := log.String()
	if strings.Count(told, "refuses the user name or password") != 1 {
		t.Errorf("the log does not contain the refusal once:\n%s", told)
	}
	shown := told + err.Error() + fmt.Sprintf("%+v", transport.Status())
	if strings.Contains(shown, "wr0ng") {
		t.Errorf("the password is shown: %s", shown)
	}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// Another client declares the queue differently while the server is away: the server ends with a
// clear error and does not retry forever.
func TestAQueueThatChangedWhileAwayEndsItsServer(t *testing.T) {
	url := labtest.RabbitMQ(t)
	relay := newRelay(t, url)
	transport := opened(t, relay.url)
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Exchange: target.Exchange, Topic: target.Topic, Name: "one", NewID: oslotest.NewID,
	})
	result := make(chan error, 1)
	go func() { result <- server.Serve(soon(t)) }()
	<-server.Ready()
	relay.close()
	eventually(t, "the loss is noticed", func() bool { return !transport.Status().Connected })
	redeclare(t, url, target.Topic)
	relay.open(t)
	err := <-result
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), target.Topic) {
		t.Errorf("got %v", err)
	}
	eventually(t, "the connections are up", func() bool { return transport.Status().Connected })
	other := oslo.Target{Exchange: target.Exchange, Topic: "almanac.other"}
	if err := newClient(t, transport, patience).Cast(soon(t), other, "echo", nil); err != nil {
		t.Errorf("a refused queue disturbs others: %v", err)
	}
}

func TestTheNextHostTakesOver(t *testing.T) {
	url := labtest.RabbitMQ(t)
	first, second := newRelay(t, url), newRelay(t, url)
	u, err := oslo.ParseURL(first.url)
	if err != nil {
		t.Fatal(err)
	}
	next, err := oslo.ParseURL(second.url)
	if err != nil {
		t.Fatal(err)
	}
	u.Hosts = append(u.Hosts, next.Hosts...)
	u.Hosts[0].Password = "wrong" // each host has its own
	transport, err := amqp.Open(u, amqp.Options{RetryInterval: 100 * time.Millisecond, NewID: oslotest.NewID, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { transport.Close() })
	<-echo(t, transport, oslo.QueueOptions{}).Ready()
	client := newClient(t, transport, 2*time.Second) // a call may be lost with its connection
	eventually(t, "calls work", func() bool { return client.Call(soon(t), target, "echo", nil, nil) == nil })
	second.close()
	eventually(t, "the loss is noticed", func() bool { return !transport.Status().Connected })
	second.open(t)
	eventually(t, "calls work again", func() bool { return client.Call(soon(t), target, "echo", nil, nil) == nil })
}

// The broker delivers a notification again if the connection is lost while its handler runs. The
// late acknowledgement removes no other notification.
func TestALateAcknowledgementSettlesNothingElse(t *testing.T) {
	relay := newRelay(t, labtest.RabbitMQ(t))
	transport := opened(t, relay.url)
	notifier := oslo.NewNotifier(transport, oslo.NotifierOptions{
		Exchange: "almanac", PublisherID: "p", NewID: oslotest.NewID, Now: time.Now,
	})
	notify := func(id string) {
		t.Helper()
		if err := notifier.Notify(soon(t), oslo.Notification{ID: id, EventType: "e", Payload: json.RawMessage("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		notify(id)
	}
	began, proceed, ended := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	count := map[string]int{}
	listener := oslo.NewListener(transport, oslo.ListenerOptions{
		Exchange: "almanac", Priorities: []oslo.Priority{oslo.Info}, Workers: 2,
		Handle: func(_ context.Context, n oslo.Notification) error {
			began <- struct{}{}
			<-proceed
			mu.Lock()
			defer mu.Unlock()
			count[n.ID]++
			if n.ID == "end" {
				close(ended)
			}
			return nil
		},
	})
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- listener.Serve(ctx) }()
	<-began
	<-began
	relay.cut()
	eventually(t, "the connections are back", func() bool { return transport.Status().Reconnects >= 2 && transport.Status().Connected })
	close(proceed)
	eventually(t, "all have come", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return count["d"] > 0
	})
	notify("end")
	<-ended
	cancel()
	if err := <-result; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 2, "c": 1, "d": 1, "end": 1}, count); diff != "" {
		t.Errorf("how often each was handled (-want +got):\n%s", diff)
	}
}

func TestAMessageTheBrokerDoesNotConfirmIsAnError(t *testing.T) {
	relay := newRelay(t, labtest.RabbitMQ(t))
	transport := opened(t, relay.url)
	<-echo(t, transport, oslo.QueueOptions{}).Ready()
	client := newClient(t, transport, patience)
	if err := client.Cast(soon(t), target, "echo", nil); err != nil {
		t.Fatal(err)
	}
	relay.silence()
	result := make(chan error, 1)
	go func() { result <- client.Cast(soon(t), target, "echo", nil) }()
	relay.awaitSilenced(t)
	relay.cut()
	if err := <-result; !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "did not confirm") {
		t.Errorf("got %v", err)
	}
	if transport.Status().Unconfirmed != 1 {
		t.Errorf("status %+v", transport.Status())
	}
	eventually(t, "casts work again", func() bool { return client.Cast(soon(t), target, "echo", nil) == nil })
}
