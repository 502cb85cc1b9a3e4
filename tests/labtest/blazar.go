// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	_ "embed" // the tables
	"fmt"
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

// Blazar returns the address of the lab's OpenStack Blazar, such as http://127.0.0.1:23312/v1, and the
// URL of its database. The lab has it if its part blazar was started.
func Blazar(t testing.TB) (url, database string) {
	t.Helper()
	return fmt.Sprintf("http://127.0.0.1:%d/v1", port(t, "blazar")), databaseURL(port(t, "mariadb"), "blazar")
}

// Through returns r with another address for a service.
func (r *REST) Through(service, url string) *REST {
	other := *r
	other.endpoints = map[string]string{service: url}
	return &other
}

// StopBlazar stops the lab's Blazar for good and removes it from the catalog.
func StopBlazar(t testing.TB) {
	t.Helper()
	for _, service := range []string{"blazar-api", "blazar-manager"} {
		lab(t, "stop", service)
	}
	admin := OpenStack(t).REST(t, Admin)
	var found struct{ Services []struct{ ID string } }
	admin.Must("GET", "identity", "/services?type=reservation&name=blazar", nil, &found)
	for _, s := range found.Services {
		admin.Must("DELETE", "identity", "/services/"+s.ID, nil, nil)
	}
}
