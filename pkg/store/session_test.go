// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// No session waits forever, and each has the isolation for its use.
func TestSessionsAreSetUp(t *testing.T) {
	s := openFor(t, labtest.Database(t), nil)
	for name, pool := range map[string]struct {
		db        *gorm.DB
		isolation string
	}{"writer": {s.writer, "READ-COMMITTED"}, "reader": {s.reader, "REPEATABLE-READ"}} {
		for variable, want := range map[string]string{
			"tx_isolation": pool.isolation, "innodb_lock_wait_timeout": "5", "idle_write_transaction_timeout": "4", "net_write_timeout": "4",
			"time_zone": "+00:00", "character_set_client": "utf8mb4",
		} {
			var got string
			if err := pool.db.Raw("SELECT @@SESSION." + variable).Scan(&got).Error; err != nil || got != want {
				t.Errorf("the %s has %s = %s, want %s (%v)", name, variable, got, want, err)
			}
		}
		// MariaDB ignores settings that are for MySQL only.
		var idle, global int
		if err := pool.db.Raw("SELECT @@SESSION.wait_timeout").Scan(&idle).Error; err != nil {
			t.Fatal(err)
		}
		if err := pool.db.Raw("SELECT @@GLOBAL.wait_timeout").Scan(&global).Error; err != nil || idle != global {
			t.Errorf("the %s has wait_timeout %d, want the server's %d (%v)", name, idle, global, err)
		}
		var mode string
		if err := pool.db.Raw("SELECT @@SESSION.sql_mode").Scan(&mode).Error; err != nil || !strings.Contains(mode, "STRICT_ALL_TABLES") {
			t.Errorf("the %s has sql_mode %s (%v)", name, mode, err)
		}
	}
}

// The state in the log outlives this version, so its fields keep their names.
func TestTheFormOfAStoredChangeStays(t *testing.T) {
	row, err := rowOf(reservation.Reservation{
		ID: "r", ProjectID: "demo", Version: 1,
		Claims: []reservation.Claim{{Host: "a", Slices: 2}}, Events: []reservation.Event{{Type: reservation.StartEvent, Holder: "me"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	entry, err := (&Store{}).entry(reservation.Cause{}, &row)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"ID":"r","ProjectID":"demo","UserID":"","Name":"","Kind":"","Quantity":0,"HostProperties":"","Policy":"",` +
		`"VCPUs":0,"MemoryMB":0,"DiskGB":0,"CustomResources":"","Affinity":"","Image":"","OnEnd":"","BeforeEnd":0,"Status":"",` +
		`"StartAt":0,"EndAt":0,"DelayedByBoot":false,"Degraded":"","Created":0,"Updated":0,"Version":1,` +
		`"Claims":[{"Host":"a","EndAt":0,"StartAt":0,"Slices":2}],` +
		`"Events":[{"Type":"start","DueAt":0,"State":"","DoneAt":0,"Detail":"","Holder":"me","UntilAt":0}]}`
	if entry.State != want {
		t.Errorf("got  %s\nwant %s", entry.State, want)
	}
}
