// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// TimeOf returns the time of an instant; nil for 0 and Forever, which stand for no time.
func TimeOf(at span.Instant) *time.Time {
	if at == 0 || at == span.Forever {
		return nil
	}
	return new(at.Time())
}

// InstantOf returns the instant of a time, rounded down to the second; nil if it is absent. The zero instant means
// "absent" in the domain, so InstantOf returns the next second for it: both are long past.
func InstantOf(t *time.Time) *span.Instant {
	if t == nil {
		return nil
	}
	at := span.At(*t)
	if at == 0 {
		at = 1
	}
	return &at
}

// Hours returns seconds as hours.
func Hours(seconds int64) float64 { return float64(seconds) / 3600 }
