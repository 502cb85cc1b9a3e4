// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
)

// watchedJob is a job that remembers the result of its last step.
type watchedJob struct {
	job.Job

	mu        sync.Mutex
	err       error
	begun     time.Time // zero before run
	succeeded time.Time // zero before the first success
}

func watch(j job.Job) *watchedJob {
	w := &watchedJob{Job: j}
	step := j.Step
	w.Step = func(ctx context.Context) error {
		err := step(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err = err; err == nil {
			w.succeeded = time.Now()
		}
		return err
	}
	return w
}

// run runs the job's steps until ctx ends.
func (w *watchedJob) run(ctx context.Context, log *slog.Logger) {
	w.mu.Lock()
	w.begun = time.Now()
	w.mu.Unlock()
	w.Run(ctx, log)
}

// late is how long a step may last beyond the job's interval before the job is in trouble.
const late = 30 * time.Second

// trouble returns what is wrong with the job; nil if it runs well.
func (w *watchedJob) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	well := w.begun
	if w.succeeded.After(well) {
		well = w.succeeded
	}
	if since := time.Since(well); !well.IsZero() && since > w.Every+late {
		return fmt.Errorf("has not finished for %v", since.Round(time.Second))
	}
	return nil
}

// lastSuccess returns when the last successful step ended; zero before the first.
func (w *watchedJob) lastSuccess() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.succeeded
}
