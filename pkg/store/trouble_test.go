// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// hold takes the write lock of the database from outside until release.
func hold(t *testing.T, connection string) (release func()) {
	t.Helper()
	other, err := sql.Open("sqlite", strings.TrimPrefix(connection, "sqlite:///"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
	}
}

func TestALockedDatabaseIsUnavailableUntilItIsReleased(t *testing.T) {
	connection := newFile(t)
	s := open(t, store.Options{Connection: connection, BusyTimeout: 300 * time.Millisecond})
	release := hold(t, connection)
	giveUp := func() time.Duration {
		begin := time.Now()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				err := create(t, s, "r")
				if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.RetryAfter != time.Second {
					t.Errorf("create: %v, want an unavailable fault to retry after a second", err)
				}
			})
		}
		wg.Wait()
		return time.Since(begin)
	}
	// One after the other they would take 2.4 s. On a busy machine one attempt may take as long.
	waited := giveUp()
	for try := 1; waited > 1500*time.Millisecond && try < 10; try++ {
		waited = min(waited, giveUp())
	}
	if waited > 1500*time.Millisecond {
		t.Errorf("eight writes gave up after %v, want at most twice the busy timeout of 300 ms", waited)
	}
	if _, err := s.List(t.Context(), reservation.Query{}); err != nil {
		t.Errorf("reading during the lock: %v", err)
	}
	release()
	if err := create(t, s, "r"); err != nil {
		t.Errorf("create after the release: %v", err)
	}
}

func TestACallerWhoGivesUpWaitsNoLonger(t *testing.T) {
	connection := newFile(t)
	s := open(t, store.Options{Connection: connection, BusyTimeout: time.Minute})
	release := hold(t, connection)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for _, id := range []string{"first in the queue", "second"} {
		wg.Go(func() {
			if err := s.Commit(ctx, booking.Commit{Revisions: []booking.Revision{{Reservation: reservation.Reservation{ID: id, Version: 1}}}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want context.DeadlineExceeded", id, err)
			}
		})
	}
	wg.Wait()
	release()
	if list, err := s.List(t.Context(), reservation.Query{}); err != nil || len(list) > 0 {
		t.Errorf("stored are %v, %v", list, err)
	}
}

func TestAFolderInThePlaceOfTheFileIsUnavailable(t *testing.T) {
	_, err := store.Open(t.Context(), store.Options{Connection: "sqlite:///" + t.TempDir()})
	if f := fault.Of(err); f.Kind != fault.Unavailable || f.RetryAfter != 30*time.Second {
		t.Errorf("got %v, want an unavailable fault to retry after 30 s", err)
	}
}

func TestAReadOnlyDatabaseIsReadButNotWritten(t *testing.T) {
	connection := newFile(t)
	writable := open(t, store.Options{Connection: connection})
	if err := create(t, writable, "r"); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{Connection: "file:" + strings.TrimPrefix(connection, "sqlite:///") + "?mode=ro"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Get(t.Context(), "r"); err != nil {
		t.Errorf("get: %v", err)
	}
	err = s.SaveHidden(t.Context(), "gpu", true)
	if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.RetryAfter != 30*time.Second {
		t.Errorf("write: %v, want an unavailable fault to retry after 30 s", err)
	}
}
