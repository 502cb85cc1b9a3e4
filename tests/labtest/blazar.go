package labtest

import (
	"fmt"
	"testing"
)

// Blazar returns the address of the lab's OpenStack Blazar, such as http://127.0.0.1:23312/v1. The
// lab has it if its part blazar was started.
func Blazar(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("http://127.0.0.1:%d/v1", port(t, "blazar"))
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

// BlazarDSN returns the address of Blazar's database for package sql.
func BlazarDSN(t testing.TB) string {
	t.Helper()
	return dsn(port(t, "mariadb"), "blazar")
}
