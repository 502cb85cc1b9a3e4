// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
)

// TestMain sends loads if a benchmark started this process for that.
func TestMain(m *testing.M) {
	if form := os.Getenv(loadOf); form != "" {
		sendLoads(form)
	}
	built.Main(m)
}
