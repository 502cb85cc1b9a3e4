package app

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// server is a database whose clock is ahead and that takes its time before and after
// it looks at the clock.
type server struct{ ahead, before, after time.Duration }

func (s server) Now(context.Context) (time.Time, error) {
	time.Sleep(s.before)
	defer time.Sleep(s.after)
	return time.Now().Add(s.ahead), nil
}

func TestADatabaseThatStallsDoesNotMoveTheClock(t *testing.T) {
	for name, stalled := range map[string]server{
		"before it looks": {ahead: 3 * time.Second, before: 6 * time.Second},
		"after it looked": {ahead: 3 * time.Second, after: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c clock
				for _, db := range []server{{ahead: 3 * time.Second}, stalled} {
					if err := c.set(t.Context(), db, slog.New(slog.DiscardHandler)); err != nil {
						t.Fatal(err)
					}
					if c.ahead() != 3*time.Second {
						t.Errorf("after an answer in %v the database is %v ahead, want 3s", db.before+db.after, c.ahead())
					}
				}
			})
		})
	}
}

func TestTheClockFollowsTheDatabaseAsFarAsItsAnswerSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		for _, step := range []struct {
			db   server
			want time.Duration
		}{
			{server{ahead: -10 * time.Second}, -10 * time.Second},
			{server{ahead: 60 * time.Second, before: time.Second}, 60 * time.Second},
			{server{ahead: 20 * time.Second, after: time.Second}, 20 * time.Second},
		} {
			if err := c.set(t.Context(), step.db, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if c.ahead() != step.want {
				t.Errorf("the database is %v ahead, want %v", c.ahead(), step.want)
			}
		}
	})
}
