// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

func TestTheGuideScoresEachForecaster(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(energy.Forecasters)), rows(t, "../../docs/energy-forecast.md", `\w+`, "")); diff != "" {
		t.Errorf("(-code +guide):\n%s", diff)
	}
}
