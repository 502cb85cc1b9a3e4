// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/mysqlproxy"
)

func TestOfFiftyBookingsForTheLastHostAtThreeReplicasOneWins(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	lastHost(t, chaos.StartReplicas(t, settings, settings, settings), 9, "free_hosts")
}

func TestOfFiftyBookingsForTheLastHostOfALimitAtThreeReplicasOneWins(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection, "OS_LIMITS__MAX_HOSTS_PER_PROJECT=6")
	lastHost(t, chaos.StartReplicas(t, settings, settings, settings), 5, "max_hosts_per_project")
}

// unhurried returns settings with which a slow service still answers.
func unhurried() []string {
	return []string{"OS_DATABASE__TRANSACTION_TIMEOUT=25", "OS_API__REQUEST_TIMEOUT=2m"}
}

// lastHost sends fifty bookings for one host to all replicas at once, ten times, while only one
// host is left. One wins; the others are refused by the constraint.
func lastHost(t *testing.T, r *chaos.Replicas, taken int, constraint string) {
	t.Helper()
	for round := range 10 {
		begin, duration, quantity := time.Now().Add(time.Duration(1+round)*time.Hour).Truncate(time.Second), v1.Duration(600), 1
		if _, err := r.Client(0).CreateReservation(t.Context(), v1.ReservationRequest{Name: "r", StartTime: &begin, Duration: &duration, Quantity: &taken}, client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		var won atomic.Int64
		for i := range 50 {
			to := r.Client(i)
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
//
//make:test-galera
func TestPromisesSurviveKillsRestartsAndFailingCommits(t *testing.T) {
	database, broker := labtest.StartMariaDB(t), labtest.StartRabbitMQ(t)
	direct := database.URL("almanac")
	built.Migrate(t, direct)
	at, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	proxy := mysqlproxy.Start(t, at.Host)
	settings := append(chaos.Notifying(broker),
		"OS_DATABASE__CONNECTION="+strings.Replace(direct, at.Host, proxy.Addr(), 1),
		"OS_DATABASE__TRANSACTION_TIMEOUT=8",
		"OS_LIMITS__MAX_HOSTS_PER_PROJECT=7")
	told := chaos.Listen(t, broker.URL())
	r := chaos.StartReplicas(t, settings, settings, settings)
	chance := rand.New(rand.NewPCG(3, 3))
	var history chaos.Chronicle
	users := chaos.Run(t, r, func(ctx context.Context) {
		for n := 1; chaos.Pass(ctx, 3*time.Second); n++ {
			proxy.FailCommits(mysqlproxy.Kind(n%3), 5+chance.IntN(10))
			victim := chance.IntN(3)
			switch n % 7 {
			case 3:
				history.Note("kill -9 of an almanacd and MariaDB")
				r.Kill(victim)
				database.Kill()
				chaos.Pass(ctx, time.Second)
				database.Start()
			case 5:
				history.Note("kill -9 of an almanacd and RabbitMQ")
				r.Kill(victim)
				broker.Kill()
				chaos.Pass(ctx, time.Second)
				broker.Start()
			default:
				history.Note("kill -9 of an almanacd")
				r.Kill(victim)
			}
			r.Start(victim)
		}
	})
	proxy.FailCommits(mysqlproxy.Deadlock, 0)
	c := chaos.NewChecker(t, "mysql", database.DSN("almanac"))
	chaos.PromisesKept(t, c, users, &history, 0, told)
	t.Logf("the proxy failed %d commits", proxy.Failed())
	c.CheckPeaks(7)
}
