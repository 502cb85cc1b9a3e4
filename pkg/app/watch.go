package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// watchedJob is a job of which it is known how it goes.
type watchedJob struct {
	job.Job

	mu        sync.Mutex
	err       error
	succeeded time.Time
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

// late is how long after its time a job that does not come to an end is in trouble.
const late = 30 * time.Second

// probe says whether the job goes well.
func (w *watchedJob) probe() api.Probe {
	return api.Probe{Name: w.Name, Check: func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			return w.err
		}
		if since := time.Since(w.succeeded); !w.succeeded.IsZero() && since > w.Every+late {
			return fmt.Errorf("has not come to an end for %v", since.Round(time.Second))
		}
		return nil
	}}
}
