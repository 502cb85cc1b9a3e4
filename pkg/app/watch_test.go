// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestAJobThatNeverCameToAnEndIsInTroubleWhenItIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := watch(job.Job{Name: "hangs", Every: 10 * time.Second, Step: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		time.Sleep(time.Hour)
		if err := w.trouble(); err != nil {
			t.Errorf("before it runs: %v", err)
		}
		go w.run(ctx, slog.New(slog.DiscardHandler))
		time.Sleep(10*time.Second + late)
		synctest.Wait()
		if err := w.trouble(); err != nil {
			t.Errorf("when its time has just come: %v", err)
		}
		time.Sleep(time.Second)
		if err := w.trouble(); err == nil || err.Error() != "has not finished for 41s" {
			t.Errorf("a second later: %v", err)
		}
		if !w.lastSuccess().IsZero() {
			t.Errorf("it succeeded at %v", w.lastSuccess())
		}
		cancel()
		synctest.Wait()
	})
}

func TestAJobIsInTroubleFromAFailureToTheNextSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		failure := errors.New("the disk is full")
		steps := 0
		w := watch(job.Job{Name: "second of three", Every: time.Minute, Step: func(context.Context) error {
			if steps++; steps == 2 {
				return failure
			}
			return nil
		}})
		begun := time.Now()
		go w.run(ctx, slog.New(slog.DiscardHandler))
		for minute, want := range []error{nil, failure, nil} {
			synctest.Wait()
			if err := w.trouble(); !errors.Is(err, want) {
				t.Errorf("after %d minutes: %v, want %v", minute, err, want)
			}
			if last := w.lastSuccess().Sub(begun); minute == 1 && last != 0 {
				t.Errorf("after the failure the last success is that of %v", last)
			}
			time.Sleep(time.Minute)
		}
		cancel()
		synctest.Wait()
	})
}

// changes are changes that have waited since an instant; away is the error of asking for them.
type changes struct {
	count int
	first span.Instant
	away  error
}

func (c changes) Waiting(context.Context) (int, span.Instant, error) { return c.count, c.first, c.away }

func TestWhatWaitsIsToldAsItWasWhenTheDatabaseLastAnswered(t *testing.T) {
	var w waiting
	now := func() span.Instant { return 1000 }
	for _, step := range []struct {
		found      changes
		wantCount  int
		wantOldest int64
	}{
		{changes{count: 7, first: 940}, 7, 60},
		{changes{away: errors.New("away")}, 7, 60},
		{changes{count: 1, first: 1001}, 1, 0}, // the database's clock was set back
		{changes{}, 0, 0},
	} {
		if err := w.look(t.Context(), step.found, now); !errors.Is(err, step.found.away) {
			t.Errorf("look: %v", err)
		}
		if count, oldest := w.get(); count != step.wantCount || oldest != step.wantOldest {
			t.Errorf("%d wait for %d s, want %d for %d s", count, oldest, step.wantCount, step.wantOldest)
		}
	}
}
