// SPDX-License-Identifier: Apache-2.0

// Package job runs periodic work. A Job is a value with one step, so that a test
// calls the step and never waits. The package also has what such steps share: work
// under a lease, reads that serve several callers, pauses and wake-ups.
package job

import (
	"context"
	"log/slog"
	"time"
)

// Job is work that is repeated.
type Job struct {
	Name string
	// Every is the time from the end of a step to the beginning of the next.
	Every time.Duration
	// Step does the work once. Run logs its error, and the next step tries again.
	Step func(ctx context.Context) error
	// Wake starts the next step at once when it receives a value; see Poke. nil means that nothing
	// does.
	Wake <-chan struct{}
	// Due returns in how much time there is work to do, and false if that is unknown. The next step
	// then begins at that time, if that is before Every. Work that a step has left undone waits for
	// Every. It may be nil.
	Due func() (in time.Duration, known bool)
}

// logRepeat is the approximate interval in which a failure that lasts is logged again.
const logRepeat = time.Minute

// Run does the job's steps until ctx ends. The first begins at once.
func (j Job) Run(ctx context.Context, log *slog.Logger) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-j.Wake:
		}
		switch err := j.Step(ctx); {
		case err == nil && failures > 0:
			failures = 0
			log.Info("periodic work succeeds again", "job", j.Name)
		case err != nil && ctx.Err() == nil:
			if failures%max(1, int(logRepeat/j.Every)) == 0 {
				log.Error("periodic work failed; retrying", "job", j.Name, "in", j.Every, "error", err)
			}
			failures++
		}
		timer.Reset(j.pause())
	}
}

// pause returns the time until the next step.
func (j Job) pause() time.Duration {
	if j.Due != nil {
		if in, known := j.Due(); known && in > 0 {
			return min(in, j.Every)
		}
	}
	return j.Every
}

// Poke puts a value into a channel with a capacity of one, unless it contains one already. It never
// waits.
func Poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Pause waits for d. It returns the error of ctx if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
