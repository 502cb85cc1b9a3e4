// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"strconv"
	"testing"
)

func TestSoManyCallersAreRemembered(t *testing.T) {
	l := newLimits(1, 1)
	for i := range 25_000 {
		l.take(strconv.Itoa(i), 0)
	}
	if got := l.callers.Len(); got != 10_000 {
		t.Errorf("of 25000 callers %d are remembered, want 10000", got)
	}
}
