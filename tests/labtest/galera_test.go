// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

//make:test-galera
func TestAGaleraClusterOutlivesANodeAndTakesItBack(t *testing.T) {
	cluster := labtest.StartGalera(t, 3)
	dbs := make([]*sql.DB, 3)
	for node := range dbs {
		dbs[node] = open(t, cluster.DSN(node, "almanac"))
	}
	run(t, dbs[0], "CREATE TABLE promises (id INT PRIMARY KEY)", "INSERT INTO promises VALUES (1)")
	cluster.Kill(2)
	run(t, dbs[1], "INSERT INTO promises VALUES (2)")
	cluster.Start(2)
	cluster.Wait(3)
	holds(t, dbs, "1,2")

	for node := range dbs {
		cluster.Stop(node)
	}
	cluster.Start(2) // stopped last
	cluster.Start(0)
	cluster.Start(1)
	cluster.Wait(3)
	run(t, dbs[0], "INSERT INTO promises VALUES (3)")
	holds(t, dbs, "1,2,3")
}

//make:test-galera
func TestAGaleraClusterThatWasKilledAsAWholeStartsAtTheNodeThatCommittedLast(t *testing.T) {
	cluster := labtest.StartGalera(t, 2)
	dbs := []*sql.DB{open(t, cluster.DSN(0, "almanac")), open(t, cluster.DSN(1, "almanac"))}
	run(t, dbs[0], "CREATE TABLE promises (id INT PRIMARY KEY)")
	cluster.Stop(1)
	run(t, dbs[0], "INSERT INTO promises VALUES (1)")
	cluster.Kill(0)
	cluster.Start(0)
	cluster.Start(1)
	cluster.Wait(2)
	holds(t, dbs, "1")
}

// holds checks every node, each after it has applied all that it has received.
func holds(t *testing.T, dbs []*sql.DB, want string) {
	t.Helper()
	for node, db := range dbs {
		t.Run(fmt.Sprintf("node %d", node), func(t *testing.T) {
			db.SetMaxOpenConns(1)
			run(t, db, "SET SESSION wsrep_sync_wait = 1")
			if got := one[string](t, db, "SELECT GROUP_CONCAT(id ORDER BY id) FROM promises"); got != want {
				t.Errorf("promises %s, want %s", got, want)
			}
		})
	}
}
