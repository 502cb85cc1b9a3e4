// SPDX-License-Identifier: Apache-2.0

package oslotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

func testInspect(t *testing.T, c *cloud) {
	queue := oslo.Queue{Name: "almanac.q", Exchange: oslo.Exchange{Name: "almanac", Kind: oslo.Topic}, Key: "almanac.q"}
	subscribe := func() oslo.Subscription {
		s, err := c.transport.Subscribe(c.soon(), []oslo.Queue{queue}, 1, func(d oslo.Delivery) { _ = d.Ack() })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	c.is(queue.Name, oslo.QueueStatus{})
	one, other := subscribe(), subscribe()
	c.is(queue.Name, oslo.QueueStatus{Exists: true, Consumers: 2})
	one.Close()
	other.Close()
	if err := c.transport.Publish(c.soon(), oslo.Message{Key: queue.Name, Body: []byte("{}"), Mandatory: true}); err != nil {
		t.Fatal(err)
	}
	c.is(queue.Name, oslo.QueueStatus{Exists: true, Messages: 1})
}

// is waits until the queue has the wanted status.
func (c *cloud) is(queue string, want oslo.QueueStatus) {
	c.Helper()
	for ctx := c.soon(); ; {
		got, err := c.transport.Inspect(ctx, queue)
		if err != nil {
			c.Fatalf("queue %s is not yet %+v: %v", queue, want, err)
		}
		if got == want {
			return
		}
	}
}

// said is a log handler that passes each message to the test.
type said chan string

func (s said) Enabled(context.Context, slog.Level) bool { return true }
func (s said) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s said) WithGroup(string) slog.Handler            { return s }
func (s said) Handle(_ context.Context, r slog.Record) error {
	s <- r.Message
	return nil
}

// serveLogged starts a server like cloud.serve, and returns its log.
func (c *cloud) serveLogged(methods map[string]oslo.Handler) said {
	c.Helper()
	log := make(said, 100)
	server := oslo.NewServer(c.transport, oslo.ServerOptions{
		Exchange: target.Exchange, Topic: target.Topic, Name: "one", Workers: 1, Grace: 100 * time.Millisecond,
		Endpoints: []oslo.Endpoint{{Version: "1.4", Methods: methods}}, NewID: NewID, Log: slog.New(log),
	})
	c.background(server.Serve)
	c.wait(server.Ready(), "the server is ready")
	return log
}

const (
	// waits is how many seconds the callers in these tests wait for a sign of life.
	waits = 2
	// mostWaits is the largest number of seconds that they wait on a busy machine.
	mostWaits = 32
)

// lasts returns the expiration of requests whose caller waits for this many seconds.
func lasts(wait int) time.Duration { return time.Duration(wait) * 2500 * time.Millisecond }

// ask sends a request to method, with replies as its reply queue. Its caller waits for `wait`
// seconds.
func (c *cloud) ask(method, replies string, wait int) {
	c.Helper()
	inner := fmt.Sprintf(`{"method": %q, "args": {"n": 3}, "_msg_id": "0123", "_reply_q": %q, "_timeout": %d}`, method, replies, wait)
	body, _ := json.Marshal(map[string]string{"oslo.version": "2.0", "oslo.message": inner})
	err := c.transport.Publish(c.soon(), oslo.Message{
		Exchange: oslo.Exchange{Name: target.Exchange, Kind: oslo.Topic}, Key: target.Topic, Body: body, Expiration: lasts(wait),
	})
	if err != nil {
		c.Fatal(err)
	}
}

// replies reads a reply queue, which remains after the reading, and returns the results in it.
func (c *cloud) replies(queue string) (reading oslo.Subscription, results <-chan string) {
	c.Helper()
	got := make(chan string, 10)
	reading, err := c.transport.Subscribe(c.soon(), []oslo.Queue{{Name: queue}}, 1, func(d oslo.Delivery) {
		var outer struct {
			Message string `json:"oslo.message"`
		}
		var inner struct {
			Result json.RawMessage
			Ending bool
		}
		if json.Unmarshal(d.Body, &outer) == nil && json.Unmarshal([]byte(outer.Message), &inner) == nil && inner.Ending {
			got <- string(inner.Result)
		}
		_ = d.Ack()
	})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(reading.Close)
	return reading, got
}

func testGoneCaller(t *testing.T, c *cloud) {
	served := make(chan string, 10)
	log := c.serveLogged(map[string]oslo.Handler{
		"late":   func(_ context.Context, r *oslo.Request) (any, error) { served <- r.Method; return nil, nil },
		"double": double,
	})
	c.ask("late", "reply_deleted", waits)
	left, _ := c.replies("reply_left")
	left.Close()
	c.ask("late", "reply_left", waits)
	// The one worker stays free for other requests.
	for range 2 {
		var got number
		if err := c.client(oslo.ClientOptions{}).Call(c.soon(), target, "double", number{4}, &got); err != nil || got.N != 8 {
			t.Errorf("got %d, %v", got.N, err)
		}
		if text := receive(c, log, "it is dropped"); text != "dropped a request, because its caller is gone" {
			t.Errorf("the server says: %s", text)
		}
	}
	if len(served) > 0 {
		t.Error("a request was served for which nobody waits")
	}
}

func testReturningCaller(t *testing.T, c *cloud) {
	served := make(chan string, 10)
	log := c.serveLogged(map[string]oslo.Handler{"double": func(ctx context.Context, r *oslo.Request) (any, error) {
		served <- "served"
		return double(ctx, r)
	}})
	for wait := waits; ; wait *= 4 {
		queue := fmt.Sprint("reply_late_", wait)
		c.ask("double", queue, wait)
		// The server has received the request once the queue is empty.
		c.is(target.Topic, oslo.QueueStatus{Exists: true, Consumers: 1})
		_, results := c.replies(queue)
		select {
		case result := <-results:
			if result != `{"n":6}` {
				t.Errorf("got %s", result)
			}
			if len(served) != 1 {
				t.Errorf("it was served %d times", len(served))
			}
			return
		case text := <-log: // the machine was too slow
			if wait >= mostWaits {
				t.Fatalf("the server says: %s", text)
			}
		case <-time.After(patience):
			t.Fatal("waited in vain: the answer comes")
		}
	}
}

func testLostCaller(t *testing.T, c *cloud) {
	began, ended := make(chan struct{}), make(chan error, 1)
	c.serveLogged(map[string]oslo.Handler{"hang": func(ctx context.Context, r *oslo.Request) (any, error) {
		_, err := hang(began)(ctx, r)
		ended <- err
		return nil, err
	}})
	client := oslo.NewClient(c.transport, oslo.ClientOptions{Monitor: waits * time.Second, NewID: NewID, Now: now})
	called := make(chan error, 1)
	go func() { called <- client.Call(c.soon(), target, "hang", nil, nil) }()
	c.wait(began, "the call begins")
	client.Close()
	if err := receive(c, ended, "the work ends"); !errors.Is(err, context.Canceled) {
		t.Errorf("the work ends with %v", err)
	}
	receive(c, called, "the call ends")
}

// undoer returns handlers that begin, wait, and answer, and that register an Undo.
type undoer struct {
	began, undone chan string
	hold          chan struct{}
}

func newUndoer() undoer {
	return undoer{make(chan string, 10), make(chan string, 10), make(chan struct{}, 10)}
}

// answer returns a handler that answers after a value from hold.
func (u undoer) answer(result any, err error) oslo.Handler {
	return func(_ context.Context, r *oslo.Request) (any, error) {
		r.Undo(func() { u.undone <- r.Method })
		u.began <- r.Method
		<-u.hold
		if r.Method == "panic" {
			panic("hidden")
		}
		return result, err
	}
}

func testUndo(t *testing.T, c *cloud) {
	u := newUndoer()
	c.serveLogged(map[string]oslo.Handler{
		"fail": u.answer(nil, errors.New("after all")), "break": u.answer(make(chan int), nil), "panic": u.answer(nil, nil),
		"leave": u.answer(nil, nil), "delete": u.answer(nil, nil), "read": u.answer(nil, nil),
	})
	client := func(wait int) *oslo.Client {
		return oslo.NewClient(c.transport, oslo.ClientOptions{Monitor: time.Duration(wait) * time.Second, NewID: NewID, Now: now})
	}
	reader, leaver := client(4*waits), client(waits)
	defer reader.Close()
	called := make(chan error, 1)
	go func() { called <- reader.Call(c.soon(), target, "read", nil, nil) }()
	receive(c, u.began, "the call begins")
	u.hold <- struct{}{}
	if err := receive(c, called, "the call ends"); err != nil {
		t.Errorf("an answer that is read: %v", err)
	}
	for _, method := range []string{"fail", "break", "panic", "leave", "delete"} {
		switch method {
		case "delete":
			go func() { called <- leaver.Call(c.soon(), target, method, nil, nil) }()
			receive(c, u.began, "the call begins")
			leaver.Close()
		default:
			reading, _ := c.replies("reply_" + method)
			c.ask(method, "reply_"+method, waits)
			if receive(c, u.began, "the request begins"); method == "leave" {
				reading.Close()
			}
		}
		u.hold <- struct{}{}
		if got := receive(c, u.undone, method+" is undone"); got != method {
			t.Errorf("undone is %s, not %s", got, method)
		}
	}
}

func testLateAnswer(t *testing.T, c *cloud) {
	u := newUndoer()
	log := c.serveLogged(map[string]oslo.Handler{"answer": u.answer(number{6}, nil)})
	for wait := waits; !readsLate(c, u, log, wait); wait *= 4 {
		if wait >= mostWaits {
			t.Fatal("what the caller has learnt was undone")
		}
	}
}

// readsLate makes a caller read an answer that is already in its queue, and reports whether the
// server leaves the result in place for longer than the caller waits.
func readsLate(c *cloud, u undoer, log said, wait int) bool {
	c.Helper()
	queue := fmt.Sprint("reply_late_", wait)
	reading, _ := c.replies(queue)
	c.ask("answer", queue, wait)
	receive(c, u.began, "the request begins")
	reading.Close()
	u.hold <- struct{}{}
	c.is(queue, oslo.QueueStatus{Exists: true, Messages: 1})
	_, results := c.replies(queue)
	if result := receive(c, results, "the answer comes"); result != `{"n":6}` {
		c.Errorf("got %s", result)
	}
	select {
	case <-u.undone: // an error, or the machine was too slow
		return false
	case text := <-log:
		c.Errorf("the server says: %s", text)
	case <-time.After(time.Duration(wait+1) * time.Second): // nothing should happen
	}
	return true
}
