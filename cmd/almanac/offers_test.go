// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestARangeOfDurationsHasItsUnitAtBothEnds(t *testing.T) {
	for text, want := range map[string]v1.DurationRange{
		"2h-6h": {Min: 7200, Max: 21600}, "90-120": {Min: 90, Max: 120}, "3h": {Min: 10800, Max: 10800},
	} {
		var d durations
		if err := d.Set(text); err != nil || v1.DurationRange(d) != want {
			t.Errorf("%s is %v to %v, %v", text, d.Min, d.Max, err)
		}
	}
	var d durations
	if err := d.Set("2-6h"); err == nil || !strings.Contains(err.Error(), "such as 2h-8h") {
		t.Errorf("2-6h, which would be two seconds to six hours: %v", err)
	}
}
