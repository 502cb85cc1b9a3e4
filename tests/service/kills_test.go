// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// underKills lets six clients work at two replicas in each of eight rounds, and kills one replica when done has grown by a
// drawn number. check reads what is stored at that moment, and when all clients have ended their work.
func underKills(t *testing.T, r *chaos.Replicas, done func() int64, work func(ctx context.Context, i int, random *rand.Rand), check func(quiet bool)) {
	t.Helper()
	for round := range uint64(8) {
		ctx, stop := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		for i := range 6 {
			random := rand.New(rand.NewPCG(round, uint64(i)))
			clients.Go(func() {
				for ctx.Err() == nil {
					work(ctx, i, random)
				}
			})
		}
		drawn := rand.New(rand.NewPCG(round, 6))
		victim, enough := drawn.IntN(2), done()+5+drawn.Int64N(20)
		built.Eventually(t, "the clients get nowhere", func() bool { return done() >= enough })
		r.Kill(victim)
		check(false)
		r.Start(victim)
		stop()
		clients.Wait()
		check(true)
	}
}

// retried books at two replicas with Keystone, each request with its own idempotency key, and sends it again until it has a certain
// answer, whatever is killed.
type retried struct {
	t       *testing.T
	r       *chaos.Replicas
	token   func(context.Context) (string, error)
	checker *chaos.Checker
	sent    atomic.Int64 // requests
	again   atomic.Int64 // those among them that had got no answer

	mu     sync.Mutex
	booked map[string]acknowledged // by key
}

// acknowledged is a request with its answer.
type acknowledged struct {
	asked  v1.ReservationRequest
	answer v1.Reservation
}

// startRetried starts two replicas on one MariaDB. prepare has an almanacd on the same database, before.
func startRetried(t *testing.T, prepare func(g *built.Guarded), settings ...string) *retried {
	t.Helper()
	g := built.StartGuarded(t, append(unhurried(), settings...)...)
	prepare(g)
	token := g.Token(labtest.Demo)
	g.Stop(t)
	connection, _ := strings.CutPrefix(g.Settings[0], "OS_DATABASE__CONNECTION=")
	return &retried{
		t: t, r: chaos.StartReplicas(t, g.Settings, g.Settings), booked: make(map[string]acknowledged),
		token:   func(context.Context) (string, error) { return token, nil },
		checker: chaos.NewChecker(t, "mysql", labtest.DSN(t, connection)),
	}
}

// book sends a request to the i-th replica, and then to the next one, until it is booked or refused.
func (b *retried) book(i int, request v1.ReservationRequest) {
	key := fmt.Sprintf("%s %d", request.Name, b.sent.Add(1))
	for n := i; ; n++ {
		answer, err := b.r.ClientWith(b.token, n).CreateReservation(b.t.Context(), request, client.CreateOptions{IdempotencyKey: key})
		switch {
		case err == nil:
			b.mu.Lock()
			defer b.mu.Unlock()
			b.booked[key] = acknowledged{request, answer}
			return
		case refused(err):
			return
		case !busy(err) && !gone(err):
			b.t.Errorf("unexpected answer: %v", err)
			return
		}
		b.again.Add(1)
	}
}

// nothingLostOrDoubled compares what is stored with the answers, once there is no request without one.
func (b *retried) nothingLostOrDoubled() {
	b.t.Helper()
	stored := make(map[string][3]int64)
	b.checker.Each("SELECT id, start_at, end_at, quantity FROM reservations WHERE status = 'pending'", func(rows *sql.Rows) error {
		var id string
		var is [3]int64
		err := rows.Scan(&id, &is[0], &is[1], &is[2])
		stored[id] = is
		return err
	})
	for key, its := range b.booked {
		a := its.answer
		if is, told := stored[a.ID], [3]int64{a.Start.Unix(), a.End.Unix(), int64(a.Quantity)}; is != told {
			b.t.Errorf("%s, reservation %s, was acknowledged as %v, and is %v", key, a.ID, told, is)
		}
	}
	if len(stored) != len(b.booked) {
		b.t.Errorf("%d bookings are acknowledged, %d are stored", len(b.booked), len(stored))
	}
}

// sentOnceMore sends each request again that was booked: it is answered with the same reservation, and makes no other.
func (b *retried) sentOnceMore() {
	b.t.Helper()
	i := 0
	for key, its := range b.booked {
		i++
		again, err := b.r.ClientWith(b.token, i).CreateReservation(b.t.Context(), its.asked, client.CreateOptions{IdempotencyKey: key})
		if err != nil || again.ID != its.answer.ID {
			b.t.Errorf("%s has made %s, and is answered later with %s, %v", key, its.answer.ID, again.ID, err)
		}
	}
	b.nothingLostOrDoubled()
	b.t.Logf("%d requests, %d sent again, %d bookings", b.sent.Load(), b.again.Load(), len(b.booked))
	if b.again.Load() == 0 {
		b.t.Error("no kill met a request")
	}
}
