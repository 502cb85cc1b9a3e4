// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// heard is what a listener knows of the live reservations, from what it was told alone.
type heard struct {
	mu       sync.Mutex
	live     map[string]int64 // versions
	followed span.Instant
	wrong    []string
}

func listening(s *scene) *heard {
	l := &heard{live: make(map[string]int64)}
	s.bookings.Listen(l.learn)
	return l
}

func (l *heard) learn(news booking.Learned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := ""
	var before int64
	if r := news.Before; r != nil {
		id, before = r.ID, r.Version
	}
	if r := news.After; r != nil {
		id = r.ID
	}
	if l.live[id] != before || news.After != nil && news.After.Version <= before {
		l.wrong = append(l.wrong, fmt.Sprintf("%s: the listener knows version %d, and the news start from %d", id, l.live[id], before))
	}
	if news.Followed < l.followed {
		l.wrong = append(l.wrong, fmt.Sprintf("it has followed until %v, after %v", news.Followed, l.followed))
	}
	l.followed = news.Followed
	if delete(l.live, id); news.After != nil && news.After.Status.Live() {
		l.live[id] = news.After.Version
	}
}

func versionsOf(list []reservation.Reservation) map[string]int64 {
	versions := make(map[string]int64)
	for _, r := range list {
		versions[r.ID] = r.Version
	}
	return versions
}

// The listener of each replica knows what the replica knows, whatever fails, and all replicas have the
// same fingerprint if and only if they have the same reservations.
func TestAListenerIsToldOfEveryChange(t *testing.T) {
	for name, records := range map[string]func(*booking.Options){
		"steady":                    unsteady(0),
		"failing":                   unsteady(3),
		"storing in spite of error": func(o *booking.Options) { o.Records = &liars{Records: o.Records, every: 5} },
	} {
		t.Run(name, func(t *testing.T) {
			all := replicas(t, 3, named("a", "b", "c"), records)
			var listeners []*heard
			for _, s := range all {
				listeners = append(listeners, listening(s))
			}
			empty := all[0].bookings.Fingerprint()
			var clients sync.WaitGroup
			for worker := range uint64(6) {
				clients.Go(func() {
					chance := rand.New(rand.NewPCG(7, worker))
					for range 40 {
						all[worker%3].actAtRandom(t, chance)
					}
				})
			}
			clients.Wait()
			agree(t, all)
			for i, s := range all {
				live, mark := s.bookings.LiveMarked(span.Always)
				if diff := cmp.Diff(versionsOf(live), listeners[i].live); diff != "" || len(listeners[i].wrong) > 0 {
					t.Errorf("replica %d (-live +told):\n%s\n%v", i, diff, listeners[i].wrong)
				}
				if first := all[0].bookings.Fingerprint(); mark != first || mark == empty != (len(live) == 0) {
					t.Errorf("replica %d has the fingerprint %x with %d reservations, the first one %x, and none is %x", i, mark, len(live), first, empty)
				}
			}
		})
	}
}
