// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// short is the limit of calls that may be lost with their connection.
const short = 2 * time.Second

// caller starts a server, and returns what calls it within a limit, and the transport of the calls. The first
// call has been answered.
func caller(t *testing.T, m mode) (call func(limit time.Duration) error, calling *amqp.Transport) {
	t.Helper()
	served, calling := opened(t, m.url), opened(t, m.url)
	<-echo(t, served, m.queues).Ready()
	client := clientIn(t, calling, m.queues, patience)
	call = func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return client.Call(ctx, target, "echo", map[string]int{"n": 1}, nil)
	}
	if err := call(patience); err != nil {
		t.Fatal(err)
	}
	return call, calling
}

func TestCallsWorkAgainAfterTheBrokerIsBack(t *testing.T) {
	broker := labtest.StartRabbitMQ(t)
	call, calling := caller(t, mode{url: broker.URL()})
	for name, end := range map[string]func(){"killed": broker.Kill, "stopped": broker.Stop} {
		stop := make(chan struct{})
		var callers sync.WaitGroup
		for range 4 { // calls are under way all the time
			callers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := call(short); err != nil && !fault.Is(err, fault.Unavailable) {
						t.Errorf("%s: a call without a broker: %v", name, err)
					}
				}
			})
		}
		end()
		eventually(t, "the loss is noticed", func() bool { return !calling.Status().Connected })
		if err := call(short); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), target.Topic) {
			t.Errorf("%s: a call without a broker: %v", name, err)
		}
		broker.Start()
		eventually(t, "calls work again", func() bool { return call(short) == nil })
		close(stop)
		callers.Wait()
		for range 20 {
			if err := call(patience); err != nil {
				t.Errorf("%s: a call afterwards: %v", name, err)
			}
		}
		if status := calling.Status(); !status.Connected || status.Reconnects == 0 || status.LastError == "" {
			t.Errorf("%s: status %+v", name, status)
		}
	}
}

//make:test-upgrade
func TestCallsWorkAgainAfterTheBrokerIsUpgraded(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			broker := labtest.StartRabbitMQOf(t, "epoxy")
			call, _ := caller(t, modeAt(t, broker.URL()+"?"+mode.options, mode.osloAlone))
			broker.Upgrade("newest")
			eventually(t, "calls work again", func() bool { return call(short) == nil })
		})
	}
}

func TestNoConfirmedNotificationIsLostWhenTheBrokerIsKilled(t *testing.T) {
	broker := labtest.StartRabbitMQ(t)
	queues := oslo.QueueOptions{Quorum: true}
	notifier := oslo.NewNotifier(opened(t, broker.URL()), oslo.NotifierOptions{
		Exchange: "almanac", PublisherID: "p", Queues: queues, NewID: oslotest.NewID, Now: time.Now,
	})
	var mu sync.Mutex
	confirmed, got := map[string]bool{}, map[string]bool{}
	stop := make(chan struct{})
	var publishers sync.WaitGroup
	for p := range 4 {
		publishers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := strconv.Itoa(p) + "-" + strconv.Itoa(n)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				err := notifier.Notify(ctx, oslo.Notification{ID: id, EventType: "e", Payload: json.RawMessage("{}")})
				cancel()
				if err == nil {
					mu.Lock()
					confirmed[id] = true
					mu.Unlock()
				} else if !fault.Is(err, fault.Unavailable) {
					t.Errorf("notify: %v", err)
				}
			}
		})
	}
	sent := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(confirmed)
	}
	listener := oslo.NewListener(opened(t, broker.URL()), oslo.ListenerOptions{
		Exchange: "almanac", Priorities: []oslo.Priority{oslo.Info}, Queues: queues, Workers: 4,
		Handle: func(_ context.Context, n oslo.Notification) error {
			mu.Lock()
			defer mu.Unlock()
			got[n.ID] = true
			return nil
		},
	})
	for round := range 2 {
		before := sent()
		eventually(t, "notifications are confirmed", func() bool { return sent() > before+50 })
		broker.AwaitQuorumQueues()
		broker.Kill()
		broker.Start()
		if round == 0 { // in the next round the listener reads while the broker dies
			serve(t, listener.Serve)
		}
	}
	before := sent()
	eventually(t, "notifications are confirmed again", func() bool { return sent() > before+50 })
	close(stop)
	publishers.Wait()
	missing := func() (ids []string) {
		mu.Lock()
		defer mu.Unlock()
		for id := range confirmed {
			if !got[id] {
				ids = append(ids, id)
			}
		}
		return ids
	}
	eventually(t, "every confirmed notification arrives", func() bool { return len(missing()) == 0 })
	t.Logf("%d notifications confirmed", sent())
}

func TestAServerStartsBeforeItsBroker(t *testing.T) {
	broker := labtest.StartRabbitMQ(t)
	broker.Kill()
	transport := opened(t, broker.URL())
	server := echo(t, transport, oslo.QueueOptions{})
	eventually(t, "the trouble is known", func() bool { return transport.Status().LastError != "" })
	if status := transport.Status(); status.Connected || !strings.Contains(status.LastError, "cannot be reached") {
		t.Errorf("status %+v", status)
	}
	broker.Start()
	<-server.Ready()
	eventually(t, "both connections are up", func() bool { return transport.Status().Connected })
	if err := newClient(t, transport, patience).Call(soon(t), target, "echo", nil, nil); err != nil {
		t.Error(err)
	}
}
