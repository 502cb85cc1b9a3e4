// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/mysqlproxy"
)

// migrate updates the schema of the database of connection.
func migrate(t testing.TB, connection string) {
	t.Helper()
	migrateBy(t, filepath.Join(commands, "almanacd"), connection)
}

// migrateBy updates the schema to that of the version of program.
func migrateBy(t testing.TB, program, connection string) {
	t.Helper()
	sync := commandOf(t.Context(), program, newFolder(t, tenHosts), "OS_DATABASE__CONNECTION="+connection)
	sync.Args = append(sync.Args, "db", "sync")
	if out, err := sync.CombinedOutput(); err != nil {
		t.Fatalf("db sync: %v\n%s", err, out)
	}
}

func TestOfFiftyBookingsForTheLastHostAtThreeReplicasOneWins(t *testing.T) {
	connection := labtest.Database(t)
	migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	lastHost(t, startReplicas(t, settings, settings, settings), 9, "free_hosts")
}

func TestOfFiftyBookingsForTheLastHostOfALimitAtThreeReplicasOneWins(t *testing.T) {
	connection := labtest.Database(t)
	migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection, "OS_LIMITS__MAX_HOSTS_PER_PROJECT=6")
	lastHost(t, startReplicas(t, settings, settings, settings), 5, "max_hosts_per_project")
}

// unhurried returns settings with which a slow service still answers.
func unhurried() []string {
	return []string{"OS_DATABASE__TRANSACTION_TIMEOUT=25", "OS_API__REQUEST_TIMEOUT=2m"}
}

// lastHost sends fifty bookings for one host to all replicas at once, ten times, while only one
// host is left. One wins; the others are refused by the constraint.
func lastHost(t *testing.T, r *replicas, taken int, constraint string) {
	t.Helper()
	for round := range 10 {
		begin, duration, quantity := time.Now().Add(time.Duration(1+round)*time.Hour).Truncate(time.Second), v1.Duration(600), 1
		if _, err := r.client(0).CreateReservation(t.Context(), v1.ReservationRequest{Name: "r", StartTime: &begin, Duration: &duration, Quantity: &taken}, client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		var won atomic.Int64
		for i := range 50 {
			to := r.client(i)
			clients.Go(func() {
				_, err := to.CreateReservation(t.Context(), v1.ReservationRequest{Name: "r", StartTime: &begin, Duration: &duration, Quantity: &quantity}, client.CreateOptions{})
				if err == nil {
					won.Add(1)
				} else if answer, ok := errors.AsType[*client.Error](err); !ok || answer.Refusal == nil {
					t.Errorf("the loser got %v, want a refusal", err)
				} else if answer.Refusal.Constraint != constraint || answer.Refusal.LargestQuantity != 0 {
					t.Errorf("the refusal is %+v", answer.Refusal)
				}
			})
		}
		clients.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d requests got the last host, want 1", won.Load())
		}
	}
}

// This is the promise of the service: whatever is killed, no acknowledged change is lost, nothing
// is promised twice, and every event happens once.
func TestPromisesSurviveKillsRestartsAndFailingCommits(t *testing.T) {
	database, broker := labtest.StartMariaDB(t), labtest.StartRabbitMQ(t)
	direct := database.URL("almanac")
	migrate(t, direct)
	at, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	proxy := mysqlproxy.Start(t, at.Host)
	settings := append(notifying(broker),
		"OS_DATABASE__CONNECTION="+strings.Replace(direct, at.Host, proxy.Addr(), 1),
		"OS_DATABASE__TRANSACTION_TIMEOUT=8",
		"OS_LIMITS__MAX_HOSTS_PER_PROJECT=7")
	told := listen(t, broker.URL())
	r := startReplicas(t, settings, settings, settings)
	chance := rand.New(rand.NewPCG(3, 3))
	var history chronicle
	users := chaos(t, r, func(ctx context.Context) {
		for n := 1; pass(ctx, 3*time.Second); n++ {
			proxy.FailCommits(mysqlproxy.Kind(n%3), 5+chance.IntN(10))
			victim := chance.IntN(3)
			switch n % 7 {
			case 3:
				history.note("kill -9 of an almanacd and MariaDB")
				r.kill(victim)
				database.Kill()
				pass(ctx, time.Second)
				database.Start()
			case 5:
				history.note("kill -9 of an almanacd and RabbitMQ")
				r.kill(victim)
				broker.Kill()
				pass(ctx, time.Second)
				broker.Start()
			default:
				history.note("kill -9 of an almanacd")
				r.kill(victim)
			}
			r.start(victim)
		}
	})
	proxy.FailCommits(mysqlproxy.Deadlock, 0)
	c := newChecker(t, "mysql", database.DSN("almanac"))
	promisesKept(t, c, users, &history, 0, told)
	t.Logf("the proxy failed %d commits", proxy.Failed())
	c.checkPeaks(7)
}

// notifying returns the settings with which almanacd sends notifications through a broker that may be killed.
func notifying(broker *labtest.Broker) []string {
	return []string{
		"OS_DEFAULT__TRANSPORT_URL=" + broker.URL(),
		"OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2",
		"OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true",
	}
}

// told counts the notifications of reservations, by reservation and event type.
type told struct {
	mu     sync.Mutex
	events map[string]int
}

// everythingTold checks that there was a notification of every booking, cancellation, start and
// end.
func everythingTold(t *testing.T, c *checker, heard *told) {
	t.Helper()
	missing := func() (list []string) {
		heard.mu.Lock()
		defer heard.mu.Unlock()
		for id, r := range c.records {
			want := []string{"reservation.create"}
			if r.status == "ended" {
				want = append(want, "reservation.start", "reservation.end")
			}
			if r.status == "canceled" {
				want = append(want, "reservation.cancel")
			}
			for _, event := range want {
				if heard.events[id+" "+event] == 0 {
					list = append(list, id+" "+event)
				}
			}
		}
		return list
	}
	eventually(t, "notifications are missing", func() bool { return len(missing()) == 0 })
}

func (h *told) hear(eventType string, payload json.RawMessage) {
	var body struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(payload, &body) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events[body.ID+" "+eventType]++
}

// listen reads the notifications on the broker until the test ends.
func listen(t *testing.T, transportURL string) *told {
	t.Helper()
	at, err := oslo.ParseURL(transportURL)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(at, amqp.Options{Name: "listener", NewID: uuid.NewString, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	heard := &told{events: make(map[string]int)}
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
