// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// MostSpeed is the greatest speed of a Pace. Beyond it, steps take longer than what they wait for.
const MostSpeed = 600

// leastInterval is the shortest real time between two steps of a job at a pace above real time, so
// that the jobs leave the machine to the requests.
const leastInterval = 20 * time.Millisecond

// Pace is how fast time passes in a process: its clock, and the waits by that clock. Limits for the
// answers of other services, leases between replicas and limits of requests do not follow it: they
// are real time. The zero Pace is real time.
type Pace struct {
	speed int       // 0 is real time
	begun time.Time // when both times were the same
}

// NewPace returns a Pace at which time passes speed times as fast from now on.
func NewPace(speed int) (Pace, error) {
	if speed < 1 || speed > MostSpeed {
		return Pace{}, fault.Field("speed", "must be from 1 to %d, not %d", MostSpeed, speed)
	}
	if speed == 1 {
		return Pace{}, nil
	}
	return Pace{speed, time.Now()}, nil
}

// Speed returns how many times as fast as real time the time passes.
func (p Pace) Speed() int { return max(1, p.speed) }

// Now returns the present time.
func (p Pace) Now() time.Time { return p.at(time.Now()) }

// at returns the time at a real time.
func (p Pace) at(real time.Time) time.Time {
	if p.speed == 0 {
		return real
	}
	return p.begun.Round(0).Add(real.Sub(p.begun) * time.Duration(p.speed))
}

// Wait waits for d. It returns the error of ctx if ctx ends first.
func (p Pace) Wait(ctx context.Context, d time.Duration) error {
	return job.Pause(ctx, d/time.Duration(p.Speed()))
}

// interval returns the real time between the steps of a job that waits for d between them.
func (p Pace) interval(d time.Duration) time.Duration {
	return max(d/time.Duration(p.Speed()), min(d, leastInterval))
}
