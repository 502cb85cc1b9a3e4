// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A Galera node that loses its majority refuses ROLLBACK too. The transaction stays open, and a
// BEGIN on the same connection would commit its statements so far.
func TestATransactionThatCannotBeRolledBackIsNotCommittedByTheNext(t *testing.T) {
	server := labtest.StartMariaDB(t)
	proxy, connection := through(t, server.URL("almanac"))
	s := open(t, store.Options{Connection: connection})
	if err := s.Commit(t.Context(), booked("before", "other", 0)); err != nil {
		t.Fatal(err)
	}
	outside := openSQL(t, server.DSN("almanac"))
	tx, err := outside.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, tx, "UPDATE `project_usage` SET `hosts` = `hosts`")
	done := make(chan error, 1)
	go func() { done <- s.Commit(t.Context(), booked("r", "node", 0)) }()
	awaitLockWait(t, outside) // the host and the reservation are written, the log is not
	proxy.Refuse(true)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for timeout := time.After(patience); proxy.Refused() < 3; { // the log, ROLLBACK, BEGIN
		select {
		case <-timeout:
			t.Fatalf("%d statements were refused", proxy.Refused())
		case <-time.After(time.Millisecond):
		}
	}
	proxy.Refuse(false)
	if err := <-done; err != nil {
		t.Errorf("commit: %v", err)
	}
	got, err := s.Recall(t.Context(), booking.Recall{Hosts: []string{"node"}})
	if err != nil || len(got.Log) != 2 || len(got.Reservations) != 2 {
		t.Errorf("there are %d entries in the log and %d reservations, want 2 of each (%v)", len(got.Log), len(got.Reservations), err)
	}
}
