// SPDX-License-Identifier: Apache-2.0

package oslotest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

func testBound(t *testing.T, c *cloud) {
	const workers, calls = 2, 6
	var active, most atomic.Int64
	var once sync.Once
	all := make(chan struct{}) // closed when all workers are busy
	c.serve("one", workers, map[string]oslo.Handler{"hold": func(ctx context.Context, _ *oslo.Request) (any, error) {
		now := active.Add(1)
		defer active.Add(-1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		if now == workers {
			once.Do(func() { close(all) })
		}
		select {
		case <-all:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		<-time.After(50 * time.Millisecond) // time for further requests to begin
		return nil, nil
	}})
	client := c.client(oslo.ClientOptions{})
	results := make(chan error, calls)
	for range calls {
		go func() { results <- client.Call(c.soon(), target, "hold", nil, nil) }()
	}
	for range calls {
		if err := receive(c, results, "the calls end"); err != nil {
			t.Error(err)
		}
	}
	if most.Load() != workers {
		t.Errorf("%d workers served %d calls at once", workers, most.Load())
	}
}

func testDrain(t *testing.T, c *cloud) {
	began, hold := make(chan struct{}), make(chan struct{})
	server := oslo.NewServer(c.transport, oslo.ServerOptions{
		Exchange: target.Exchange, Topic: target.Topic, Name: "one", NewID: NewID,
		Endpoints: []oslo.Endpoint{{Version: "1.4", Methods: map[string]oslo.Handler{
			"hold": func(ctx context.Context, _ *oslo.Request) (any, error) {
				close(began)
				<-hold
				return number{1}, ctx.Err()
			},
		}}},
	})
	stop := c.background(server.Serve)
	c.wait(server.Ready(), "the server is ready")
	client := c.client(oslo.ClientOptions{})
	result := make(chan error, 1)
	go func() { result <- client.Call(c.soon(), target, "hold", nil, nil) }()
	c.wait(began, "the call begins")
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(hold)
	if err := receive(c, result, "the call ends"); err != nil {
		t.Errorf("a call under way when the server stops: %v", err)
	}
	if err := receive(c, stopped, "the server stops"); err != nil {
		t.Error(err)
	}
}

func testUnroutable(t *testing.T, c *cloud) {
	err := c.transport.Publish(c.soon(), oslo.Message{Key: "reply_nobody", Body: []byte("{}"), Mandatory: true})
	if !errors.Is(err, oslo.ErrUnroutable) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func testConflict(t *testing.T, c *cloud) {
	queue := oslo.Queue{Name: "almanac.q", Exchange: oslo.Exchange{Name: "almanac", Kind: oslo.Topic}, Key: "almanac.q"}
	first, err := c.transport.Subscribe(c.soon(), []oslo.Queue{queue}, 1, func(oslo.Delivery) {})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	queue.Args = map[string]any{"x-expires": int32(60_000)}
	_, err = c.transport.Subscribe(c.soon(), []oslo.Queue{queue}, 1, func(oslo.Delivery) {})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "almanac.q") {
		t.Errorf("a second subscription with other arguments: %v", err)
	}
	err = c.transport.Publish(c.soon(), oslo.Message{Exchange: queue.Exchange, Key: queue.Key, Queue: &queue, Body: []byte("{}")})
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a message with other arguments: %v", err)
	}
	c.serve("one", 0, map[string]oslo.Handler{"double": double})
	if err := c.client(oslo.ClientOptions{}).Call(c.soon(), target, "double", number{1}, nil); err != nil {
		t.Errorf("a refusal disturbs others: %v", err)
	}
}

func testCloseClient(t *testing.T, c *cloud) {
	began := make(chan struct{})
	c.serve("one", 0, map[string]oslo.Handler{"hang": hang(began)})
	client := c.client(oslo.ClientOptions{})
	result := make(chan error, 1)
	go func() { result <- client.Call(c.soon(), target, "hang", nil, nil) }()
	c.wait(began, "the call begins")
	client.Close()
	if err := receive(c, result, "the call ends"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if err := client.Call(c.soon(), target, "hang", nil, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a call on a closed client: %v", err)
	}
}

// hang returns a handler that closes began and then waits for the end of its context.
func hang(began chan<- struct{}) oslo.Handler {
	return func(ctx context.Context, _ *oslo.Request) (any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func testCloseTransport(t *testing.T, c *cloud) {
	other := c.open()
	began := make(chan struct{})
	server := oslo.NewServer(other, oslo.ServerOptions{
		Exchange: target.Exchange, Topic: target.Topic, Name: "one", NewID: NewID,
		Endpoints: []oslo.Endpoint{{Version: "1.4", Methods: map[string]oslo.Handler{"hang": hang(began)}}},
		Grace:     1, // no answer is possible any more
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(t.Context()) }()
	c.wait(server.Ready(), "the server is ready")
	client := oslo.NewClient(other, oslo.ClientOptions{NewID: NewID, Now: now})
	result := make(chan error, 1)
	go func() { result <- client.Call(c.soon(), target, "hang", nil, nil) }()
	c.wait(began, "the call begins")
	if err := other.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := receive(c, result, "the call ends"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if err := receive(c, served, "the server ends"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a server without a transport: got %v", err)
	}
	client.Close()
	if err := other.Publish(c.soon(), oslo.Message{Key: "x", Body: []byte("{}")}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("publish on a closed transport: %v", err)
	}
}

func testGarbage(t *testing.T, c *cloud) {
	c.serve("one", 1, map[string]oslo.Handler{"double": double})
	for _, inner := range []string{"", "[]", "null", `{"method": 5}`, `{"method": "double", "args": []}`, "\x00\xff"} {
		c.publish(inner)
	}
	exchange := oslo.Exchange{Name: target.Exchange, Kind: oslo.Topic}
	for _, body := range []string{"", "garbage", "7", `{"oslo.version": "9.0", "oslo.message": "{}"}`} {
		if err := c.transport.Publish(c.soon(), oslo.Message{Exchange: exchange, Key: target.Topic, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	var got number
	if err := c.client(oslo.ClientOptions{}).Call(c.soon(), target, "double", number{4}, &got); err != nil || got.N != 8 {
		t.Errorf("got %d, %v", got.N, err)
	}
}

func testPanic(t *testing.T, c *cloud) {
	c.serve("one", 1, map[string]oslo.Handler{
		"panic":  func(context.Context, *oslo.Request) (any, error) { panic("hidden") },
		"double": double,
	})
	client := c.client(oslo.ClientOptions{})
	if err := client.Call(c.soon(), target, "panic", nil, nil); !fault.Is(err, fault.Internal) || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
	if err := client.Call(c.soon(), target, "double", number{1}, nil); err != nil {
		t.Error(err)
	}
}

func testWaiting(t *testing.T, c *cloud) {
	queue := oslo.Queue{Name: target.Topic, Exchange: oslo.Exchange{Name: target.Exchange, Kind: oslo.Topic}, Key: target.Topic}
	before, err := c.transport.Subscribe(c.soon(), []oslo.Queue{queue}, 1, func(d oslo.Delivery) { _ = d.Requeue() })
	if err != nil {
		t.Fatal(err)
	}
	before.Close() // the queue stays
	client := c.client(oslo.ClientOptions{})
	result := make(chan error, 1)
	go func() { result <- client.Call(c.soon(), target, "double", number{3}, nil) }()
	c.serve("one", 0, map[string]oslo.Handler{"double": double})
	if err := receive(c, result, "the call ends"); err != nil {
		t.Error(err)
	}
}
