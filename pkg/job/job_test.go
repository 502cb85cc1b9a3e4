package job_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
)

func TestAJobStepsAtOnceThenEveryPeriodAlsoAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin, steps := time.Now(), []time.Duration{}
		j := job.Job{Name: "count", Every: time.Minute, Step: func(context.Context) error {
			steps = append(steps, time.Since(begin))
			if len(steps) == 3 {
				cancel()
			}
			return errors.New("fails each time")
		}}
		j.Run(ctx, slog.New(slog.DiscardHandler))
		if len(steps) != 3 || steps[0] != 0 || steps[1] != time.Minute || steps[2] != 2*time.Minute {
			t.Errorf("steps at %v, want 0, 1m, 2m", steps)
		}
	})
}

func TestAJobThatIsWokenDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		wake := make(chan struct{}, 1)
		begin, last := time.Now(), time.Duration(0)
		steps := 0
		j := job.Job{Name: "woken", Every: time.Hour, Wake: wake, Step: func(context.Context) error {
			last = time.Since(begin)
			if steps++; steps == 1 {
				wake <- struct{}{}
			} else {
				cancel()
			}
			return nil
		}}
		j.Run(ctx, slog.New(slog.DiscardHandler))
		if steps != 2 || last != 0 {
			t.Errorf("%d steps, the last after %v; want 2 at once", steps, last)
		}
	})
}
