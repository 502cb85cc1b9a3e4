// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A nova-scheduler and an almanacd share a virtual host on which nova-scheduler was first.
//
//make:test-cloud
func TestAlmanacSharesTheTopicWithANovaSchedulerOfAnyQueues(t *testing.T) {
	labtest.Long(t)
	cloud := labtest.OpenStack(t)
	for option, kind := range map[string]string{"amqp_durable_queues": "classic", "rabbit_quorum_queue": "quorum"} {
		t.Run(option, func(t *testing.T) {
			// The queues of the lab's Nova may be others.
			options := []string{"oslo_messaging_rabbit." + option + "=true"}
			for _, other := range []string{"amqp_durable_queues", "rabbit_quorum_queue", "rabbit_transient_quorum_queue", "rabbit_stream_fanout", "use_queue_manager"} {
				if other != option {
					options = append(options, "oslo_messaging_rabbit."+other+"=false")
				}
			}
			address := labtest.SchedulerBehind(t, options...)
			plain, _, _ := strings.Cut(address, "?")
			settings := append(built.BesideNova(t, cloud, built.Replace, ""), "OS_NOVA__TRANSPORT_URL="+plain)
			own := "OS_OSLO_MESSAGING_RABBIT__" + strings.ToUpper(option) + "=true"

			endsForQueues(t, settings)
			if kind == "quorum" {
				endsForQueues(t, append(slices.Clone(settings), "OS_OSLO_MESSAGING_RABBIT__AMQP_DURABLE_QUEUES=true"))
			}
			before := labtest.BrokerLog(t)
			built.StartOn(t, built.TenHosts, append(settings, own)...)
			servedBy(t, address, kind)
			for range 4 { // two for each
				hostFor(t, cloud, address)
			}
			nothingRefused(t, before)
		})
	}
}

// nothingRefused checks that RabbitMQ has refused no declaration since its log was log.
func nothingRefused(t *testing.T, log string) {
	t.Helper()
	if said := strings.TrimPrefix(labtest.BrokerLog(t), log); strings.Contains(said, "precondition_failed") {
		t.Errorf("RabbitMQ has refused a declaration:\n%s", said)
	}
}

// endsForQueues checks that almanacd ends if its configuration differs from Nova's queues, and
// names the queue that it could not declare.
func endsForQueues(t *testing.T, settings []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), built.Patience)
	defer cancel()
	out, err := built.Command(ctx, built.NewFolder(t, built.TenHosts), settings...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("almanacd continues although its queues differ from Nova's:\n%s", out)
	}
	want := regexp.MustCompile(`almanacd: .*the (exchange nova|queue scheduler) exists with other arguments; set amqp_durable_queues, rabbit_quorum_queue and similar options as the other services do`)
	if !want.Match(out) {
		t.Errorf("almanacd ends with\n%s\nwant a sentence that names the queue", out)
	}
}

// servedBy waits until the topic has two consumers and a queue that outlives the broker.
func servedBy(t *testing.T, transportURL, kind string) {
	t.Helper()
	var found labtest.Queue
	built.Eventually(t, "two consumers of the topic", func() bool {
		all := labtest.Queues(t, transportURL)
		if i := slices.IndexFunc(all, func(q labtest.Queue) bool { return q.Name == "scheduler" }); i >= 0 {
			found = all[i]
		}
		return found.Consumers == 2
	})
	if found.Type != kind || !found.Durable {
		t.Errorf("the topic's queue is %+v, want a durable one of type %s", found, kind)
	}
}

// hostFor requests a host on the topic, as nova-conductor does, and releases it.
func hostFor(t *testing.T, cloud labtest.LabCloud, transportURL string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), built.Patience)
	defer cancel()
	id := uuid.NewString()
	answer, err := labtest.NewConductor(t, transportURL).SelectDestinations(ctx, labtest.RequestSpec{MemoryMB: 64}, []string{id}, true, true)
	if err != nil || len(answer) != 1 || len(answer[0]) == 0 {
		t.Errorf("a request for a host gets %v, %v", answer, err)
	}
	cloud.REST(t, labtest.Admin).Do("DELETE", "placement", "/allocations/"+id, nil, nil)
}

// Debian's Nova does not have this option yet.
func TestTransientQuorumQueuesAreDeclaredAsNewerNovaDoes(t *testing.T) {
	cloud, plain := labtest.OpenStack(t), labtest.RabbitMQ(t)
	built.StartOn(t, built.TenHosts, append(built.BesideNova(t, cloud, built.Replace, ""), "OS_NOVA__TRANSPORT_URL="+plain,
		"OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true", "OS_OSLO_MESSAGING_RABBIT__RABBIT_TRANSIENT_QUORUM_QUEUE=true",
		"OS_OSLO_MESSAGING_RABBIT__RABBIT_TRANSIENT_QUEUES_TTL=600", "OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_DELIVERY_LIMIT=7")...)
	address := plain + "?rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true&rabbit_transient_queues_ttl=600&rabbit_quorum_delivery_limit=7"
	labtest.NewConductor(t, address).AwaitScheduler()
	hostFor(t, cloud, address)

	host := plain[strings.LastIndex(plain, "/")+1:]
	said := labtest.Rabbitmqctl(t, "list_queues", "-q", "-p", host, "--formatter", "json", "name", "type", "durable", "auto_delete", "arguments")
	var list []struct {
		Name, Type string
		Durable    bool
		AutoDelete bool    `json:"auto_delete"`
		Arguments  [][]any // each of name, AMQP type and value
	}
	if err := json.Unmarshal([]byte(said), &list); err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	got, unique := map[string]string{}, regexp.MustCompile(`_[0-9a-f]{32}$|\.almanac\..*$`)
	for _, q := range list {
		words := []string{q.Type, fmt.Sprint("durable=", q.Durable), fmt.Sprint("auto_delete=", q.AutoDelete)}
		for _, a := range q.Arguments {
			words = append(words, fmt.Sprintf("%v=%v", a[0], a[2]))
		}
		slices.Sort(words)
		got[unique.ReplaceAllString(q.Name, "*")] = strings.Join(words, " ")
	}
	const stays = "auto_delete=false durable=true quorum x-delivery-limit=7 x-queue-type=quorum"
	const expires = "auto_delete=false durable=true quorum x-delivery-limit=7 x-expires=600000 x-queue-type=quorum"
	want := map[string]string{"scheduler": stays, "scheduler*": stays, "scheduler_fanout*": expires, "reply*": expires}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

// The test needs a lab whose Nova has durable or quorum queues.
//
//make:test-queues
func TestNothingThatWaitsIsLostInQueuesThatOutliveTheBroker(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_QUEUES") == "" {
		t.Skip("make test-queues runs it")
	}
	if !strings.Contains(labtest.NovaTransport(t), "=true") {
		t.Fatal("the queues of the lab's Nova do not outlive the broker: NOVA_OPTIONS=oslo_messaging_rabbit.amqp_durable_queues=true tests/openstack/lab up")
	}
	for _, way := range []string{built.Interpose, built.Replace} {
		t.Run(way, func(t *testing.T) {
			before := labtest.BrokerLog(t)
			b := placing(t, way)
			b.pool("cmp-*")
			reserved := b.cloud.Hosts(t)[:2]
			r := b.reserve(b.demo, v1.ReservationRequest{
				Name: "render", HostProperties: among(reserved...), Quantity: new(2), Duration: new(v1.Duration(3600)),
			})
			b.becomes(r.ID, "active")
			b.followsZones() // by casts alone
			b.outlivesTheBroker(r, reserved)
			b.usedByOwner(r, reserved)
			nothingRefused(t, before)
		})
	}
}

// outlivesTheBroker checks that requests wait without a scheduler while the broker restarts, and
// get their answers afterwards. Then the broker restarts once more while almanacd runs with
// notifications.
func (b *beside) outlivesTheBroker(r v1.Reservation, reserved []string) {
	b.t.Helper()
	hint, free := map[string]any{"reservation": r.ID}, others(b.cloud.Hosts(b.t), reserved)
	b.Stop(b.t)
	inside := b.wishing(b.demo, wish{name: "waits with the hint", count: 2, hints: hint})
	outside := b.wishing(b.demo2, wish{name: "waits", count: 2})
	two := func() bool {
		return slices.ContainsFunc(labtest.Queues(b.t, labtest.NovaTransport(b.t)), func(q labtest.Queue) bool {
			return q.Name == "scheduler" && q.Messages == 2
		})
	}
	b.await("both requests wait", two)
	b.restartBroker()
	b.await("both requests wait still", two)
	b.settings = append(b.settings, "OS_NOVA__NOTIFICATIONS=true", "OS_INVENTORY__REFRESH_INTERVAL=1")
	b.start()
	b.runOn(reserved, b.settled(inside...)...)
	b.runOn(free, b.settled(outside...)...)
	b.deletesAll()
	b.restartBroker()
}

// restartBroker restarts RabbitMQ and returns when the nova-computes have reported through it.
func (b *beside) restartBroker() {
	b.t.Helper()
	labtest.StopService(b.t, "rabbitmq")
	labtest.StartService(b.t, "rabbitmq")
	b.await("the nova-computes have reported", func() bool {
		var found struct{ Services []struct{ State string } }
		b.admin.Must("GET", "compute", "/os-services?binary=nova-compute", nil, &found)
		return !slices.ContainsFunc(found.Services, func(s struct{ State string }) bool { return s.State != "up" })
	})
}
