// SPDX-License-Identifier: Apache-2.0

package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// Forecaster predicts how many hosts will be in use. Observe receives the measurements sorted by
// time.
type Forecaster interface {
	Observe(at span.Instant, inUse int)
	// Forecast returns the largest number of hosts predicted to be in use until ahead
	// seconds after the last measurement; 0 before the first.
	Forecast(ahead int64) int
}
