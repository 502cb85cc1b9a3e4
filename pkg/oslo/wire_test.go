// SPDX-License-Identifier: Apache-2.0

package oslo_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// recorder is a Transport that keeps what is published and subscribed, and delivers what the test
// sends.
type recorder struct {
	published []oslo.Message
	sent      func() // unless nil, runs after each message
	queues    []oslo.Queue
	deliver   func(oslo.Delivery)
	done      chan struct{}
}

func (r *recorder) Publish(_ context.Context, m oslo.Message) error {
	r.published = append(r.published, m)
	if r.sent != nil {
		r.sent()
	}
	return nil
}

func (r *recorder) Subscribe(_ context.Context, queues []oslo.Queue, _ int, deliver func(oslo.Delivery)) (oslo.Subscription, error) {
	r.queues, r.deliver, r.done = queues, deliver, make(chan struct{})
	return r, nil
}

func (r *recorder) Inspect(context.Context, string) (oslo.QueueStatus, error) {
	return oslo.QueueStatus{Exists: true, Consumers: 1}, nil
}

func (r *recorder) Close()                {}
func (r *recorder) Done() <-chan struct{} { return r.done }
func (r *recorder) Err() error            { return nil }

func fixedID() string { return "01234567-89ab-cdef-0123-456789abcdef" }

const hexID = "0123456789abcdef0123456789abcdef"

// inner returns the message inside the envelope of a body.
func inner(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var outer map[string]string
	if err := json.Unmarshal(body, &outer); err != nil {
		t.Fatal(err)
	}
	if outer["oslo.version"] != "2.0" || len(outer) != 2 {
		t.Errorf("envelope %v", outer)
	}
	var message map[string]any
	if err := json.Unmarshal([]byte(outer["oslo.message"]), &message); err != nil {
		t.Fatal(err)
	}
	return message
}

// The names and arguments are those of Nova's services.
func TestQueuesAreDeclaredAsOsloDeclaresThem(t *testing.T) {
	for name, tc := range map[string]struct {
		options oslo.QueueOptions
		want    []oslo.Queue
	}{
		"by default": {
			want: []oslo.Queue{
				{Name: "scheduler", Key: "scheduler", Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic}},
				{Name: "scheduler.host", Key: "scheduler.host", Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic}},
				fanoutQueue(1_800_000),
			},
		},
		"as quorum queues": {
			options: oslo.QueueOptions{Quorum: true, DeliveryLimit: 5, TransientTTL: time.Minute},
			want: []oslo.Queue{
				quorumQueue("scheduler"), quorumQueue("scheduler.host"), fanoutQueue(60_000),
			},
		},
		"left to their time": {
			options: oslo.QueueOptions{Leave: true},
			want: []oslo.Queue{
				{Name: "scheduler", Key: "scheduler", Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic}},
				{Name: "scheduler.host", Key: "scheduler.host", Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic}},
				left(fanoutQueue(1_800_000)),
			},
		},
		"as quorum queues all": {
			options: oslo.QueueOptions{Quorum: true, DeliveryLimit: 5, TransientTTL: time.Minute, TransientQuorum: true},
			want: []oslo.Queue{
				quorumQueue("scheduler"), quorumQueue("scheduler.host"), {
					Name: "scheduler_fanout_" + hexID, Key: "scheduler", Durable: true, Temporary: true,
					Exchange: oslo.Exchange{Name: "scheduler_fanout", Kind: oslo.Fanout, Durable: true, AutoDelete: true},
					Args:     map[string]any{"x-queue-type": "quorum", "x-delivery-limit": int32(5), "x-expires": int32(60_000)},
				},
			},
		},
		"with fanout in a stream": {
			options: oslo.QueueOptions{Quorum: true, DeliveryLimit: 5, TransientTTL: time.Minute, TransientQuorum: true, StreamFanout: true},
			want: []oslo.Queue{
				quorumQueue("scheduler"), quorumQueue("scheduler.host"), {
					Name: "scheduler_fanout", Key: "scheduler", Durable: true, Stream: true,
					Exchange: oslo.Exchange{Name: "scheduler_fanout", Kind: oslo.Fanout, Durable: true, AutoDelete: true},
					Args:     map[string]any{"x-queue-type": "stream", "x-max-age": "60s"},
				},
			},
		},
	} {
		r := &recorder{}
		server := oslo.NewServer(r, oslo.ServerOptions{
			Exchange: "nova", Topic: "scheduler", Name: "host", Queues: tc.options, NewID: fixedID,
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := server.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, r.queues); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Publishers continue to fill the queues of a dead listener.
func TestTheQueuesOfAListenerThatHasDiedAreBounded(t *testing.T) {
	for name, row := range map[string]struct {
		options oslo.QueueOptions
		durable bool
		args    map[string]any
	}{
		"by default": {oslo.QueueOptions{}, false, map[string]any{"x-expires": int32(300_000), "x-max-length": int32(10_000)}},
		"with a TTL": {oslo.QueueOptions{TransientTTL: time.Minute}, false, map[string]any{"x-expires": int32(60_000), "x-max-length": int32(10_000)}},
		"as quorum queues": {oslo.QueueOptions{TransientQuorum: true, TransientTTL: time.Hour}, true,
			map[string]any{"x-queue-type": "quorum", "x-expires": int32(300_000), "x-max-length": int32(10_000)}},
	} {
		r := &recorder{}
		listener := oslo.NewListener(r, oslo.ListenerOptions{
			Exchange: "nova", Topics: []string{"versioned_notifications"}, Priorities: []oslo.Priority{oslo.Info}, Pool: "almanac.vm.1", Own: true, Queues: row.options,
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := listener.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		want := []oslo.Queue{{
			Name: "almanac.vm.1.versioned_notifications.info", Key: "versioned_notifications.info", Durable: row.durable, Temporary: true,
			Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic}, Args: row.args,
		}}
		if diff := cmp.Diff(want, r.queues); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func fanoutQueue(expires int32) oslo.Queue {
	return oslo.Queue{
		Name: "scheduler_fanout_" + hexID, Key: "scheduler", Temporary: true,
		Exchange: oslo.Exchange{Name: "scheduler_fanout", Kind: oslo.Fanout, AutoDelete: true},
		Args:     map[string]any{"x-expires": expires},
	}
}

func left(q oslo.Queue) oslo.Queue {
	q.Temporary = false
	return q
}

func quorumQueue(name string) oslo.Queue {
	return oslo.Queue{
		Name: name, Key: name, Durable: true,
		Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic, Durable: true},
		Args:     map[string]any{"x-queue-type": "quorum", "x-delivery-limit": int32(5)},
	}
}

// The caller has stopped waiting by then, and nothing would read the result.
func TestARequestThatNobodyTakesDoesNotOutliveItsCaller(t *testing.T) {
	r := &recorder{}
	client := oslo.NewClient(r, oslo.ClientOptions{Monitor: time.Millisecond, NewID: fixedID, Now: time.Now})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := client.Call(ctx, oslo.Target{Exchange: "nova", Topic: "scheduler"}, "select_destinations", nil, nil); err == nil {
		t.Error("it was answered")
	}
	if got := r.published[0].Expiration; got > time.Millisecond {
		t.Errorf("the caller waits 1 ms, and the message lives for %v", got)
	}
}

func TestARequestIsWrittenAsOsloWritesIt(t *testing.T) {
	r := &recorder{}
	begin := time.Now()
	client := oslo.NewClient(r, oslo.ClientOptions{NewID: fixedID, Monitor: time.Minute, Now: func() time.Time { return begin }})
	const waits = 40 * time.Second
	ctx, cancel := context.WithDeadline(oslo.WithContext(t.Context(), oslo.NewRequestContext("req-1", "")), begin.Add(waits))
	defer cancel()
	r.sent = cancel // nobody answers
	target := oslo.Target{Exchange: "nova", Topic: "scheduler", Server: "host", Version: "4.5"}
	if err := client.Call(ctx, target, "select", map[string]string{"a": "<&>"}, nil); err == nil {
		t.Error("it was answered")
	}
	if err := client.Fanout(t.Context(), target, "update", nil); err != nil {
		t.Fatal(err)
	}
	call := r.published[0]
	if call.Expiration != waits {
		t.Errorf("a call may wait %s, want %s", call.Expiration, waits)
	}
	want := map[string]any{
		"method": "select", "version": "4.5", "args": map[string]any{"a": "<&>"}, "_context_request_id": "req-1",
		"_msg_id": hexID, "_reply_q": "reply_" + hexID, "_timeout": 60.0, "_unique_id": hexID,
	}
	if diff := cmp.Diff(want, inner(t, call.Body)); diff != "" {
		t.Errorf("a call (-want +got):\n%s", diff)
	}
	want = map[string]any{"method": "update", "version": "4.5", "args": map[string]any{}, "_unique_id": hexID}
	if diff := cmp.Diff(want, inner(t, r.published[1].Body)); diff != "" {
		t.Errorf("a fanout (-want +got):\n%s", diff)
	}
	for i := range r.published {
		r.published[i].Body, r.published[i].Expiration = nil, 0
	}
	wantMessages := []oslo.Message{
		{Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic}, Key: "scheduler.host"},
		{Exchange: oslo.Exchange{Name: "scheduler_fanout", Kind: oslo.Fanout, AutoDelete: true}},
	}
	if diff := cmp.Diff(wantMessages, r.published); diff != "" {
		t.Errorf("they go to (-want +got):\n%s", diff)
	}
}

func TestANotificationIsWrittenAsOsloWritesIt(t *testing.T) {
	r := &recorder{}
	notifier := oslo.NewNotifier(r, oslo.NotifierOptions{
		Exchange: "almanac", PublisherID: "api.h", Topics: []string{"a", "b"}, NewID: fixedID,
		Now: func() time.Time { return time.Date(2026, 11, 21, 3, 44, 0, 5000, time.UTC) },
	})
	event := oslo.Notification{EventType: "lease.create", Priority: oslo.Error, Payload: json.RawMessage(`{"n":1}`)}
	if err := notifier.Notify(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"message_id": fixedID(), "publisher_id": "api.h", "event_type": "lease.create", "priority": "ERROR",
		"payload": map[string]any{"n": 1.0}, "timestamp": "2026-11-21 03:44:00.000005", "_unique_id": hexID,
	}
	if diff := cmp.Diff(want, inner(t, r.published[0].Body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m := r.published[1]; m.Key != "b.error" || m.Queue.Name != "b.error" || !m.Mandatory {
		t.Errorf("the second topic: %+v", m)
	}
}
