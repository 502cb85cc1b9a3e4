// SPDX-License-Identifier: Apache-2.0

package built

import (
	"path/filepath"
	"testing"
)

// Migrate updates the schema of the database of connection.
func Migrate(t testing.TB, connection string) {
	t.Helper()
	MigrateBy(t, filepath.Join(Commands(), "almanacd"), connection)
}

// MigrateBy updates the schema to that of the version of program.
func MigrateBy(t testing.TB, program, connection string) {
	t.Helper()
	sync := CommandOf(t.Context(), program, NewFolder(t, TenHosts), "OS_DATABASE__CONNECTION="+connection)
	sync.Args = append(sync.Args, "db", "sync")
	if out, err := sync.CombinedOutput(); err != nil {
		t.Fatalf("db sync: %v\n%s", err, out)
	}
}
