// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// IoOpsWeigher counts the instances that do heavy work on a host, such as builds and migrations
// (nova/scheduler/weights/io_ops.py). With its multiplier, which is negative by default, it
// prefers less busy hosts.
type IoOpsWeigher struct{}

func (IoOpsWeigher) Name() string { return "IoOpsWeigher" }

// Weigh sets the number of heavy operations.
func (IoOpsWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	count := s.IOOps()
	for k, i := range hosts {
		raw[k] = float64(count[i])
	}
}

// NumInstancesWeigher counts the instances on a host (nova/scheduler/weights/num_instances.py).
// A positive multiplier packs instances, a negative one spreads them; the default does nothing.
type NumInstancesWeigher struct{}

func (NumInstancesWeigher) Name() string { return "NumInstancesWeigher" }

// Weigh sets the number of instances on the host and on their way to it.
func (NumInstancesWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	for k, i := range hosts {
		raw[k] = float64(len(s.InstancesOn(i)))
	}
}
