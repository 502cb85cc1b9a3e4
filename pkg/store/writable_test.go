// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A failover makes a server a replica, which is read-only; users with the right to write nevertheless are not Almanac's.
func TestAServerThatIsReadOnlySaysSoAndIsRead(t *testing.T) {
	server := labtest.StartMariaDB(t)
	admin := openSQL(t, server.DSN("almanac"))
	execute := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	execute("CREATE USER plain IDENTIFIED BY 'plain'")
	execute("GRANT ALL ON almanac.* TO plain")
	s := open(t, store.Options{Connection: strings.Replace(server.URL("almanac"), "almanac:almanac@", "plain:plain@", 1), PoolSize: 5, Overflow: 10})
	commit := func(id string) error { return s.Commit(t.Context(), booked(id, id, 0)) }
	var all sync.WaitGroup
	for i := range 8 { // so that connections are idle
		all.Go(func() {
			if err := commit(fmt.Sprint("before ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for n := range int64(2) {
		execute("SET GLOBAL read_only = 1")
		for range 3 {
			err := commit("refused")
			if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || !strings.Contains(f.Message, "--read-only") {
				t.Fatalf("a change: %v", err)
			}
		}
		if err := s.Writable(); err == nil || !strings.Contains(err.Error(), "--read-only") {
			t.Errorf("writable: %v", err)
		}
		if again := s.Retries()["read_only"]; again == 0 || again > 9*(n+1) {
			t.Errorf("run again: %v", s.Retries())
		}
		if _, err := s.Get(t.Context(), "before 0"); err != nil {
			t.Errorf("a read: %v", err)
		}
		execute("SET GLOBAL read_only = 0")
		if err := commit(fmt.Sprint("after ", n)); err != nil {
			t.Errorf("a change of a server that is writable again: %v", err)
		}
		if err := s.Writable(); err != nil {
			t.Errorf("writable: %v", err)
		}
		if _, err := s.Get(t.Context(), "refused"); err == nil {
			t.Error("a refused change is stored")
		}
	}
}
