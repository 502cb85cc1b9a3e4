// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func openFile(t *testing.T, path string, log *slog.Logger) *Store {
	t.Helper()
	return openFor(t, "sqlite:///"+path, log)
}

func openFor(t testing.TB, connection string, log *slog.Logger) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{
		Connection: connection, BusyTimeout: 30 * time.Second, Logger: log,
		Patience: 30 * time.Second, Retries: -1, LongestWait: time.Second, NewToken: rand.Text,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openMigrated(t *testing.T, log *slog.Logger) *Store {
	t.Helper()
	s := openFile(t, filepath.Join(t.TempDir(), "almanac.db"), log)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// sized returns a reservation of n hosts with its events.
func sized(id string, n int) reservation.Reservation {
	r := reservation.Reservation{ID: id, ProjectID: "demo", Status: reservation.Pending, Span: span.New(1000, 100), Version: 1}
	for i := range n {
		r.Claims = append(r.Claims, reservation.Claim{Host: fmt.Sprintf("node-%d", i), Span: r.Span})
	}
	for _, event := range []reservation.EventType{reservation.CreatedEvent, reservation.StartEvent, reservation.EndEvent} {
		r.Events = append(r.Events, reservation.Event{Type: event, Time: r.Span.Start, State: reservation.EventDue})
	}
	return r
}

// booked returns the commit of a new reservation.
func booked(r reservation.Reservation) booking.Commit {
	c := booking.Commit{Revisions: []booking.Revision{{Reservation: r}}, Usage: booking.Usage{Hosts: len(r.Claims), Raises: len(r.Claims) > 0}}
	for _, host := range r.HostNames() {
		c.Hosts = append(c.Hosts, booking.HostVersion{Host: host})
	}
	return c
}

func pragma(t *testing.T, db *gorm.DB, name string) (value string) {
	t.Helper()
	if err := db.Raw("PRAGMA " + name).Scan(&value).Error; err != nil {
		t.Fatal(err)
	}
	return value
}

func TestConnectionsAreSetUpForDurability(t *testing.T) {
	s := openMigrated(t, nil)
	for name, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "30000"} {
		if got := pragma(t, s.writer, name); got != want {
			t.Errorf("the writer has %s = %s, want %s", name, got, want)
		}
	}
	if got := pragma(t, s.reader, "query_only"); got != "1" {
		t.Errorf("the readers have query_only = %s, want 1", got)
	}
}

// Without _txlock=immediate most of these fail: a transaction that has read cannot write after
// another one has written.
func TestTransactionsThatReadThenWriteAllSucceed(t *testing.T) {
	const workers, rounds = 8, 25
	path := filepath.Join(t.TempDir(), "almanac.db")
	stores := []*Store{openFile(t, path, nil), openFile(t, path, nil)}
	if err := stores[0].writer.Exec("CREATE TABLE counter (value BIGINT)").Exec("INSERT INTO counter VALUES (0)").Error; err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range workers {
		s := stores[worker%len(stores)]
		wg.Go(func() {
			for range rounds {
				if err := s.write(t.Context(), count); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var value int
	if err := stores[1].reader.Raw("SELECT value FROM counter").Scan(&value).Error; err != nil || value != workers*rounds {
		t.Errorf("%d of %d updates are there (%v)", value, workers*rounds, err)
	}
}

func count(tx *gorm.DB) error {
	var value int
	if err := tx.Raw("SELECT value FROM counter").Scan(&value).Error; err != nil {
		return err
	}
	return tx.Exec("UPDATE counter SET value = ?", value+1).Error
}

func TestWaitingForOtherWritesEndsWithTheCall(t *testing.T) {
	s := openMigrated(t, nil)
	s.writing <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Commit(ctx, booked(sized("r", 1))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

func TestATransactionWhoseTimeEndsBeforeItsCommitSaysSo(t *testing.T) {
	s := openMigrated(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := s.write(ctx, func(tx *gorm.DB) error {
		if err := tx.Create(&hiddenRow{"gpu"}).Error; err != nil {
			return err
		}
		<-ctx.Done()
		for !errors.Is(tx.WithContext(t.Context()).Exec("SELECT 1").Error, sql.ErrTxDone) {
			runtime.Gosched() // until the transaction is rolled back
		}
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	if hidden, err := s.Hidden(t.Context()); err != nil || len(hidden) > 0 {
		t.Errorf("hidden are %v (%v), want none", hidden, err)
	}
}

func TestAnExtendedCodeMeansWhatItsPrimaryCodeMeans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "almanac.db")
	s := openFile(t, path, nil)
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	late, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback() }()
	if err := late.QueryRow("SELECT count(*) FROM sqlite_master").Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = late.Exec("CREATE TABLE late (id TEXT)")
	if cause, ok := errors.AsType[*sqlite.Error](err); !ok || cause.Code() != code.SQLITE_BUSY_SNAPSHOT {
		t.Fatalf("writing after another wrote: %v, want SQLITE_BUSY_SNAPSHOT", err)
	}
	if f := fault.Of(translate(err)); f.Kind != fault.Unavailable || f.RetryAfter != time.Second {
		t.Errorf("got %v, want an unavailable fault to retry after a second", f)
	}
}

func TestAFullDiskIsUnavailableUntilThereIsRoom(t *testing.T) {
	s := openMigrated(t, nil)
	if err := s.Commit(t.Context(), booked(sized("small", 0))); err != nil {
		t.Fatal(err)
	}
	large := booked(sized("large", 5000))
	large.Key = &reservation.Key{ProjectID: "demo", Key: "k"}
	full := pragma(t, s.writer, "page_count")
	pragma(t, s.writer, "max_page_count="+full)
	for range 2 {
		err := s.Commit(t.Context(), large)
		if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.RetryAfter != 30*time.Second {
			t.Fatalf("create: %v, want an unavailable fault to retry after 30 s", err)
		}
	}
	if list, err := s.List(t.Context(), reservation.Query{}); err != nil || len(list) != 1 {
		t.Errorf("stored are %d reservations, want the small one (%v)", len(list), err)
	}
	if _, used, err := s.Key(t.Context(), "demo", "k"); used || err != nil {
		t.Errorf("the key is used (%v) though nothing was made (%v)", used, err)
	}
	pragma(t, s.writer, "max_page_count=1000000")
	if err := s.Commit(t.Context(), large); err != nil {
		t.Errorf("create with room again: %v", err)
	}
}
