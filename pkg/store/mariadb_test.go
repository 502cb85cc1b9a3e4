// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/mysqlproxy"
	"github.com/almanac-cloud/almanac/tests/storetest"
)

//make:test-drawn
func TestStoreOnMariaDB(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject { return openAt(labtest.Database(t))(t) })
	storetest.RunShared(t, func(t *testing.T) func(t *testing.T) storetest.Subject { return openAt(labtest.Database(t)) })
	storetest.RunWebhooks(t, func(t *testing.T) func(t *testing.T) storetest.Subject { return hookedAt(labtest.Database(t)) })
}

// The stores of one database use different nodes.
//
//make:test-galera
func TestStoresOnGalera(t *testing.T) {
	cluster := labtest.StartGalera(t, 2)
	databases := 0
	at := func(open func(connection string) func(t *testing.T) storetest.Subject) func(t *testing.T) func(t *testing.T) storetest.Subject {
		return func(*testing.T) func(t *testing.T) storetest.Subject {
			databases++
			name, stores := fmt.Sprint("almanac_", databases), 0
			return func(t *testing.T) storetest.Subject {
				stores++
				return open(cluster.URL(stores%2, name))(t)
			}
		}
	}
	storetest.RunShared(t, at(openAt))
	storetest.RunWebhooks(t, at(hookedAt))
}

// booked returns the commit of a new reservation of one host, known in a version.
func booked(id, host string, version int64) booking.Commit {
	return booking.Commit{
		Revisions: []booking.Revision{{
			Reservation: reservation.Reservation{
				ID: id, ProjectID: "demo", Status: reservation.Pending, Version: 1,
				Claims: []reservation.Claim{{Host: host}}, Events: []reservation.Event{{Type: reservation.StartEvent}},
			},
			Cause: reservation.Cause{Action: reservation.ActionCreate},
		}},
		Hosts: []booking.HostVersion{{Host: host, Version: version}},
		Usage: booking.Usage{Hosts: 1, HostSeconds: 10, MostHostSeconds: 10_000, Raises: true},
	}
}

// through returns a connection through a new proxy.
func through(t *testing.T, connection string) (*mysqlproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(connection)
	if err != nil {
		t.Fatal(err)
	}
	proxy := mysqlproxy.Start(t, u.Host)
	u.Host = proxy.Addr()
	return proxy, u.String()
}

// The proxy spoils commits, and each must be in the database once, whether the server carried it
// out before the connection was lost or not.
func TestACommitInDoubtIsCarriedOutOnce(t *testing.T) {
	for name, kind := range map[string]mysqlproxy.Kind{
		"deadlock": mysqlproxy.Deadlock, "answer lost": mysqlproxy.LostAnswer, "commit lost": mysqlproxy.LostCommit,
	} {
		t.Run(name, func(t *testing.T) {
			const commits = 20
			proxy, connection := through(t, labtest.Database(t))
			s := open(t, store.Options{Connection: connection})
			proxy.FailCommits(kind, 2)
			for n := range int64(commits) {
				c := booked(fmt.Sprintf("%02d", n), "node", n)
				c.Key = &reservation.Key{ProjectID: "demo", Key: c.Revisions[0].Reservation.ID}
				if err := s.Commit(t.Context(), c); err != nil {
					t.Fatalf("commit %d: %v", n, err)
				}
				c.Revisions[0].Reservation.Version, c.Key, c.Hosts, c.Usage = 2, nil, nil, booking.Usage{}
				if err := s.Commit(t.Context(), c); err != nil {
					t.Fatalf("change %d: %v", n, err)
				}
			}
			if proxy.Failed() < commits {
				t.Errorf("the proxy spoiled %d commits only", proxy.Failed())
			}
			again := map[bool]string{true: "deadlock", false: "in_doubt"}[kind == mysqlproxy.Deadlock]
			if n := s.Retries()[again]; n < commits {
				t.Errorf("%d transactions were run again for %s: %v", n, again, s.Retries())
			}
			proxy.FailCommits(kind, 0)
			got, err := s.Recall(t.Context(), booking.Recall{})
			if err != nil || len(got.Log) != 2*commits || len(got.Reservations) != commits || got.Hosts[0].Version != commits {
				t.Errorf("there are %d entries, %d reservations, hosts %v (%v)", len(got.Log), len(got.Reservations), got.Hosts, err)
			}
			// The usage row must have counted each commit once.
			fits := booked("rest", "other", 0)
			fits.Usage = booking.Usage{HostSeconds: 1, MostHostSeconds: 10*commits + 1, Raises: true, Known: new(int64(commits))}
			over := booked("over", "third", 0)
			over.Usage = booking.Usage{HostSeconds: 1, MostHostSeconds: 10*commits + 1}
			if err := s.Commit(t.Context(), fits); err != nil {
				t.Errorf("more is held than was booked: %v", err)
			}
			if err := s.Commit(t.Context(), over); !errors.Is(err, reservation.ErrStale) {
				t.Errorf("less is held than was booked: %v", err)
			}
		})
	}
}

func TestACommitInDoubtThatAnotherOvertookIsStale(t *testing.T) {
	connection := labtest.Database(t)
	proxy, spoiled := through(t, connection)
	s, other := open(t, store.Options{Connection: spoiled}), open(t, store.Options{Connection: connection})
	proxy.FailCommits(mysqlproxy.LostCommit, 1)
	done := make(chan error, 1)
	go func() { done <- s.Commit(t.Context(), booked("mine", "node", 0)) }()
	for proxy.Failed() == 0 {
		select {
		case err := <-done:
			t.Fatalf("the commit ended before it was spoiled: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	if err := other.Commit(t.Context(), booked("theirs", "node", 0)); err != nil {
		t.Fatal(err)
	}
	proxy.FailCommits(mysqlproxy.LostCommit, 0)
	if err := <-done; !errors.Is(err, reservation.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
	if _, err := s.Get(t.Context(), "mine"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the commit that was refused is there: %v", err)
	}
}

// A replica that freezes before its COMMIT has locked the host and the usage of its project. The
// server must end its transaction before other replicas stop waiting.
func TestAFrozenReplicaHoldsOthersUpForSecondsOnly(t *testing.T) {
	connection := labtest.Database(t)
	testFrozen(t, connection, connection)
}

//make:test-galera
func TestAFrozenReplicaHoldsOthersUpForSecondsOnlyOnGalera(t *testing.T) {
	cluster := labtest.StartGalera(t, 2)
	for node, name := range []string{"same", "another"} {
		t.Run("others at "+name+" node", func(t *testing.T) { testFrozen(t, cluster.URL(0, name), cluster.URL(node, name)) })
	}
}

func testFrozen(t *testing.T, frozenAt, otherAt string) {
	proxy, connection := through(t, frozenAt)
	frozen := open(t, store.Options{Connection: connection})
	other := open(t, store.Options{Connection: otherAt, Patience: 15 * time.Second}) // as in production
	if err := other.Commit(t.Context(), booked("first", "a", 0)); err != nil {
		t.Fatal(err)
	}
	proxy.FailCommits(mysqlproxy.Frozen, 1)
	done := make(chan error, 1)
	go func() { done <- frozen.Commit(t.Context(), booked("frozen", "b", 0)) }()
	for proxy.Failed() == 0 {
		select {
		case err := <-done:
			t.Fatalf("the commit ended before it was frozen: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	// One of the bookings shares the project with the frozen one, the other the host.
	for id, host := range map[string]string{"same project": "c", "same host": "b"} {
		if err := other.Commit(t.Context(), booked(id, host, 0)); err != nil {
			t.Errorf("a booking of the %s: %v", id, err)
		}
	}
	// Each wait for a lock that fails takes five seconds.
	if again := other.Retries()["lock_wait"]; again > 1 {
		t.Errorf("the others waited %d times without a lock", again)
	}
	proxy.FailCommits(mysqlproxy.Frozen, 0)
	proxy.Thaw()
	if err := <-done; !errors.Is(err, reservation.ErrStale) {
		t.Errorf("the frozen one, after the thaw: %v, want ErrStale", err)
	}
	if _, err := other.Get(t.Context(), "frozen"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the frozen booking is stored although its host is taken: %v", err)
	}
}

// Each change is stored once, and so is its entry in the audit.
func TestAChangeOfPowerInDoubtIsToldOnce(t *testing.T) {
	for name, kind := range map[string]mysqlproxy.Kind{
		"deadlock": mysqlproxy.Deadlock, "answer lost": mysqlproxy.LostAnswer, "commit lost": mysqlproxy.LostCommit,
	} {
		t.Run(name, func(t *testing.T) {
			const changes = 10
			proxy, connection := through(t, labtest.Database(t))
			s := open(t, store.Options{Connection: connection})
			proxy.FailCommits(kind, 2)
			for n := range int64(changes) {
				err := s.ChangePower(t.Context(), job.Lease{}, []string{"a"}, func(stored map[string]energy.Record) ([]energy.Entry, error) {
					r := stored["a"]
					r.Number++
					stored["a"] = r
					return []energy.Entry{{Host: "a", At: span.Instant(r.Number)}}, nil
				})
				if err != nil {
					t.Fatalf("change %d: %v", n, err)
				}
			}
			if proxy.Failed() < changes/2 {
				t.Errorf("the proxy spoiled %d commits only", proxy.Failed())
			}
			proxy.FailCommits(kind, 0)
			records, err := s.PowerRecords(t.Context())
			audit, auditErr := s.Audit(t.Context(), "a", 0, 0)
			if records["a"].Number != changes || len(audit) != changes || audit[0].At != changes || err != nil || auditErr != nil {
				t.Errorf("%d changes count %d, and the audit has %d: %v, %v", changes, records["a"].Number, len(audit), err, auditErr)
			}
		})
	}
}

func TestPatienceEnds(t *testing.T) {
	proxy, connection := through(t, labtest.Database(t))
	s := open(t, store.Options{Connection: connection, Patience: 700 * time.Millisecond})
	proxy.FailCommits(mysqlproxy.Deadlock, 1)
	begin := time.Now()
	err := s.Commit(t.Context(), booked("r", "node", 0))
	if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || f.RetryAfter == 0 || strings.Contains(f.Message, "127.0.0.1") {
		t.Errorf("got %v, want an unavailable fault with a time to retry", err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("gave up after %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Commit(ctx, booked("r", "node", 0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's own bound: %v, want context.DeadlineExceeded", err)
	}
	proxy.FailCommits(mysqlproxy.Deadlock, 0)
	patient := open(t, store.Options{Connection: connection}) // a slow machine may need more than the patience above
	if err := patient.Commit(t.Context(), booked("r", "node", 0)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// The server counts the statements, so none can hide.
func TestABookingIsAtMostTenStatements(t *testing.T) {
	server := labtest.StartMariaDB(t)
	s := open(t, store.Options{Connection: server.URL("almanac"), PoolSize: 5, Overflow: 50})
	work := func(n int64) {
		c := booked(fmt.Sprint(n), "node", n)
		c.Key = &reservation.Key{ProjectID: "demo", Key: c.Revisions[0].Reservation.ID}
		if _, _, err := s.Key(t.Context(), "demo", c.Key.Key); err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 20
	work(0)
	before := server.Questions(t)
	for n := range int64(rounds) {
		work(n + 1)
	}
	if each := float64(server.Questions(t)-before) / rounds; each > 10 {
		t.Errorf("a booking with a key needs %.1f statements", each)
	}
	before = server.Questions(t)
	for range rounds {
		if _, err := s.Recall(t.Context(), booking.Recall{Since: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	if each := float64(server.Questions(t)-before) / rounds; each != 1 {
		t.Errorf("reading the log needs %.1f statements", each)
	}
}
