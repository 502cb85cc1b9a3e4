package weighers

import "github.com/almanac-cloud/almanac/inventory"

// BuildFailureWeigher counts the builds that failed on a host since the last success
// (nova/scheduler/weights/compute.py). Its multiplier is negated and large, so that such a host
// is chosen last.
type BuildFailureWeigher struct{ fixed[failedBuilds] }

func (*BuildFailureWeigher) Name() string { return "BuildFailureWeigher" }

type failedBuilds struct{}

func (failedBuilds) of(h *inventory.HostState) float64 {
	return float64(h.FailedBuilds)
}
