// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Each commit stores a reservation and an entry of the log of changes, so a copy of one moment has as many of both.
func TestABackupHasOneMomentWhileOthersWrite(t *testing.T) {
	connection := newFile(t)
	path := strings.TrimPrefix(connection, "sqlite:///")
	s := open(t, store.Options{Connection: connection, BusyTimeout: patience})
	for i := range 50 {
		if err := create(t, s, fmt.Sprint("before ", i)); err != nil {
			t.Fatal(err)
		}
	}
	stop, wrote := make(chan struct{}), make(chan int)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				wrote <- i
				return
			default:
			}
			if err := create(t, s, fmt.Sprint("meanwhile ", i)); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range 5 {
		to := filepath.Join(t.TempDir(), fmt.Sprint(i, ".db"))
		made, err := store.Backup(t.Context(), path, to, func(int, int) {})
		if err != nil || made.Reservations < 50 {
			t.Fatalf("%+v, %v", made, err)
		}
		copied := open(t, store.Options{Connection: "sqlite:///" + to, BusyTimeout: patience})
		got, err := copied.Recall(t.Context(), booking.Recall{})
		if err != nil || int64(len(got.Log)) != made.Reservations {
			t.Errorf("the copy has %d reservations and %d changes (%v)", made.Reservations, len(got.Log), err)
		}
		if _, err := store.Backup(t.Context(), path, to, nil); !fault.Is(err, fault.Conflict) {
			t.Errorf("to a file that exists: %v", err)
		}
	}
	close(stop)
	t.Logf("%d commits meanwhile", <-wrote)
}
