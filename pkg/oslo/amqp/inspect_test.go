// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func inspect(t *testing.T, transport *amqp.Transport, queue string) oslo.QueueStatus {
	t.Helper()
	status, err := transport.Inspect(soon(t), queue)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestInspectTellsWhoReadsAQueueAndWhatWaitsInIt(t *testing.T) {
	for name, queues := range map[string]oslo.QueueOptions{
		"classic": {}, "durable": {Durable: true}, "quorum": {Quorum: true},
	} {
		t.Run(name, func(t *testing.T) {
			url := labtest.RabbitMQ(t)
			looking, calling := opened(t, url), opened(t, url)
			look := func() oslo.QueueStatus { return inspect(t, looking, target.Topic) }
			if diff := cmp.Diff(oslo.QueueStatus{}, look()); diff != "" {
				t.Errorf("a queue that is not there: %s", diff)
			}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			server := oslo.NewServer(opened(t, url), oslo.ServerOptions{
				Exchange: target.Exchange, Topic: target.Topic, Name: "one", Queues: queues, NewID: func() string { return "1" },
			})
			go func() { served <- server.Serve(ctx) }()
			<-server.Ready()
			eventually(t, "a consumer", func() bool { return look() == oslo.QueueStatus{Exists: true, Consumers: 1} })
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
			for range 3 {
				if err := calling.Publish(soon(t), oslo.Message{Key: target.Topic, Body: []byte("{}"), Mandatory: true}); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "three messages", func() bool { return look() == oslo.QueueStatus{Exists: true, Messages: 3} })
		})
	}
}

// RabbitMQ closes a channel that asks for a queue that does not exist.
func TestInspectDisturbsNobody(t *testing.T) {
	transport := opened(t, labtest.RabbitMQ(t))
	<-echo(t, transport, oslo.QueueOptions{}).Ready()
	client := newClient(t, transport, patience)
	for range 50 {
		if status := inspect(t, transport, "nobody.has.it"); status.Exists {
			t.Fatalf("%+v", status)
		}
		if err := client.Call(soon(t), target, "echo", map[string]int{"n": 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if status := inspect(t, transport, target.Topic); status.Consumers != 1 {
		t.Errorf("the server's queue: %+v", status)
	}
	if status := transport.Status(); !status.Connected || status.Reconnects > 0 || status.Unconfirmed > 0 {
		t.Errorf("the transport: %+v", status)
	}
}

func TestInspectEndsWhereTheBrokerIsAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := opened(t, "rabbit://u:secret@127.0.0.1:1/").Inspect(ctx, target.Topic)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "inspect queue "+target.Topic) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
