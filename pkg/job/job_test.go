// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
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

func TestAJobStepsWhenWorkIsDueButWaitsForItsPeriodWithWorkThatIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin, steps := time.Now(), []time.Duration{}
		due := []time.Duration{7 * time.Second, -time.Second, time.Hour, 3 * time.Second}
		j := job.Job{
			Name: "punctual", Every: time.Minute,
			Step: func(context.Context) error {
				if steps = append(steps, time.Since(begin)); len(steps) == 6 {
					cancel()
				}
				return nil
			},
			Due: func() (in time.Duration, known bool) {
				if len(steps) > len(due) {
					return 0, false
				}
				return due[len(steps)-1], true
			},
		}
		j.Run(ctx, slog.New(slog.DiscardHandler))
		want := []time.Duration{0, 7 * time.Second, 67 * time.Second, 127 * time.Second, 130 * time.Second, 190 * time.Second}
		if !slices.Equal(steps, want) {
			t.Errorf("steps at %v, want %v", steps, want)
		}
	})
}

func TestTroubleThatLastsIsLoggedOnceAMinuteAndItsEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var written bytes.Buffer
		begin := time.Now()
		j := job.Job{Name: "count", Every: time.Second, Step: func(context.Context) error {
			switch past := time.Since(begin); {
			case past < 150*time.Second:
				return errors.New("the database is away")
			case past > 200*time.Second:
				cancel()
			}
			return nil
		}}
		j.Run(ctx, slog.New(slog.NewTextHandler(&written, nil)))
		if failed, better := strings.Count(written.String(), "is away"), strings.Count(written.String(), "succeeds again"); failed != 3 || better != 1 {
			t.Errorf("150 s of trouble are logged %d times and their end %d times, want 3 and 1:\n%s", failed, better, &written)
		}
	})
}
