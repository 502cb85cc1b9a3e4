// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// peer is a running testdata/peer.py.
type peer struct {
	lines *bufio.Scanner
}

func python(t *testing.T, mode, url string) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	// Only Debian's Python has oslo.messaging.
	command := exec.CommandContext(ctx, "/usr/bin/python3", "../testdata/peer.py", mode, url)
	command.Stderr = t.Output()
	command.Env = append(os.Environ(), "OSLO_LOCK_PATH="+t.TempDir()) // for its queue manager
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = command.Wait()
	})
	return &peer{bufio.NewScanner(out)}
}

// line returns the next line that the peer prints. It fails the test when the peer ends.
func (p *peer) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatal("the Python peer ended early")
	}
	return p.lines.Text()
}

func (p *peer) ready(t *testing.T) {
	t.Helper()
	if got := p.line(t); got != "ready" {
		t.Fatalf("the Python peer prints %q", got)
	}
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newClient returns a client that waits this long for a sign of life.
func newClient(t *testing.T, transport *amqp.Transport, monitor time.Duration) *oslo.Client {
	return clientIn(t, transport, oslo.QueueOptions{}, monitor)
}

func clientIn(t *testing.T, transport *amqp.Transport, queues oslo.QueueOptions, monitor time.Duration) *oslo.Client {
	client := oslo.NewClient(transport, oslo.ClientOptions{Queues: queues, NewID: oslotest.NewID, Now: time.Now, Monitor: monitor})
	t.Cleanup(client.Close)
	return client
}

// opened is open with a Close at the end of the test.
func opened(t *testing.T, url string) *amqp.Transport {
	transport := open(t, url)
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return transport
}

func TestAPythonServerAnswersOurClient(t *testing.T) { eachMode(t, testPythonServer) }

func testPythonServer(t *testing.T, m mode) {
	server := python(t, "serve", m.python)
	server.ready(t)
	transport := opened(t, m.url)
	client := clientIn(t, transport, m.queues, patience)
	target := oslo.Target{Exchange: "almanac", Topic: "almanac.py", Version: "1.1"}
	ctx := oslo.WithContext(soon(t), oslo.NewRequestContext("req-go", ""))

	var got map[string]any
	if err := client.Call(ctx, target, "double", map[string]int{"n": 4}, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"n": 8.0, "request_id": "req-go"}, got); diff != "" {
		t.Errorf("double (-want +got):\n%s", diff)
	}
	remote, ok := errors.AsType[*oslo.RemoteError](client.Call(ctx, target, "fail", nil, nil))
	if !ok || remote.Class != "KeyError" || remote.Message != "'no such thing'" || len(remote.Traceback) == 0 {
		t.Errorf("a Python exception: got %+v", remote)
	}
	// A busy machine may be late with a sign of life; each attempt allows more time.
	for wait := 2; ; wait *= 4 {
		var text string
		watching := clientIn(t, transport, m.queues, time.Duration(wait)*time.Second)
		err := watching.Call(soon(t), target, "slow", map[string]int{"seconds": 2 * wait}, &text)
		if err == nil && text == "slow" {
			break
		}
		if wait >= 32 || !fault.Is(err, fault.Unavailable) {
			t.Fatalf("a call longer than its monitor: %q, %v", text, err)
		}
	}
	later := target
	later.Version = "1.3"
	if remote, ok := errors.AsType[*oslo.RemoteError](client.Call(ctx, later, "double", nil, nil)); !ok || remote.Class != "UnsupportedVersion" {
		t.Errorf("a later version: got %v", remote)
	}
	one := target
	one.Server = "one"
	if err := client.Cast(ctx, one, "remember", map[string]string{"what": "cast"}); err != nil {
		t.Fatal(err)
	}
	if got := server.line(t); got != "remember cast" {
		t.Errorf("got %q", got)
	}
	if err := client.Fanout(ctx, target, "remember", map[string]string{"what": "fanout"}); err != nil {
		t.Fatal(err)
	}
	if got := server.line(t); got != "remember fanout" {
		t.Errorf("got %q", got)
	}
}

func TestOurServerAnswersAPythonClient(t *testing.T) { eachMode(t, testPythonClient) }

func testPythonClient(t *testing.T, m mode) {
	remembered := make(chan string, 2)
	server := oslo.NewServer(opened(t, m.url), oslo.ServerOptions{
		Exchange: "almanac", Topic: "almanac.go", Name: "one", NewID: oslotest.NewID, Queues: m.queues,
		Endpoints: []oslo.Endpoint{{Version: "1.2", Methods: map[string]oslo.Handler{
			"double": func(_ context.Context, r *oslo.Request) (any, error) {
				var args struct{ N int }
				err := r.Decode(&args)
				return []any{2 * args.N, r.Context.RequestID()}, err
			},
			"refuse": func(context.Context, *oslo.Request) (any, error) {
				return nil, fault.New(fault.Refused, "no capacity")
			},
			"slow": func(ctx context.Context, _ *oslo.Request) (any, error) {
				select {
				case <-time.After(5 * time.Second):
					return "slow", nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			"remember": func(_ context.Context, r *oslo.Request) (any, error) {
				var args struct{ What string }
				err := r.Decode(&args)
				remembered <- args.What
				return nil, err
			},
		}}},
	})
	serve(t, server.Serve)
	<-server.Ready()

	var got map[string]any
	if err := json.Unmarshal([]byte(python(t, "call", m.python).line(t)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"double":  []any{42.0, "req-py"},
		"fault":   []any{"RemoteError", "Refused", "no capacity"},
		"missing": []any{"RemoteError", "NoSuchMethod", "Endpoint does not support RPC method nothing"},
		"late":    []any{"RemoteError", "UnsupportedVersion", "Endpoint does not support RPC version 1.9. Attempted method: double"},
		"slow":    "slow",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what Python sees (-want +got):\n%s", diff)
	}
	casts := []string{<-remembered, <-remembered} // from two queues, so in any order
	slices.Sort(casts)
	if diff := cmp.Diff([]string{"cast", "fanout"}, casts); diff != "" {
		t.Errorf("casts (-want +got):\n%s", diff)
	}
}

// serve runs a server or listener until the test ends.
func serve(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	result := make(chan error, 1)
	go func() { result <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-result; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

func TestAPythonListenerReadsOurNotifications(t *testing.T) { eachMode(t, testPythonListener) }

func testPythonListener(t *testing.T, m mode) {
	notifier := oslo.NewNotifier(opened(t, m.url), oslo.NotifierOptions{
		Exchange: "almanac", PublisherID: "go.host", Queues: m.queues, NewID: oslotest.NewID, Now: time.Now,
	})
	ctx := oslo.WithContext(soon(t), oslo.NewRequestContext("req-go", ""))
	// The notification waits in the queue, which Python declares too, before there is a listener.
	err := notifier.Notify(ctx, oslo.Notification{ID: "id-1", EventType: "lease.create", Payload: json.RawMessage(`{"n": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	listener := python(t, "listen", m.python)
	listener.ready(t)
	var got map[string]any
	if err := json.Unmarshal([]byte(listener.line(t)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"publisher_id": "go.host", "event_type": "lease.create", "message_id": "id-1",
		"request_id": "req-go", "payload": map[string]any{"n": 1.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOurListenerReadsPythonNotifications(t *testing.T) { eachMode(t, testPythonNotifier) }

func testPythonNotifier(t *testing.T, m mode) {
	got := make(chan oslo.Notification, 1)
	listener := oslo.NewListener(opened(t, m.url), oslo.ListenerOptions{
		Exchange: "almanac", Queues: m.queues, Priorities: []oslo.Priority{oslo.Info},
		Handle: func(_ context.Context, n oslo.Notification) error { got <- n; return nil },
	})
	python(t, "notify", m.python).ready(t)
	serve(t, listener.Serve)
	n := <-got
	if n.PublisherID != "py.host" || n.EventType != "instance.create.end" || n.Priority != oslo.Info ||
		string(n.Payload) != `{"name": "<\u00e4>"}` || n.Context.RequestID() != "req-py" || n.ID == "" ||
		time.Since(n.Time).Abs() > patience {
		t.Errorf("got %+v", n)
	}
}
