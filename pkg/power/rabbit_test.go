// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// rabbit returns a transport to RabbitMQ with short retry intervals.
func rabbit(t *testing.T, url string) *amqp.Transport {
	t.Helper()
	at, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(at, amqp.Options{
		Name: t.Name(), RetryInterval: 100 * time.Millisecond, RetryBackoff: 100 * time.Millisecond, IntervalMax: time.Second,
		NewID: oslotest.NewID, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return transport
}

// patience bounds every wait for a condition.
const patience = 5 * time.Minute

// within waits until a condition holds.
func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

// listenForLong returns a fleet that considers no agent lost during a test, however slow the
// machine is: the agents of these tests announce themselves only at the beginning.
func listenForLong(t *testing.T, transport oslo.Transport, name string, orderTimeout time.Duration) *power.Fleet {
	f := power.NewFleet(power.FleetOptions{
		Client: client(t, transport), Exchange: "almanac", OrderTimeout: orderTimeout, LostAfter: time.Hour, Now: time.Now,
	})
	serve(t, transport, power.AgentsTopic, name, f.Endpoint())
	return f
}

func TestOrdersOverRabbitMQ(t *testing.T) {
	url := labtest.RabbitMQ(t)
	old, next := listenForLong(t, rabbit(t, url), "old", 0), listenForLong(t, rabbit(t, url), "new", 0)
	m := &machine{state: energy.On}
	a, _ := remote(t, rabbit(t, url), "one", stateFile(t), map[string]power.Machine{"h1": m, "h2": &machine{state: energy.On}})
	within(t, "both fleets know the agent", func() bool {
		announce(t, a)
		one, _ := old.Access()
		other, _ := next.Access()
		return len(one) == 2 && len(other) == 2
	})
	order := func(f *power.Fleet, o energy.Order, want energy.Progress, words string) {
		t.Helper()
		var got energy.Outcome
		within(t, "the order is over", func() bool {
			got = give(t, f, o)
			return got.Progress != energy.OrderAccepted
		})
		becomes(t, got, want, words)
	}
	first, second := numbered(1, "h1", energy.Off), numbered(2, "h1", energy.On)
	order(old, first, energy.OrderDone, "")
	order(old, second, energy.OrderDone, "")
	order(old, first, energy.OrderDone, "") // again
	late := numbered(1, "h1", energy.Off)
	late.ID = "out of order"
	order(old, late, energy.OrderRefused, "not newer")
	expired := numbered(3, "h1", energy.Off)
	expired.Deadline = at(-1)
	order(old, expired, energy.OrderRefused, "had to begin by")
	takenOver := numbered(1, "h2", energy.Off)
	takenOver.Epoch = 2
	order(next, takenOver, energy.OrderDone, "")
	order(old, numbered(4, "h1", energy.Off), energy.OrderRefused, "a newer controller")
	if got := m.switched(); got != "[off on]" {
		t.Errorf("the machine was switched %s", got)
	}
	got := next.Read(t.Context(), []string{"h1", "h2"})
	if got["h1"].State != energy.On || got["h2"].State != energy.Off {
		t.Errorf("got %+v", got)
	}
}

func TestABrokerThatIsGoneBetweenOrderAndAnswer(t *testing.T) {
	t.Parallel()
	broker := labtest.StartRabbitMQ(t)
	transport := rabbit(t, broker.URL())
	f := listenForLong(t, transport, "controller", time.Second)
	m := &machine{state: energy.On, gate: make(chan struct{})}
	a, _ := remote(t, rabbit(t, broker.URL()), "one", stateFile(t), map[string]power.Machine{"h1": m})
	within(t, "the fleet knows the agent", func() bool {
		announce(t, a)
		hosts, _ := f.Access()
		return len(hosts) == 1
	})
	o := numbered(1, "h1", energy.Off)
	o.Deadline = at(600)
	becomes(t, give(t, f, o), energy.OrderAccepted, "")
	broker.AwaitQuorumQueues()
	broker.Kill()
	within(t, "the loss is noticed", func() bool { return !transport.Status().Connected })
	if _, err := f.Order(t.Context(), o); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a broker: %v", err)
	}
	close(m.gate)
	broker.Start()
	within(t, "the answer comes after all", func() bool {
		got, err := f.Order(t.Context(), o)
		return err == nil && got.Progress == energy.OrderDone
	})
	if got := m.switched(); got != "[off]" {
		t.Errorf("the machine was switched %s", got)
	}
}
