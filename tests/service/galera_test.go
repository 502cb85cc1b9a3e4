// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/mysqlproxy"
)

// galera is three almanacd, each with its own node of a Galera cluster behind its own proxy.
type galera struct {
	*chaos.Replicas
	cluster *labtest.Galera
	proxies []*mysqlproxy.Proxy
	history chaos.Chronicle
	posted  atomic.Int64 // bookings that ask has sent
}

const galeraNodes = 3

func startGalera(t *testing.T, cluster *labtest.Galera, settings ...string) *galera {
	t.Helper()
	g := &galera{cluster: cluster}
	built.Migrate(t, g.cluster.URL(0, "almanac"))
	var each [][]string
	for node := range galeraNodes {
		direct := g.cluster.URL(node, "almanac")
		at, err := url.Parse(direct)
		if err != nil {
			t.Fatal(err)
		}
		proxy := mysqlproxy.Start(t, at.Host)
		g.proxies = append(g.proxies, proxy)
		connection := "OS_DATABASE__CONNECTION=" + strings.Replace(direct, at.Host, proxy.Addr(), 1)
		each = append(each, append([]string{connection}, settings...))
	}
	g.Replicas = chaos.StartReplicas(t, each...)
	return g
}

//make:test-galera
func TestOfFiftyBookingsForTheLastHostAtThreeGaleraNodesOneWins(t *testing.T) {
	lastHost(t, startGalera(t, labtest.StartGalera(t, galeraNodes), unhurried()...).Replicas, 9, "free_hosts")
}

// The service keeps its promises if every replica has its own database node, and nodes fail and
// return.
//
//make:test-galera
func TestPromisesSurviveOnGalera(t *testing.T) {
	cluster, broker := labtest.StartGalera(t, galeraNodes), labtest.StartRabbitMQ(t)
	g := startGalera(t, cluster, append(chaos.Notifying(broker), "OS_LIMITS__MAX_HOSTS_PER_PROJECT=7")...)
	told := chaos.Listen(t, broker.URL())
	users := chaos.Run(t, g.Replicas, func(ctx context.Context) {
		balanced, stop := context.WithCancel(ctx)
		defer stop()
		var balancer sync.WaitGroup
		balancer.Go(func() { g.Balance(balanced) })
		g.disturb(ctx, broker)
		stop()
		balancer.Wait()
	})
	failed := 0
	for _, proxy := range g.proxies {
		proxy.FailCommits(mysqlproxy.Deadlock, 0)
		failed += proxy.Failed()
	}
	c := chaos.NewChecker(t, "mysql", g.cluster.DSN(0, "almanac"))
	chaos.PromisesKept(t, c, users, &g.history, int(g.posted.Load()), told)
	t.Logf("the proxies failed %d commits", failed)
	c.CheckPeaks(7)
	for i := range galeraNodes {
		g.At(i).Stop(t)
	}
	g.agree()
}

// disturb kills and stops one part after the other until ctx ends, and once destroys the majority.
// Between two disturbances all nodes are synced.
func (g *galera) disturb(ctx context.Context, broker *labtest.Broker) {
	for n := 1; chaos.Pass(ctx, 3*time.Second); n++ {
		for _, proxy := range g.proxies {
			proxy.FailCommits(mysqlproxy.Kind(n%3), 5+rand.IntN(10))
		}
		switch {
		case n == 6:
			g.loseMajority()
		case n%5 == 2:
			g.loseNode(ctx, "kill -9 of a Galera node", g.cluster.Kill)
		case n%5 == 4:
			g.loseNode(ctx, "stop of a Galera node", g.cluster.Stop)
		case n%5 == 0:
			g.history.Note("kill -9 of RabbitMQ")
			broker.Kill()
			chaos.Pass(ctx, time.Second)
			broker.Start()
		default:
			g.loseReplica(ctx, rand.IntN(galeraNodes))
		}
	}
}

func (g *galera) loseReplica(ctx context.Context, i int) {
	g.history.Note("kill -9 of an almanacd")
	g.Kill(i)
	chaos.Pass(ctx, time.Second)
	g.Start(i)
}

// loseNode ends a node with end. The others continue without help, and one of their almanacds is
// killed meanwhile.
func (g *galera) loseNode(ctx context.Context, how string, end func(node int)) {
	node := rand.IntN(galeraNodes)
	g.history.Note(how)
	end(node)
	g.cluster.Wait(galeraNodes - 1)
	chaos.Pass(ctx, 5*time.Second)
	g.loseReplica(ctx, (node+1)%galeraNodes)
	g.history.Note("return of a Galera node")
	g.cluster.Start(node)
	g.cluster.Wait(galeraNodes)
}

// answerWithin bounds an answer while there is no database: [api] request_timeout, and the time
// that a busy machine adds.
const answerWithin = 30*time.Second + built.Patience

// loseMajority kills two nodes. Until they are back, no replica promises anything; and from the
// moment when the loss is noticed, none answers a question. After that, all continue.
func (g *galera) loseMajority() {
	g.T.Helper()
	survivor := rand.IntN(galeraNodes)
	g.history.Note("loss of the majority")
	lost := []int{(survivor + 1) % galeraNodes, (survivor + 2) % galeraNodes}
	for _, node := range lost {
		g.cluster.Kill(node)
	}
	var asking sync.WaitGroup
	for i := range galeraNodes {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			asking.Go(func() {
				begun := time.Now()
				status, text := g.ask(i, method)
				for status == http.StatusNotFound && time.Since(begun) < answerWithin { // the loss is not noticed yet
					status, text = g.ask(i, method)
				}
				if status != http.StatusServiceUnavailable {
					g.T.Errorf("%s at a replica without a majority returns %d: %s", method, status, text)
				}
				g.T.Logf("%s is 503 at replica %d after %v; node %d is left", method, i, time.Since(begun).Round(time.Millisecond), survivor)
			})
		}
	}
	asking.Wait()
	for i := range galeraNodes {
		if g.Healthy(g.T.Context(), g.At(i)) {
			g.T.Errorf("the health check of replica %d succeeds without a majority", i)
		}
	}
	begun := time.Now()
	for _, node := range lost {
		g.cluster.Start(node)
	}
	g.cluster.Wait(galeraNodes)
	g.T.Logf("all nodes are synced %v after two were started again", time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	for i := range galeraNodes {
		built.Eventually(g.T, fmt.Sprintf("replica %d does not book again", i), func() bool {
			status, _ := g.ask(i, http.MethodPost)
			return status == http.StatusCreated || status == http.StatusConflict
		})
	}
	g.T.Logf("all replicas book again %v after that", time.Since(begun).Round(time.Millisecond))
}

// ask sends one request to the i-th replica: a booking, or a read or cancellation of an unknown
// reservation.
func (g *galera) ask(i int, method string) (status int, text string) {
	ctx, cancel := context.WithTimeout(g.T.Context(), answerWithin)
	defer cancel()
	path, body := "/v1/reservations", `{"name": "galera", "duration": 1}`
	if method == http.MethodPost {
		g.posted.Add(1)
	} else {
		path, body = path+"/00000000-0000-4000-8000-000000000000", ""
	}
	request, err := http.NewRequestWithContext(ctx, method, g.At(i).URL+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(said)
}

// agree waits until all nodes hold the same data, after the last write.
func (g *galera) agree() {
	g.T.Helper()
	var sums [galeraNodes]string
	built.Eventually(g.T, "the nodes have different data", func() bool {
		for node := range galeraNodes {
			sums[node] = g.sums(node)
		}
		return sums[0] == sums[1] && sums[0] == sums[2]
	})
}

// sums returns a checksum of each table on a node.
func (g *galera) sums(node int) string {
	g.T.Helper()
	db, err := sql.Open("mysql", g.cluster.DSN(node, "almanac"))
	if err != nil {
		g.T.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(g.T.Context(), "CHECKSUM TABLE changes, claims, events, host_versions, idempotency_keys, leases, project_usage, reservations")
	if err != nil {
		g.T.Fatal(err)
	}
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var table string
		var sum sql.NullInt64
		if err := rows.Scan(&table, &sum); err != nil || !sum.Valid {
			g.T.Fatalf("check sum of %s: %v", table, err)
		}
		fmt.Fprintln(&all, table, sum.Int64)
	}
	if err := rows.Err(); err != nil {
		g.T.Fatal(err)
	}
	return all.String()
}
