// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"cmp"
	"crypto/rand"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/tests/storetest"
)

// patience bounds every wait for a condition, and the attempts of a transaction.
const patience = 2 * time.Minute

// open returns a migrated store, closed when the test ends. Defaults are as in production, with
// more patience.
func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	o.Holder, o.NewToken = cmp.Or(o.Holder, rand.Text()), rand.Text
	o.Patience, o.Retries = cmp.Or(o.Patience, patience), cmp.Or(o.Retries, -1)
	o.LongestWait, o.Random = time.Second, mathrand.Float64
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// create stores a new reservation.
func create(t *testing.T, s *store.Store, id string) error {
	t.Helper()
	return s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: reservation.Reservation{ID: id, Version: 1}}}})
}

// newFile returns the connection of a database that does not exist yet.
func newFile(t *testing.T) string { return "sqlite:///" + filepath.Join(t.TempDir(), "almanac.db") }

func openAt(connection string) func(t *testing.T) storetest.Subject {
	return func(t *testing.T) storetest.Subject {
		return open(t, store.Options{Connection: connection, BusyTimeout: patience, Outbox: true})
	}
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject { return memory.New() })
}

//make:test-drawn
func TestStoreInMemory(t *testing.T) { storetest.Run(t, openAt("sqlite://")) }

func TestStoreInAFile(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject { return openAt(newFile(t))(t) })
	storetest.RunShared(t, func(t *testing.T) func(t *testing.T) storetest.Subject { return openAt(newFile(t)) })
}

// hookedAt opens a store whose changes wait for webhooks.
func hookedAt(connection string) func(t *testing.T) storetest.Subject {
	return func(t *testing.T) storetest.Subject {
		return open(t, store.Options{Connection: connection, BusyTimeout: patience, Webhooks: true})
	}
}

func TestWebhooksInAFile(t *testing.T) {
	storetest.RunWebhooks(t, func(t *testing.T) func(t *testing.T) storetest.Subject { return hookedAt(newFile(t)) })
}

func TestEveryFormOfAConnectionFindsItsFile(t *testing.T) {
	for connection, want := range map[string]string{
		"sqlite:///almanac.db":                    "almanac.db",
		"sqlite:///var/lib/almanac.db":            "var/lib/almanac.db",
		"sqlite:///50% of #1 data.db":             "50% of #1 data.db",
		"sqlite:///ROOT/almanac.db":               "almanac.db",
		"file:almanac.db":                         "almanac.db",
		"file:ROOT/var/almanac.db":                "var/almanac.db",
		"file://ROOT/almanac.db":                  "almanac.db",
		"file:half%20a%25.db":                     "half a%.db",
		"file:almanac.db?_pragma=cache_size(100)": "almanac.db",
	} {
		t.Run(connection, func(t *testing.T) {
			mask := syscall.Umask(0)
			t.Cleanup(func() { syscall.Umask(mask) })
			root := t.TempDir()
			t.Chdir(root)
			s := open(t, store.Options{Connection: strings.Replace(connection, "ROOT", root, 1)})
			if err := create(t, s, "r"); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(want)
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); mode != 0o640 {
				t.Errorf("the file has mode %o, want 640", mode)
			}
			wal, err := os.Stat(want + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			if mode := wal.Mode().Perm(); mode != 0o640 {
				t.Errorf("its log has mode %o, want 640", mode)
			}
			if folder, err := os.Stat(filepath.Dir(want)); filepath.Dir(want) != "." && (err != nil || folder.Mode().Perm() != 0o750) {
				t.Errorf("the folder has mode %v (%v), want 750", folder.Mode(), err)
			}
		})
	}
}

func TestDatabasesInMemoryAreApartAndLeaveNoFile(t *testing.T) {
	for _, connection := range []string{"sqlite://", "sqlite:///", "sqlite:///:memory:", "file::memory:", "file:almanac.db?mode=memory&cache=shared"} {
		t.Run(connection, func(t *testing.T) {
			t.Chdir(t.TempDir())
			one, other := open(t, store.Options{Connection: connection}), open(t, store.Options{Connection: connection})
			if err := create(t, one, "r"); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Get(t.Context(), "r"); !fault.Is(err, fault.NotFound) {
				t.Errorf("the other has what the one stored: %v", err)
			}
			if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
				t.Errorf("left %v (%v)", files, err)
			}
		})
	}
}

func TestAConnectionThatCannotBeReadIsInvalid(t *testing.T) {
	for connection, want := range map[string]string{
		"":                               "connection: must be a URL such as mysql+pymysql://almanac:PASSWORD@db.example/almanac or sqlite:///almanac.db",
		"almanac.db":                     "connection: must be a URL such as mysql+pymysql://almanac:PASSWORD@db.example/almanac or sqlite:///almanac.db",
		"postgresql://db/almanac":        "connection: postgresql is not supported: it must be mysql, mariadb or sqlite, as in mysql+pymysql://almanac:PASSWORD@db.example/almanac",
		"mysqlx://ada:s3cret@db/almanac": "connection: mysqlx is not supported: it must be mysql, mariadb or sqlite, as in mysql+pymysql://almanac:PASSWORD@db.example/almanac",
		"sqlite://almanac.db":            "connection: a sqlite URL names no server: write sqlite:/// before a relative path and sqlite://// before an absolute one",
		"sqlite:///almanac.db?timeout=5": "connection: a sqlite URL has no options; write file:PATH?OPTIONS",
		"file://server/almanac.db":       "connection: a file has no server: write file:PATH",
		"file:100%.db":                   "connection: the path has a broken escape; write %25 for a percent sign",
		"file:///100%.db":                "connection: is not a URL in the form file:PATH?OPTIONS",
	} {
		t.Run(connection, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, err := store.Open(t.Context(), store.Options{Connection: connection})
			if !fault.Is(err, fault.Invalid) || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
				t.Errorf("left %v (%v)", files, err)
			}
		})
	}
}

func TestAFileThatIsNoDatabaseStaysAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letter")
	const letter = "Dear Ada, this is not a database but a letter, and it shall stay one."
	if err := os.WriteFile(path, []byte(letter), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), store.Options{Connection: "sqlite:///" + path}); err == nil {
		t.Error("opened a letter")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != letter {
		t.Errorf("the letter reads %q (%v)", text, err)
	}
}

func TestPingSaysWhetherTheDatabaseCanBeRead(t *testing.T) {
	s := open(t, store.Options{Connection: newFile(t)})
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a closed store answers")
	}
}

func TestWithoutAnOutboxNothingWaitsToBeSent(t *testing.T) {
	s := open(t, store.Options{Connection: "sqlite://"})
	if err := create(t, s, "r"); err != nil {
		t.Fatal(err)
	}
	if waiting, err := s.Unsent(t.Context(), 0); err != nil || len(waiting) > 0 {
		t.Errorf("unsent are %v: %v", waiting, err)
	}
	if trail, err := s.Trail(t.Context(), "r", 0); err != nil || len(trail) != 1 {
		t.Errorf("the trail has %d changes, want one: %v", len(trail), err)
	}
}

// A service with many reservations on a slow machine starts, however little time a transaction may take.
func TestTheReadOfAllReservationsTakesAsLongAsItTakes(t *testing.T) {
	connection := newFile(t)
	if err := create(t, open(t, store.Options{Connection: connection, BusyTimeout: patience}), "r"); err != nil {
		t.Fatal(err)
	}
	hurried, err := store.Open(t.Context(), store.Options{Connection: connection, BusyTimeout: patience, Patience: time.Nanosecond, NewToken: rand.Text})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hurried.Close() })
	if _, err := hurried.Recall(t.Context(), booking.Recall{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a read of what is new has no limit: %v", err)
	}
	got, err := hurried.Recall(t.Context(), booking.Recall{All: true})
	if err != nil || len(got.Log) != 1 {
		t.Errorf("all: %+v, %v", got, err)
	}
}
