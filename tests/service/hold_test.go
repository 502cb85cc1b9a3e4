// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// pair is two replicas on one MariaDB, with a client of each for a user of Keystone.
type pair struct {
	services [2]*built.Service
	clients  [2]*client.Client
}

func startPair(t *testing.T, settings ...string) pair {
	t.Helper()
	g := built.StartGuarded(t, append(unhurried(), settings...)...)
	p := pair{services: [2]*built.Service{g.Service, built.StartOn(t, built.TenHosts, g.Settings...)}}
	token := g.Token(labtest.Demo)
	for i, s := range p.services {
		c, err := client.New(client.Options{URL: s.URL, Token: func(context.Context) (string, error) { return token, nil }})
		if err != nil {
			t.Fatal(err)
		}
		p.clients[i] = c
	}
	return p
}

// held asks for one host in a day, held for that many seconds.
func held(name string, seconds int64) v1.ReservationRequest {
	start, duration, hold := time.Now().Add(24*time.Hour), v1.Duration(3600), v1.Duration(seconds)
	return v1.ReservationRequest{Name: name, StartTime: &start, Duration: &duration, Hold: &hold}
}

var confirmation = v1.ReservationChange{Hold: new(v1.Duration(0))}

// Twenty requests at two replicas want the last hold that the project may have.
func TestTheLastHoldOfAProjectGoesToOneOfTwoReplicas(t *testing.T) {
	p := startPair(t, "OS_LIMITS__MAX_HOLDS_PER_PROJECT=2")
	for round := range 3 {
		first, err := p.clients[0].CreateReservation(t.Context(), held("first", 900), client.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		var won atomic.Pointer[v1.Reservation]
		for i := range 20 {
			clients.Go(func() {
				made, err := p.clients[i%2].CreateReservation(t.Context(), held(fmt.Sprint("last ", i), 900), client.CreateOptions{})
				if err == nil && won.Swap(&made) != nil {
					t.Errorf("round %d: two requests got the last hold", round)
				}
				if answer, ok := errors.AsType[*client.Error](err); err != nil && (!ok || answer.Refusal == nil || answer.Refusal.Constraint != "max_holds_per_project") {
					t.Errorf("the loser got %v, want a refusal", err)
				}
			})
		}
		clients.Wait()
		if won.Load() == nil {
			t.Fatalf("round %d: nobody got the last hold", round)
		}
		for i, id := range []string{first.ID, won.Load().ID} { // at the other replica, too
			if _, err := p.clients[i].ChangeReservation(t.Context(), id, confirmation); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Both replicas are asked to confirm while each of them also ends the holds whose time has come: a confirmation that was
// acknowledged stays, and without one the reservation expires. The hold of a replica that is killed ends at the other one.
func TestAHoldIsConfirmedOrExpiresWhateverReplicaIsFirst(t *testing.T) {
	p := startPair(t, "OS_LIMITS__MAX_HOLDS_PER_PROJECT=10")
	const many = 8
	var all sync.WaitGroup
	var reservations [many]v1.Reservation
	var confirmed [many][2]error
	for i := range many {
		all.Go(func() {
			r, err := p.clients[i%2].CreateReservation(t.Context(), held(fmt.Sprint("hold ", i), 10), client.CreateOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			reservations[i] = r
			early := time.Duration(i-many/2) * 40 * time.Millisecond
			chaos.Pass(t.Context(), time.Until(r.HeldUntil.Add(early)))
			for n, c := range p.clients {
				all.Go(func() { _, confirmed[i][n] = c.ChangeReservation(t.Context(), r.ID, confirmation) })
			}
		})
	}
	all.Wait()
	kept := 0
	for i, r := range reservations {
		if confirmed[i][0] == nil || confirmed[i][1] == nil {
			kept++
		}
		p.settled(t, r, confirmed[i][0] == nil || confirmed[i][1] == nil, 0, 1)
	}
	t.Logf("%d of %d were confirmed in time", kept, many)

	r, err := p.clients[0].CreateReservation(t.Context(), held("killed", 10), client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.services[0].Kill()
	p.settled(t, r, false, 1)
}

// settled waits until each of the replicas has the outcome of a hold, and checks it.
func (p pair) settled(t *testing.T, r v1.Reservation, confirmed bool, replicas ...int) {
	t.Helper()
	want, last := "canceled", "expire"
	if confirmed {
		want, last = "pending", "changed"
	}
	for _, i := range replicas {
		var now v1.Reservation
		built.Eventually(t, fmt.Sprintf("%s, confirmed: %v, is still held", r.Name, confirmed), func() bool {
			var err error
			if now, err = p.clients[i].GetReservation(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
			return now.HeldUntil == nil
		})
		var happened v1.Event
		for _, e := range now.Events {
			if e.DoneAt != nil {
				happened = e
			}
		}
		if now.Status != want || happened.Type != last || !confirmed && happened.DoneAt.Before(*r.HeldUntil) {
			t.Errorf("replica %d: %s, confirmed: %v, held until %v, is %s, and its last event is %+v", i, r.Name, confirmed, r.HeldUntil, now.Status, happened)
		}
		_, err := p.clients[i].ChangeReservation(t.Context(), r.ID, confirmation)
		if answer, ok := errors.AsType[*client.Error](err); confirmed != (err == nil) || err != nil && (!ok || answer.Status != http.StatusConflict) {
			t.Errorf("replica %d: another confirmation of %s, confirmed: %v: %v", i, r.Name, confirmed, err)
		}
	}
}
