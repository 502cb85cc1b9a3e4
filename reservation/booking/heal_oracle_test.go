// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// The test draws bookings, changes and failures, and compares each healing with the state
// before it.
func TestHealingKeepsEveryPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, drawHosts(t), limited(drawLimits(t)))
		for range rapid.IntRange(1, 12).Draw(t, "bookings") {
			if _, err := s.bookings.Book(t.Context(), projects[0], drawRequest(t, s.clock()), nil); err != nil {
				expectKinds(t, err, fault.Invalid)
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s.passTo(t, s.clock()+span.Instant(drawTicks(t, 0, 8, "later")))
			for i := range s.hosts {
				drawState(t, &s.hosts[i])
			}
			s.observe(t)
			s.healAtRandom(t)
			if r, ok := drawLive(t, s); ok {
				if _, err := s.bookings.Change(t.Context(), booking.Caller{Admin: true}, r.ID, drawChange(t, r)); err != nil {
					expectKinds(t, err, fault.Invalid, fault.Conflict)
				}
			}
			s.check(t)
		}
	})
}

func (s *scene) healAtRandom(t *rapid.T) {
	bad := make(map[string]bool)
	for i := range s.hosts {
		bad[s.hosts[i].Name] = rapid.IntRange(0, 2).Draw(t, "failed") == 0
	}
	failed := func(host string) (string, bool) { return down, bad[host] }
	before, ok := drawLive(t, s)
	if !ok {
		return
	}
	r, changed, err := s.bookings.Heal(t.Context(), before.ID, failed)
	if err != nil {
		t.Fatalf("heal: %v", err)
	}
	s.check(t)
	if _, again, err := s.bookings.Heal(t.Context(), before.ID, failed); again || err != nil {
		t.Fatalf("the second healing changes the reservation: %v", err)
	}
	if !changed {
		r = before
	}
	s.checkHealed(t, before, r, bad)
}

// checkHealed checks a healed reservation: claims on healthy hosts have not moved; a new host
// is healthy and awake or bootable; and what is missing is reported and has no replacement.
func (s *scene) checkHealed(t *rapid.T, before, r reservation.Reservation, bad map[string]bool) {
	t.Helper()
	from := max(r.Span.Start, s.clock())
	missing := 0
	for i := range s.hosts {
		h := &s.hosts[i]
		was, is := count(before, h.Name, from), count(r, h.Name, from)
		switch {
		case bad[h.Name] && is > was:
			t.Fatalf("%s gained %s, which has failed", r.ID, h.Name)
		case bad[h.Name]:
			missing += is
		case is < was:
			t.Fatalf("%s lost %d on %s, which is healthy", r.ID, was-is, h.Name)
		case is > was && (!h.Reservable || h.AwakeAt(s.clock()) == span.Forever || !meaningOf(r.HostProperties)(h, r.Span.Start > s.clock())):
			t.Fatalf("%s gained %+v", r.ID, h)
		}
	}
	if from < r.Span.End && (missing > 0) != (r.Degraded != "") {
		t.Fatalf("%s lacks %d, but its reason is %q", r.ID, missing, r.Degraded)
	}
	if missing == 0 || r.Kind != reservation.Hosts {
		return
	}
	rest := span.Span{Start: from, End: r.Span.End}
	for i := range s.hosts {
		h := &s.hosts[i]
		good := h.Reservable && !bad[h.Name] && h.AwakeAt(s.clock()) != span.Forever && meaningOf(r.HostProperties)(h, r.Span.Start > s.clock())
		if good && !rest.Empty() && len(heldSpans(s.live(t), h.Name, rest)) == 0 {
			t.Fatalf("%s lacks %d, but %s is free", r.ID, missing, h.Name)
		}
	}
}

// Nine goroutines at once heal what owners book, change, cancel and use.
func TestPromisesAreKeptWhileReplicasHealInACrowd(t *testing.T) {
	for name, records := range map[string]func(*booking.Options){
		"steady":                    unsteady(0),
		"failing":                   unsteady(3),
		"storing in spite of error": func(o *booking.Options) { o.Records = &liars{Records: o.Records, every: 5} },
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				all := replicas(t, 3, named("a", "b", "c", "d"), records)
				var crowd sync.WaitGroup
				for worker := range uint64(9) {
					crowd.Go(func() {
						s, chance := all[worker%3], rand.New(rand.NewPCG(seed, worker))
						for range 60 {
							s.actAtRandom(t, chance)
							for _, r := range s.bookings.Live(span.Span{Start: 0, End: span.Forever}) {
								if _, _, err := s.bookings.Heal(t.Context(), r.ID, failing(string(rune('a'+chance.IntN(4))))); err != nil {
									expectKinds(t, err, fault.Unavailable)
								}
							}
						}
					})
				}
				crowd.Wait()
				agree(t, all)
			})
		}
	}
}
