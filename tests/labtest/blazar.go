package labtest

import (
	_ "embed" // the tables
	"fmt"
	"os"
	"strings"
	"testing"
)

// blazarTables are the tables of Blazar 15, as `blazar-db-manage upgrade head` makes them in MariaDB.
//
//go:embed testdata/blazar-553383923ca0.sql
var blazarTables string

// BlazarTables creates a database with the empty tables of a Blazar and returns its SQLAlchemy URL.
func BlazarTables(t testing.TB) (url string) {
	t.Helper()
	url = Database(t)
	statements := []string{"SET FOREIGN_KEY_CHECKS = 0"} // in the order of their names, tables refer to later ones
	statements = append(statements, strings.Split(strings.TrimSuffix(strings.TrimSpace(blazarTables), ";"), ";\n")...)
	Execute(t, url, append(statements, "INSERT INTO alembic_version VALUES ('553383923ca0')")...)
	return url
}

// Blazar returns the address of the API of the lab's Blazar and the URL of its database. The test is
// skipped unless ALMANAC_TEST_BLAZAR is set, as `make test-blazar` does.
func Blazar(t testing.TB) (url, database string) {
	t.Helper()
	if os.Getenv("ALMANAC_TEST_BLAZAR") == "" {
		t.Skip("`make test-blazar` runs this, in a lab with Blazar")
	}
	return fmt.Sprintf("http://127.0.0.1:%d/v1", port(t, "blazar")), databaseURL(port(t, "mariadb"), "blazar")
}

// Through returns r with another address for a service.
func (r *REST) Through(service, url string) *REST {
	other := *r
	other.endpoints = map[string]string{service: url}
	return &other
}
