// Package job runs periodic work. A Job is a value with one step, so that a test
// calls the step and never waits. It also has the pause of work that is tried again.
package job

import (
	"context"
	"log/slog"
	"time"
)

// Job is work that is done again and again.
type Job struct {
	Name string
	// Every is the time from the end of a step to the beginning of the next.
	Every time.Duration
	// Step does the work once. Its error is logged, and the next step tries again.
	Step func(ctx context.Context) error
	// Wake, where it is not nil, lets the next step begin at once.
	Wake <-chan struct{}
}

// repeat is about after how long the log has trouble that lasts again.
const repeat = time.Minute

// Run does the job's steps until ctx ends; the first at once.
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
			log.Info("periodic work goes on again", "job", j.Name)
		case err != nil && ctx.Err() == nil:
			if failures%max(1, int(repeat/j.Every)) == 0 {
				log.Error("periodic work failed; it is tried again", "job", j.Name, "in", j.Every, "error", err)
			}
			failures++
		}
		timer.Reset(j.Every)
	}
}

// Pause waits, unless ctx ends before: then it gives the context's error.
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
