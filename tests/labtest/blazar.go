package labtest

import (
	"fmt"
	"os"
	"testing"
)

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
