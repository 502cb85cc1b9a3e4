// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// change are the arguments of the method "changed".
type change struct {
	By string `json:"by"`
}

// replica serves the method "changed" and counts its casts.
func replica(t *testing.T, transport *amqp.Transport, name string, queues oslo.QueueOptions) (client *oslo.Client, changes chan string) {
	t.Helper()
	changes = make(chan string, 10)
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Exchange: target.Exchange, Topic: target.Topic, Name: name, NewID: oslotest.NewID, Queues: queues,
		Endpoints: []oslo.Endpoint{{Version: "1.0", Methods: map[string]oslo.Handler{
			"echo": func(_ context.Context, r *oslo.Request) (any, error) { return r.Args, nil },
			"changed": func(_ context.Context, r *oslo.Request) (any, error) {
				var args change
				err := r.Decode(&args)
				changes <- args.By
				return nil, err
			},
		}}},
	})
	serve(t, server.Serve)
	<-server.Ready()
	client = oslo.NewClient(transport, oslo.ClientOptions{Queues: queues, NewID: oslotest.NewID, Now: time.Now})
	t.Cleanup(client.Close)
	return client, changes
}

func TestOwnTopicsWorkOnABrokerThatRefusesTransientQueues(t *testing.T) {
	broker := labtest.StartStrictRabbitMQ(t)
	transport := opened(t, broker.URL())
	client, changes := replica(t, transport, "one", oslo.OwnQueues)
	var answer map[string]int
	if err := client.Call(soon(t), target, "echo", map[string]int{"n": 7}, &answer); err != nil || answer["n"] != 7 {
		t.Errorf("a call: %v, %v", answer, err)
	}
	if err := client.Fanout(soon(t), target, "changed", change{"one"}); err != nil {
		t.Error(err)
	}
	if by := <-changes; by != "one" {
		t.Errorf("received %q", by)
	}
	if status := transport.Status(); !status.Connected || status.Refused != "" || status.Reconnects > 0 {
		t.Errorf("status %+v", status)
	}
}

// An older Almanac declares its queues for replies and fanout as transient ones.
func TestAnOlderReplicaAndANewOneHearEachOther(t *testing.T) {
	url := labtest.RabbitMQ(t)
	older, ofOlder := replica(t, opened(t, url), "older", oslo.QueueOptions{Quorum: true})
	newer, ofNewer := replica(t, opened(t, url), "newer", oslo.OwnQueues)
	for by, client := range map[string]*oslo.Client{"older": older, "newer": newer} {
		if err := client.Fanout(soon(t), target, "changed", change{by}); err != nil {
			t.Fatal(err)
		}
		if a, b := <-ofOlder, <-ofNewer; a != by || b != by {
			t.Errorf("after the cast of the %s one they heard %q and %q", by, a, b)
		}
		var answer map[string]int
		if err := client.Call(soon(t), target, "echo", map[string]int{"n": 7}, &answer); err != nil || answer["n"] != 7 {
			t.Errorf("a call of the %s one: %v, %v", by, answer, err)
		}
	}
}

func TestARefusedQueueIsToldInTheStatusUntilTheBrokerAcceptsIt(t *testing.T) {
	broker := labtest.StartStrictRabbitMQ(t)
	transport := opened(t, broker.URL())
	echo(t, transport, oslo.QueueOptions{})
	eventually(t, "the refusal is in the status", func() bool {
		return strings.Contains(transport.Status().Refused, "set rabbit_transient_quorum_queue = true")
	})
}
