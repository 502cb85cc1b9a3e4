// SPDX-License-Identifier: Apache-2.0

package oslotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

type number struct {
	N int `json:"n"`
}

// double returns twice its argument.
func double(_ context.Context, r *oslo.Request) (any, error) {
	var args number
	if err := r.Decode(&args); err != nil {
		return nil, err
	}
	return number{2 * args.N}, nil
}

func testCall(t *testing.T, c *cloud) {
	type seen struct {
		RequestID, GlobalRequestID, Version string
		Deadline                            bool
	}
	c.serve("one", 0, map[string]oslo.Handler{
		"look": func(ctx context.Context, r *oslo.Request) (any, error) {
			deadline, bounded := ctx.Deadline()
			inTime := bounded && time.Until(deadline) <= patience
			return seen{oslo.ContextOf(ctx).RequestID(), r.Context.GlobalRequestID(), r.Version, inTime}, nil
		},
	})
	ctx := oslo.WithContext(c.soon(), oslo.NewRequestContext("req-1", "req-2"))
	var got seen
	if err := c.client(oslo.ClientOptions{}).Call(ctx, target, "look", nil, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(seen{"req-1", "req-2", "1.2", true}, got); diff != "" {
		t.Errorf("the handler sees (-want +got):\n%s", diff)
	}
}

func testConcurrentCalls(t *testing.T, c *cloud) {
	c.serve("one", 8, map[string]oslo.Handler{"double": double})
	client := c.client(oslo.ClientOptions{})
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			var got number
			if err := client.Call(c.soon(), target, "double", number{i}, &got); err != nil || got.N != 2*i {
				t.Errorf("double %d: got %d, %v", i, got.N, err)
			}
		})
	}
	group.Wait()
}

func testRemoteErrors(t *testing.T, c *cloud) {
	noValidHost := &oslo.RemoteError{
		Class: "NoValidHost", Module: "nova.exception", Message: "No valid host was found. <x>", Traceback: []string{"line"},
		Args: []json.RawMessage{json.RawMessage(`"x"`)}, Kwargs: map[string]json.RawMessage{"code": json.RawMessage("500")},
	}
	c.serve("one", 0, map[string]oslo.Handler{
		"pass": func(context.Context, *oslo.Request) (any, error) { return nil, fmt.Errorf("ask: %w", noValidHost) },
		"refuse": func(context.Context, *oslo.Request) (any, error) {
			return nil, &fault.Error{Kind: fault.Unavailable, Field: "quantity", Message: "too many", RetryAfter: 3 * time.Second, Err: errors.New("hidden")}
		},
		"break": func(context.Context, *oslo.Request) (any, error) { return nil, errors.New("password=hidden") },
	})
	client := c.client(oslo.ClientOptions{})

	passed, ok := errors.AsType[*oslo.RemoteError](client.Call(c.soon(), target, "pass", nil, nil))
	if !ok {
		t.Fatal("an exception is a RemoteError")
	}
	if diff := cmp.Diff(noValidHost, passed); diff != "" {
		t.Errorf("an exception passes through a service unchanged (-want +got):\n%s", diff)
	}
	err := client.Call(c.soon(), target, "refuse", nil, nil)
	want := &fault.Error{Kind: fault.Unavailable, Field: "quantity", Message: "too many", RetryAfter: 3 * time.Second}
	if diff := cmp.Diff(want, fault.Of(err)); diff != "" {
		t.Errorf("a fault stays what it was, without its cause (-want +got):\n%s", diff)
	}
	err = client.Call(c.soon(), target, "break", nil, nil)
	if fault.Of(err).Kind != fault.Internal || strings.Contains(err.Error(), "hidden") {
		t.Errorf("an error without a kind keeps its text to itself: %v", err)
	}
}

func testTimeout(t *testing.T, c *cloud) {
	client := c.client(oslo.ClientOptions{Timeout: 300 * time.Millisecond})
	err := client.Call(t.Context(), target, "double", number{1}, nil)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), target.Topic) {
		t.Errorf("want Unavailable that names the topic, got %v", err)
	}
}

// testOver calls with a context that has ended: on a busy machine a short one ends before the call
// begins.
func testOver(t *testing.T, c *cloud) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	c.serve("one", 0, map[string]oslo.Handler{"double": double})
	client := c.client(oslo.ClientOptions{})
	call := func() {
		if err := client.Call(over, target, "double", number{1}, nil); !fault.Is(err, fault.Unavailable) {
			t.Errorf("call: want Unavailable, got %v", err)
		}
	}
	call()
	if err := client.Call(c.soon(), target, "double", number{1}, nil); err != nil {
		t.Error(err)
	}
	call() // the reply queue is open now
	if _, err := c.transport.Inspect(over, target.Topic); err != nil && !fault.Is(err, fault.Unavailable) {
		t.Errorf("inspect: want Unavailable, got %v", err)
	}
}

func testCancel(t *testing.T, c *cloud) {
	began := make(chan struct{})
	c.serve("one", 0, map[string]oslo.Handler{"hang": func(ctx context.Context, _ *oslo.Request) (any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(c.soon())
	defer cancel()
	go func() {
		<-began
		cancel()
	}()
	if err := c.client(oslo.ClientOptions{}).Call(ctx, target, "hang", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("want the context's error, got %v", err)
	}
}

func testMonitor(t *testing.T, c *cloud) {
	c.serve("one", 0, map[string]oslo.Handler{"slow": func(ctx context.Context, r *oslo.Request) (any, error) {
		var args number
		if err := r.Decode(&args); err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(args.N) * time.Second):
			return args, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
	// A busy machine may be late with a sign of life; then the next round allows more time.
	for wait := waits; ; wait *= 4 {
		var got number
		asked := number{wait + wait/2}
		err := c.client(oslo.ClientOptions{Monitor: time.Duration(wait) * time.Second}).Call(c.soon(), target, "slow", asked, &got)
		if err == nil && got == asked {
			break
		}
		if wait >= mostWaits || !fault.Is(err, fault.Unavailable) {
			t.Fatalf("signs of life keep the call waiting: got %d, %v", got.N, err)
		}
	}
	silent := oslo.Target{Exchange: target.Exchange, Topic: "almanac.nobody"}
	begin := time.Now()
	err := c.client(oslo.ClientOptions{Monitor: time.Second}).Call(c.soon(), silent, "slow", nil, nil)
	if took := time.Since(begin); !fault.Is(err, fault.Unavailable) || took > patience/2 {
		t.Errorf("without signs of life the call ends early: %v after %s", err, took)
	}
}

func testCast(t *testing.T, c *cloud) {
	got := make(chan int, 10)
	c.serve("one", 0, map[string]oslo.Handler{"tell": collect(got)})
	client := c.client(oslo.ClientOptions{})
	for n := range 3 {
		if err := client.Cast(c.soon(), target, "tell", number{n}); err != nil {
			t.Fatal(err)
		}
	}
	sum := 0
	for range 3 {
		sum += receive(c, got, "a cast is served")
	}
	if sum != 3 {
		t.Errorf("casts of 0, 1 and 2 add up to %d", sum)
	}
}

// collect returns a handler that sends its argument to into.
func collect(into chan<- int) oslo.Handler {
	return func(_ context.Context, r *oslo.Request) (any, error) {
		var args number
		err := r.Decode(&args)
		into <- args.N
		return nil, err
	}
}

func testFanout(t *testing.T, c *cloud) {
	one, two := make(chan int, 1), make(chan int, 1)
	c.serve("one", 0, map[string]oslo.Handler{"tell": collect(one)})
	c.serve("two", 0, map[string]oslo.Handler{"tell": collect(two)})
	if err := c.client(oslo.ClientOptions{}).Fanout(c.soon(), target, "tell", number{5}); err != nil {
		t.Fatal(err)
	}
	if a, b := receive(c, one, "fanout reaches one"), receive(c, two, "fanout reaches two"); a != 5 || b != 5 {
		t.Errorf("got %d and %d", a, b)
	}
}

func testSharedTopic(t *testing.T, c *cloud) {
	const requests = 40
	got := make(chan int, 2*requests)
	c.serve("one", 2, map[string]oslo.Handler{"tell": collect(got)})
	c.serve("two", 2, map[string]oslo.Handler{"tell": collect(got)})
	client := c.client(oslo.ClientOptions{})
	for n := range requests {
		if err := client.Call(c.soon(), target, "tell", number{n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != requests {
		t.Errorf("%d calls were served %d times", requests, len(got))
	}
}

func testDirectedCall(t *testing.T, c *cloud) {
	for _, name := range []string{"one", "two"} {
		c.serve(name, 0, map[string]oslo.Handler{"name": func(context.Context, *oslo.Request) (any, error) { return name, nil }})
	}
	client := c.client(oslo.ClientOptions{})
	for _, name := range []string{"two", "one", "two"} {
		to, got := target, ""
		to.Server = name
		if err := client.Call(c.soon(), to, "name", nil, &got); err != nil || got != name {
			t.Errorf("a call to %s was served by %q (%v)", name, got, err)
		}
	}
}

func testDispatch(t *testing.T, c *cloud) {
	c.serve("one", 0, map[string]oslo.Handler{"double": double})
	client := c.client(oslo.ClientOptions{})
	for name, tc := range map[string]struct {
		version, namespace, method, wantClass string
	}{
		"an unknown method":       {"1.0", "", "triple", "NoSuchMethod"},
		"a later minor version":   {"1.5", "", "double", "UnsupportedVersion"},
		"another major version":   {"2.0", "", "double", "UnsupportedVersion"},
		"no version at all":       {"one", "", "double", "UnsupportedVersion"},
		"an unknown namespace":    {"1.0", "baseapi", "double", "UnsupportedVersion"},
		"an earlier version":      {"1.1", "", "double", ""},
		"a version left out: 1.0": {"", "", "double", ""},
	} {
		to := target
		to.Version, to.Namespace = tc.version, tc.namespace
		err := client.Call(c.soon(), to, tc.method, number{1}, nil)
		class := ""
		if remote, ok := errors.AsType[*oslo.RemoteError](err); ok {
			class = remote.Class
		}
		if class != tc.wantClass {
			t.Errorf("%s: got %q (%v), want %q", name, class, err, tc.wantClass)
		}
	}
}

func testDuplicate(t *testing.T, c *cloud) {
	got := make(chan int, 10)
	c.serve("one", 1, map[string]oslo.Handler{"tell": collect(got)}) // in order
	for _, body := range []string{
		`{"method": "tell", "args": {"n": 1}, "_unique_id": "a"}`,
		`{"method": "tell", "args": {"n": 1}, "_unique_id": "a"}`,
		`{"method": "tell", "args": {"n": 2}, "_unique_id": "b"}`,
	} {
		c.publish(body)
	}
	if first, second := receive(c, got, "a request"), receive(c, got, "another request"); first != 1 || second != 2 {
		t.Errorf("got %d and %d: the same request was served twice", first, second)
	}
}

// publish sends a raw message to the topic.
func (c *cloud) publish(inner string) {
	c.Helper()
	body, _ := json.Marshal(map[string]string{"oslo.version": "2.0", "oslo.message": inner})
	exchange := oslo.Exchange{Name: target.Exchange, Kind: oslo.Topic}
	if err := c.transport.Publish(c.soon(), oslo.Message{Exchange: exchange, Key: target.Topic, Body: body}); err != nil {
		c.Fatal(err)
	}
}
