package controller

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

const (
	// soon is when the next step follows while something is under way.
	soon = time.Second
	// planAge is for how many seconds after the next step is due a plan is still shown.
	planAge = 5
)

// report counts the VMs of requests, and schedules the next step soon where one is under way.
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

// Count returns how many VMs were in each phase at the last step, where it was this process's.
func (c *Controller) Count() map[besteffort.Phase]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// publish shows what the plan of now expects, until the next one.
func (c *Controller) publish(expected map[string]besteffort.Expectation, now span.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected, c.planned = expected, now
}

// Expected returns what the last plan expects. known is false where this process did not make
// it, or made it long ago.
func (c *Controller) Expected() (expected map[string]besteffort.Expectation, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expected, c.expected != nil && c.Now() < c.planned.Add(int64(3*c.StepEvery/time.Second)+planAge)
}
