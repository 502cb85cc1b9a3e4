// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/tests/oslotest"
	"github.com/almanac-cloud/almanac/tests/oslotest/memory"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	oslotest.Run(t, func(*testing.T) oslotest.Transport { return memory.New() })
}
