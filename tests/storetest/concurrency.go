// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
)

const (
	workers = 8
	rounds  = 25
)

func testConcurrency(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("reading and writing loses no update", func(t *testing.T) { testCounting(t, open(t)) })
	t.Run("of updates to one version one wins", func(t *testing.T) { testOneWins(t, open(t)) })
	t.Run("a host is taken once", func(t *testing.T) { testOneHost(t, open(t)) })
	t.Run("an address is taken once", func(t *testing.T) { testOneAddress(t, open(t)) })
	t.Run("a project's limit holds", func(t *testing.T) { testLimitTogether(t, open(t)) })
	t.Run("the log has every commit", func(t *testing.T) { testWholeLog(t, open(t)) })
	t.Run("a key makes one reservation", func(t *testing.T) { testOneKey(t, open(t)) })
	t.Run("no reader sees half a change", func(t *testing.T) { testWholeChanges(t, open(t)) })
}

// testCounting makes workers, spread over the stores, raise one quantity. No raise may be lost.
func testCounting(t *testing.T, stores ...Subject) {
	r := booked("r")
	r.Quantity = 0
	mustCreate(t, stores[0], r)
	var wg sync.WaitGroup
	for worker := range workers {
		s := stores[worker%len(stores)]
		wg.Go(func() {
			for range rounds {
				if err := raise(t, s, "r"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r.Quantity, r.Version = workers*rounds, 1+workers*rounds
	wantStored(t, stores[0], r)
}

// raise adds one to the quantity, and tries again if another worker was faster.
func raise(t *testing.T, s Subject, id string) error {
	for {
		r, err := s.Get(t.Context(), id)
		if err != nil {
			return err
		}
		r.Quantity, r.Version = r.Quantity+1, r.Version+1
		if err := update(t, s, r); !errors.Is(err, reservation.ErrStale) {
			return err
		}
	}
}

// testOneWins makes workers, spread over the stores, update to the same version. Only one may
// succeed.
func testOneWins(t *testing.T, stores ...Subject) {
	mustCreate(t, stores[0], booked("r"))
	for version := int64(2); version <= rounds; version++ {
		var wg sync.WaitGroup
		var winners sync.Map
		for worker := range workers {
			mine := booked("r")
			mine.Name, mine.Version = fmt.Sprintf("of worker %d", worker), version
			mine.Claims[1].Host = mine.Name
			wg.Go(func() {
				err := update(t, stores[worker%len(stores)], mine)
				if err == nil {
					winners.Store(worker, mine)
				} else if !errors.Is(err, reservation.ErrStale) {
					t.Errorf("the loser got %v, want ErrStale", err)
				}
			})
		}
		wg.Wait()
		count := 0
		for _, winner := range winners.Range {
			count++
			wantStored(t, stores[0], winner.(reservation.Reservation))
		}
		if count != 1 {
			t.Fatalf("%d updates to version %d won, want one", count, version)
		}
	}
}

func testOneKey(t *testing.T, s Subject) {
	var wg sync.WaitGroup
	var made atomic.Int32
	for worker := range workers {
		wg.Go(func() {
			for round := range rounds {
				r := booked(fmt.Sprintf("%d-%d", worker, round))
				err := create(t, s, r, &reservation.Key{ProjectID: "demo", Key: fmt.Sprint(round), ReservationID: r.ID})
				if err == nil {
					made.Add(1)
				} else if !errors.Is(err, reservation.ErrKeyUsed) {
					t.Errorf("the later one got %v, want ErrKeyUsed", err)
				}
			}
		})
	}
	wg.Wait()
	list := mustList(t, s, reservation.Query{})
	if made.Load() != rounds || len(list) != rounds {
		t.Errorf("%d keys made %d reservations, and %d are stored", rounds, made.Load(), len(list))
	}
}

// testWholeChanges checks that readers never see a part of a change: the version of a reservation,
// which one writer changes, determines its whole state.
func testWholeChanges(t *testing.T, s Subject) {
	state := func(version int64) reservation.Reservation {
		r := booked("r")
		r.Version, r.Name = version, fmt.Sprint(version)
		r.Claims[0].Host = r.Name
		r.Claims = r.Claims[:1+version%2]
		r.Events[1].Detail = r.Name
		return r
	}
	mustCreate(t, s, state(1))
	var wg sync.WaitGroup
	var over atomic.Bool
	for range workers / 2 {
		wg.Go(func() {
			for !over.Load() {
				got, err := s.Get(t.Context(), "r")
				if err != nil {
					t.Error(err)
					return
				}
				if d := diff(state(got.Version), got); d != "" {
					t.Errorf("version %d (-want +got):\n%s", got.Version, d)
				}
			}
		})
	}
	for version := int64(2); version <= workers*rounds; version++ {
		if err := update(t, s, state(version)); err != nil {
			t.Error(err)
			break
		}
	}
	over.Store(true)
	wg.Wait()
}
