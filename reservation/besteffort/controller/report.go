// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

const (
	// soon is the time until the next step while an operation is in progress.
	soon = time.Second
	// planAge is for how many seconds after the next step is due a plan is still shown.
	planAge = 5
)

// report counts the VMs of the requests by phase. If an operation is in progress for one, it
// schedules the next step soon.
func (c *Controller) report(requests []state.Request) {
	count, busy := map[besteffort.Phase]int{}, false
	for i := range requests {
		for j := range requests[i].VMs {
			switch p := requests[i].VMs[j].Phase; p {
			case besteffort.Done, besteffort.Failed:
			case besteffort.Waiting, besteffort.Running, besteffort.Suspended:
				count[p]++
			default:
				count[p]++
				busy = true
			}
		}
	}
	c.mu.Lock()
	c.count = count
	c.mu.Unlock()
	if busy && c.StepEvery > soon {
		time.AfterFunc(soon, c.Wake)
	}
}

// Count returns the number of VMs in each phase at the last step of this process; nil if another
// process made it.
func (c *Controller) Count() map[besteffort.Phase]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// publish stores the expectations of the plan made at now, for Expected.
func (c *Controller) publish(expected map[string]besteffort.Expectation, now span.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected, c.planned = expected, now
}

// Expected returns the expectations of the last plan. known is false if this process did not make
// it, or made it long ago.
func (c *Controller) Expected() (expected map[string]besteffort.Expectation, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expected, c.expected != nil && c.Now() < c.planned.Add(int64(3*c.StepEvery/time.Second)+planAge)
}
