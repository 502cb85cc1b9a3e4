// SPDX-License-Identifier: Apache-2.0

package service

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
)

func book(t *testing.T, c *client.Client, start time.Time, seconds v1.Duration) v1.Reservation {
	t.Helper()
	r, err := c.CreateReservation(t.Context(), v1.ReservationRequest{Name: "r", StartTime: &start, Duration: &seconds}, client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func status(t *testing.T, c *client.Client, id string) string {
	t.Helper()
	r, err := c.GetReservation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

// A start is due while no service runs.
func TestLifeGoesOnAfterARestart(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	s := built.Start(t, folder)
	c := s.Client(t)
	lead := built.Ahead(2*time.Second, 3, func() { status(t, c, book(t, c, time.Now().Add(time.Hour), 1).ID) })
	begin := time.Now().Add(lead).Truncate(time.Second)
	soon, later := book(t, c, begin, 3600), book(t, c, begin.Add(4*time.Second), 1)
	if got := status(t, c, soon.ID); got != "pending" {
		t.Fatalf("before its start the reservation is %s", got)
	}
	s.Kill()
	built.Eventually(t, "the start does not pass", func() bool { return time.Now().After(begin.Add(time.Second)) })

	c = built.Start(t, folder).Client(t)
	served := time.Now()
	built.Eventually(t, "the late start does not happen", func() bool { return status(t, c, soon.ID) == "active" })
	built.Eventually(t, "the other reservation does not end", func() bool { return status(t, c, later.ID) == "ended" })
	r, err := c.GetReservation(t.Context(), later.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Events {
		if e.State != "done" || e.DoneAt == nil || e.DoneAt.Before(e.Time) {
			t.Errorf("event %+v of a reservation that has ended", e)
		}
		due := e.Time
		if due.Before(served) {
			due = served
		}
		if e.DoneAt != nil && e.DoneAt.Sub(due) > built.Patience {
			t.Errorf("%s was %v late while the service ran", e.Type, e.DoneAt.Sub(due))
		}
	}
}

// The test locks the database as a stuck backup would.
func TestALockedDatabaseIsUnavailableAndComesBack(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	s := built.Start(t, folder, "OS_DATABASE__BUSY_TIMEOUT=1")
	c := s.Client(t)
	other, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "almanac.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	seconds := v1.Duration(3600)
	_, err = c.CreateReservation(t.Context(), v1.ReservationRequest{Name: "r", Duration: &seconds}, client.CreateOptions{})
	answer, ok := errors.AsType[*client.Error](err)
	if !ok || answer.Status != 503 || answer.RetryAfter <= 0 {
		t.Fatalf("a booking while the database is locked: %v", err)
	}
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	quantity := 10 // all hosts, so the failed booking must hold none
	if _, err := c.CreateReservation(t.Context(), v1.ReservationRequest{Name: "r", Duration: &seconds, Quantity: &quantity}, client.CreateOptions{}); err != nil {
		t.Errorf("after the end of the lock: %v", err)
	}
}
