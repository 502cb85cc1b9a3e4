// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// channel opens a channel to a broker by its transport_url.
func channel(t *testing.T, transportURL string) *amqp.Channel {
	t.Helper()
	rest, found := strings.CutPrefix(transportURL, "rabbit://")
	if !found {
		t.Fatalf("transport_url %q does not start with rabbit://", transportURL)
	}
	connection, err := amqp.Dial("amqp://" + rest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	opened, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// publish sends one durable message to a new quorum queue and waits until the broker has it.
func publish(t *testing.T, to *amqp.Channel, queue, body string) {
	t.Helper()
	if _, err := to.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	if err := to.Confirm(false); err != nil {
		t.Fatal(err)
	}
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
	confirmed, err := to.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, false, false, message)
	if err != nil {
		t.Fatal(err)
	}
	if !confirmed.Wait() {
		t.Fatal("the broker refused the message")
	}
}

// get takes the message of a queue.
func get(t *testing.T, from *amqp.Channel, queue string) string {
	t.Helper()
	message, found, err := from.Get(queue, true)
	if err != nil || !found {
		t.Fatalf("get from %s: found %v, %v", queue, found, err)
	}
	return string(message.Body)
}

func TestTheSharedBrokerGivesEachTestAVirtualHostOfItsOwn(t *testing.T) {
	var url string
	t.Run("during", func(t *testing.T) {
		url = labtest.RabbitMQ(t)
		if other := labtest.RabbitMQ(t); other == url {
			t.Errorf("the same virtual host twice: %s", url)
		}
		here := channel(t, url)
		publish(t, here, "promises", "kept")
		if body := get(t, here, "promises"); body != "kept" {
			t.Errorf("message %q, want kept", body)
		}
	})
	if connection, err := amqp.Dial("amqp://" + strings.TrimPrefix(url, "rabbit://")); err == nil {
		connection.Close()
		t.Error("the virtual host still exists after its test")
	}
}

func TestABrokerThatWasStoppedOrKilledKeepsConfirmedMessages(t *testing.T) {
	broker := labtest.StartRabbitMQ(t)
	for _, step := range []struct {
		name string
		end  func()
	}{{"stopped", broker.Stop}, {"killed", broker.Kill}} {
		publish(t, channel(t, broker.URL()), "promises", step.name)
		step.end()
		if connection, err := amqp.Dial("amqp://" + strings.TrimPrefix(broker.URL(), "rabbit://")); err == nil {
			connection.Close()
			t.Fatalf("the %s broker still answers", step.name)
		}
		broker.Start()
		if body := get(t, channel(t, broker.URL()), "promises"); body != step.name {
			t.Errorf("message %q, want %q", body, step.name)
		}
	}
}
