package weighers

import "github.com/almanac-cloud/almanac/inventory"

// BuildFailureWeigher counts the builds that have failed on a host since the last that
// did not (nova/scheduler/weights/compute.py). Its multiplier is negated and large, so
// that such a host is the last to be taken.
type BuildFailureWeigher struct{ fixed[failedBuilds] }

// Name is the weigher's name.
func (*BuildFailureWeigher) Name() string { return "BuildFailureWeigher" }

type failedBuilds struct{}

func (failedBuilds) of(h *inventory.HostState) float64 {
	return float64(h.FailedBuilds)
}
