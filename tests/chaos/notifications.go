// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Notifying returns the settings with which almanacd sends notifications through a broker that may be killed.
func Notifying(broker *labtest.Broker) []string {
	return []string{
		"OS_DEFAULT__TRANSPORT_URL=" + broker.URL(),
		"OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2",
		"OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true",
	}
}

// Told counts the notifications of reservations, by reservation and event type.
type Told struct {
	Mu     sync.Mutex
	Events map[string]int
}

func (h *Told) hear(eventType string, payload json.RawMessage) {
	var body struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(payload, &body) != nil {
		return
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Events[body.ID+" "+eventType]++
}

// Listen reads the notifications on the broker until the test ends.
func Listen(t *testing.T, transportURL string) *Told {
	t.Helper()
	at, err := oslo.ParseURL(transportURL)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(at, amqp.Options{Name: "listener", NewID: uuid.NewString, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	heard := &Told{Events: make(map[string]int)}
	listener := oslo.NewListener(transport, oslo.ListenerOptions{
		Exchange: "openstack", Priorities: []oslo.Priority{oslo.Info}, Queues: oslo.QueueOptions{Quorum: true},
		Handle: func(_ context.Context, n oslo.Notification) error {
			heard.hear(n.EventType, n.Payload)
			return nil
		},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var listening sync.WaitGroup
	listening.Go(func() {
		if err := listener.Serve(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the listener stopped: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		listening.Wait()
		transport.Close()
	})
	return heard
}

// EverythingTold checks that there was a notification of every booking, cancellation, start and
// end.
func EverythingTold(t *testing.T, c *Checker, heard *Told) {
	t.Helper()
	missing := func() (list []string) {
		heard.Mu.Lock()
		defer heard.Mu.Unlock()
		for id, r := range c.records {
			want := []string{"reservation.create"}
			if r.status == "ended" {
				want = append(want, "reservation.start", "reservation.end")
			}
			if r.status == "canceled" {
				want = append(want, "reservation.cancel")
			}
			for _, event := range want {
				if heard.Events[id+" "+event] == 0 {
					list = append(list, id+" "+event)
				}
			}
		}
		return list
	}
	built.Eventually(t, "notifications are missing", func() bool { return len(missing()) == 0 })
}
