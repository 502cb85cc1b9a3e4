// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
)

func TestMain(m *testing.M) { built.Main(m) }
