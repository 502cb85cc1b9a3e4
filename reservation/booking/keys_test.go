// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func TestAKeyStandsForOneRequestOfOneProject(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	use := &booking.KeyUse{Key: "k", BodyHash: "one"}
	book := func(by booking.Caller, use *booking.KeyUse) (reservation.Reservation, error) {
		return s.bookings.Book(t.Context(), by, during(1, 100, 200), use)
	}
	first, err := book(owner, use)
	if err != nil {
		t.Fatal(err)
	}
	again, err := book(owner, use)
	if diff := cmp.Diff(first, again); err != nil || diff != "" {
		t.Errorf("the same request again: %v (-first +again):\n%s", err, diff)
	}
	if _, err := book(owner, &booking.KeyUse{Key: "k", BodyHash: "two"}); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("another request with the key: %v, want unprocessable", err)
	}
	if r, err := book(projects[1], use); err != nil || r.ID == first.ID {
		t.Errorf("another project's use of the key returns %s, %v", r.ID, err)
	}
	if r, err := book(owner, nil); err != nil || r.ID == first.ID {
		t.Errorf("without a key: %s, %v; want a third reservation", r.ID, err)
	}
	s.restart(t)
	if again, err := book(owner, use); err != nil || again.ID != first.ID {
		t.Errorf("after a restart: %s, %v; want %s", again.ID, err, first.ID)
	}
	s.check(t)
}

func TestARefusedRequestDoesNotBurnItsKey(t *testing.T) {
	s := newScene(t, named("a"))
	blocker := s.book(t, during(1, 100, 200))
	use := &booking.KeyUse{Key: "k", BodyHash: "one"}
	_, err := s.bookings.Book(t.Context(), owner, during(1, 150, 250), use)
	refusal(t, err)
	if _, err := s.bookings.Cancel(t.Context(), owner, blocker.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bookings.Book(t.Context(), owner, during(1, 150, 250), use); err != nil {
		t.Errorf("the same request after room was made: %v", err)
	}
}

// lateKeys finds a key only when it is read a second time.
type lateKeys struct {
	booking.Keys
	asked bool
}

func (k *lateKeys) Key(ctx context.Context, projectID, key string) (reservation.Key, bool, error) {
	if !k.asked {
		k.asked = true
		return reservation.Key{}, false, nil
	}
	return k.Keys.Key(ctx, projectID, key)
}

func TestAKeyThatAnotherReplicaUsedMeanwhileGivesWhatThatOneMade(t *testing.T) {
	s := newScene(t, named("a", "b"))
	use := &booking.KeyUse{Key: "k", BodyHash: "one"}
	made, err := s.bookings.Book(t.Context(), owner, during(1, 100, 200), use)
	if err != nil {
		t.Fatal(err)
	}
	s.options.Keys = &lateKeys{Keys: s.memory}
	s.restart(t)
	again, err := s.bookings.Book(t.Context(), owner, during(1, 100, 200), use)
	if diff := cmp.Diff(made, again); err != nil || diff != "" {
		t.Errorf("got %v (-made +again):\n%s", err, diff)
	}
	s.check(t)
}

// There is room for one reservation only, but no request must be refused for lack of it.
func TestAKeyMakesOneReservationHoweverOftenItIsSentAtOnce(t *testing.T) {
	for range 20 {
		s := newScene(t, named("a"))
		var all sync.WaitGroup
		ids, errs := make([]string, 8), make([]error, 8)
		for i := range ids {
			all.Go(func() {
				var r reservation.Reservation
				r, errs[i] = s.bookings.Book(t.Context(), owner, during(1, 100, 200), &booking.KeyUse{Key: "k", BodyHash: "one"})
				ids[i] = r.ID
			})
		}
		all.Wait()
		stored := s.stored(t)
		if len(stored) != 1 {
			t.Fatalf("%d reservations are stored, want 1", len(stored))
		}
		for i := range ids {
			if errs[i] != nil || ids[i] != stored[0].ID {
				t.Fatalf("request %d got %s, %v; want %s", i, ids[i], errs[i], stored[0].ID)
			}
		}
		s.check(t)
	}
}

func TestTheKeyOfADeletedReservationSaysSo(t *testing.T) {
	s := newScene(t, named("a"))
	use := &booking.KeyUse{Key: "k", BodyHash: "one"}
	made, err := s.bookings.Book(t.Context(), owner, during(1, 100, 200), use)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.bookings.Cancel(t.Context(), owner, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bookings.Book(t.Context(), owner, during(1, 100, 200), use); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), made.ID) {
		t.Errorf("got %v, want a conflict that names %s", err, made.ID)
	}
}
