// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"os"
	"testing"
)

// Long skips a test that takes too long for make test, unless ALMANAC_TEST_LONG is set.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("ALMANAC_TEST_LONG") == "" {
		t.Skip("make test-long runs it")
	}
}
