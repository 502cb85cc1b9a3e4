package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// BuildFailureWeigher counts the builds that have failed on a host since the last that
// did not (nova/scheduler/weights/compute.py). Its multiplier is negated and large, so
// that such a host is the last to be taken.
type BuildFailureWeigher struct{}

// Name is the weigher's name.
func (BuildFailureWeigher) Name() string { return "BuildFailureWeigher" }

// Weigh gives the number of failed builds.
func (BuildFailureWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	count := s.FailedBuilds()
	for k, i := range hosts {
		raw[k] = float64(count[i])
	}
}
