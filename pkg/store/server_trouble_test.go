// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Two transactions lock two hosts in turn, one of them from outside and in the wrong order, so
// one of them must fail.
func TestADeadlockIsRunAgain(t *testing.T) {
	server := labtest.StartMariaDB(t)
	s := open(t, store.Options{Connection: server.URL("almanac")})
	two := booked("two", "a", 0)
	two.Hosts = append(two.Hosts, booking.HostVersion{Host: "b"})
	if err := s.Commit(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	outside := openSQL(t, server.DSN("almanac"))
	tx, err := outside.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, tx, "UPDATE `host_versions` SET `version` = `version` WHERE `host` = 'b'")
	// The transaction from outside has written more, so the server chooses the store's as the
	// victim.
	mustExec(t, tx, "CREATE TEMPORARY TABLE `heavy` AS SELECT `seq` FROM `seq_1_to_1000`")
	for range 3 {
		mustExec(t, tx, "INSERT INTO `hidden_properties` SELECT UUID() FROM `heavy`")
	}
	again := two
	again.Revisions[0].Reservation.ID, again.Hosts = "again", []booking.HostVersion{{Host: "a", Version: 1}, {Host: "b", Version: 1}}
	done := make(chan error, 1)
	go func() { done <- s.Commit(t.Context(), again) }()
	awaitLockWait(t, outside)
	mustExec(t, tx, "UPDATE `host_versions` SET `version` = `version` WHERE `host` = 'a'")
	if err := tx.Commit(); err != nil {
		t.Fatalf("the one from outside was the victim: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("the store: %v", err)
	}
	var deadlocks int
	row := outside.QueryRow("SELECT `count` FROM information_schema.innodb_metrics WHERE `name` = 'lock_deadlocks'")
	if err := row.Scan(&deadlocks); err != nil || deadlocks == 0 {
		t.Errorf("the server has seen %d deadlocks (%v)", deadlocks, err)
	}
	if again := s.Retries(); again["deadlock"] == 0 || again["in_doubt"] > 0 {
		t.Errorf("run again: %v, want for the deadlock", again)
	}
}

func openSQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func mustExec(t *testing.T, tx *sql.Tx, statement string) {
	t.Helper()
	if _, err := tx.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// awaitLockWait returns when a transaction waits for a lock. The table that shows this is
// refreshed only after a tenth of a second without a query.
func awaitLockWait(t *testing.T, db *sql.DB) {
	t.Helper()
	for timeout := time.After(patience); ; {
		var waiting int
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
		select {
		case <-timeout:
			t.Fatal("no transaction waits for a lock")
		case <-time.After(150 * time.Millisecond):
		}
	}
}

func TestARestartOfTheServerIsSurvived(t *testing.T) {
	server := labtest.StartMariaDB(t)
	s := open(t, store.Options{Connection: server.URL("almanac")})
	if err := s.Commit(t.Context(), booked("before", "node", 0)); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	var wg sync.WaitGroup
	for n := range 4 {
		id := fmt.Sprint("during ", n)
		wg.Go(func() {
			if err := s.Commit(t.Context(), booked(id, id, 0)); err != nil {
				t.Errorf("commit: %v", err)
			}
		})
	}
	wg.Go(func() {
		if _, err := s.Get(t.Context(), "before"); err != nil {
			t.Errorf("get: %v", err)
		}
	})
	if err := s.Ping(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("ping while the server is away: %v, want an unavailable fault", err)
	}
	server.Start()
	wg.Wait()
	if again := s.Retries(); again["lost"] == 0 {
		t.Errorf("run again: %v, want for the server that was lost", again)
	}
	got, err := s.Recall(t.Context(), booking.Recall{All: true})
	if err != nil || len(got.Reservations) != 5 {
		t.Errorf("there are %d reservations, want 5 (%v)", len(got.Reservations), err)
	}
}

func TestAConnectionThatIsRefusedSaysWhy(t *testing.T) {
	good := labtest.Database(t)
	u, err := url.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	user := u.User.Username()
	for name, c := range map[string]struct {
		change func(u *url.URL)
		want   string
	}{
		"a wrong password":    {func(u *url.URL) { u.User = url.UserPassword(user, "s3cret") }, "refuses Almanac's user or password"},
		"an unknown user":     {func(u *url.URL) { u.User = url.UserPassword("nobody", "s3cret") }, "refuses Almanac's user or password"},
		"an unknown database": {func(u *url.URL) { u.Path += "_not" }, "no such database"},
		"nobody listens":      {func(u *url.URL) { u.User, u.Host = url.UserPassword(user, "s3cret"), "127.0.0.1:9" }, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			at := *u
			c.change(&at)
			s, err := store.Open(t.Context(), store.Options{Connection: at.String(), NewToken: func() string { return "" }})
			if err == nil {
				_ = s.Close()
				t.Fatal("it opens")
			}
			if f := fault.Of(err); f.Kind != fault.Unavailable || f.RetryAfter == 0 || !strings.Contains(f.Message, c.want) {
				t.Errorf("got %+v, want an unavailable fault with %q", f, c.want)
			}
			if text := err.Error(); strings.Contains(text, "s3cret") || !strings.Contains(text, at.User.Username()+"@"+at.Host+at.Path) {
				t.Errorf("%q must name the database and not the password", text)
			}
		})
	}
}

func TestATableThatIsMissingAsksForASync(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Connection: labtest.Database(t), NewToken: func() string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if pending, err := s.Pending(t.Context()); err != nil || len(pending) == 0 {
		t.Errorf("pending are %v: %v", pending, err)
	}
	_, err = s.Get(t.Context(), "r")
	if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || !strings.Contains(f.Message, "almanacd db sync") {
		t.Errorf("got %v, want an unavailable fault that names almanacd db sync", err)
	}
}

func TestATextThatDoesNotFitIsInvalid(t *testing.T) {
	s := open(t, store.Options{Connection: labtest.Database(t)})
	for name, text := range map[string]string{"too long": strings.Repeat("x", 256), "not UTF-8": "\xff"} {
		c := booked(name, "node", 0)
		c.Revisions[0].Reservation.Name = text
		if err := s.Commit(t.Context(), c); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want an invalid fault", name, err)
		}
	}
}
