// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

var streams = oslo.QueueOptions{Quorum: true, TransientQuorum: true, StreamFanout: true}

func TestEachListenerOfAStreamHearsWhatIsCastWhileItListens(t *testing.T) {
	url := labtest.RabbitMQ(t)
	client, ofFirst := replica(t, opened(t, url), "first", streams)
	cast := func(by string) {
		t.Helper()
		if err := client.Fanout(soon(t), target, "changed", change{by}); err != nil {
			t.Fatal(err)
		}
	}
	cast("before")
	if by := <-ofFirst; by != "before" {
		t.Errorf("the first listener heard %q", by)
	}
	_, ofSecond := replica(t, opened(t, url), "second", streams)
	cast("after")
	if a, b := <-ofFirst, <-ofSecond; a != "after" || b != "after" {
		t.Errorf("then they heard %q and %q", a, b)
	}
}

// A broker that comes back may lose a cast, like a cast to any fanout queue.
func TestAListenerOfAStreamGoesOnWhenTheBrokerIsBack(t *testing.T) {
	broker := labtest.StartRabbitMQ(t)
	client, heard := replica(t, opened(t, broker.URL()), "one", streams)
	if err := client.Fanout(soon(t), target, "changed", change{"before"}); err != nil {
		t.Fatal(err)
	}
	if by := <-heard; by != "before" {
		t.Fatalf("heard %q", by)
	}
	broker.Stop()
	broker.Start()
	eventually(t, "a cast that is heard", func() bool {
		if err := client.Fanout(soon(t), target, "changed", change{"after"}); err != nil {
			t.Fatal(err)
		}
		select {
		case by := <-heard:
			return by == "after"
		case <-time.After(time.Second):
			return false
		}
	})
}

// RabbitMQ closes the connection of a consumer that hands back a message of a stream.
func TestAListenerThatHandsBackAMessageOfAStreamHearsTheNext(t *testing.T) {
	transport := opened(t, labtest.RabbitMQ(t))
	log := oslo.Queue{Name: "almanac.handed_back", Durable: true, Stream: true, Args: map[string]any{"x-queue-type": "stream"}}
	heard := make(chan string, 10)
	listening, err := transport.Subscribe(soon(t), []oslo.Queue{log}, 10, func(d oslo.Delivery) {
		settle := d.Ack
		if string(d.Body) == "first" {
			settle = d.Requeue
		}
		if err := settle(); err != nil {
			t.Errorf("settle %s: %v", d.Body, err)
		}
		heard <- string(d.Body)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	for _, body := range []string{"first", "second"} {
		if err := transport.Publish(soon(t), oslo.Message{Key: log.Name, Body: []byte(body), Mandatory: true}); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-heard:
			if got != body {
				t.Fatalf("heard %q, want %q", got, body)
			}
		case <-soon(t).Done():
			t.Fatalf("%q is not heard", body)
		}
	}
}
