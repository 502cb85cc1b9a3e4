package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// Forecaster says how many hosts will be in use. It is told of each measurement in the
// order of time.
type Forecaster interface {
	Observe(at span.Instant, inUse int)
	// Forecast gives how many will be in use at most until ahead seconds after the last
	// measurement; 0 before the first.
	Forecast(ahead int64) int
}
