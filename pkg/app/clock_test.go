// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server is a database whose clock is ahead and that waits before and after it reads the clock.
type server struct{ ahead, before, after time.Duration }

func (s server) Now(context.Context) (time.Time, error) {
	time.Sleep(s.before)
	defer time.Sleep(s.after)
	return time.Now().Round(0).Add(s.ahead), nil
}

// ahead is a database that answers at once.
func ahead(by time.Duration) server { return server{ahead: by} }

// asks lets the clock look at each of the databases, at its usual interval.
func (c *clock) asks(t *testing.T, all ...server) {
	t.Helper()
	for _, db := range all {
		if err := c.set(t.Context(), db, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(clockEvery)
	}
}

// repeated returns this number of answers of one database.
func repeated(number int, db server) (all []server) {
	for range number {
		all = append(all, db)
	}
	return all
}

// tells fails unless the clock is this far ahead, and in doubt or not.
func (c *clock) tells(t *testing.T, when string, ahead time.Duration, doubt bool) {
	t.Helper()
	if c.ahead() != ahead || (c.doubt() != "") != doubt {
		t.Errorf("%s: the clock is %v ahead, in doubt %q; want %v, %t", when, c.ahead(), c.doubt(), ahead, doubt)
	}
}

func TestADatabaseThatStallsDoesNotMoveTheClock(t *testing.T) {
	for name, stalled := range map[string]server{
		"before it looks": {ahead: 3 * time.Second, before: 6 * time.Second},
		"after it looked": {ahead: 3 * time.Second, after: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c clock
				for _, db := range []server{ahead(3 * time.Second), stalled} {
					c.asks(t, db)
					c.tells(t, "after the answer", 3*time.Second, false)
				}
			})
		})
	}
}

func TestTheClockTellsInHowMuchRealTimeAnInstantBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, speed := range []int{1, 10} {
			pace, err := NewPace(speed)
			if err != nil {
				t.Fatal(err)
			}
			c := &clock{pace: pace}
			c.asks(t, ahead(1500*time.Millisecond))
			at := c.now().Add(30)
			in := c.until(at)
			time.Sleep(in - time.Millisecond)
			before := c.now()
			time.Sleep(time.Millisecond)
			if before != at-1 || c.now() != at {
				t.Errorf("at %d times real time, %v later it is %v, and a millisecond before that %v; want %v and a second less", speed, in, c.now(), before, at)
			}
		}
	})
}

func TestTheClockFollowsTheDatabaseAsFarAsItsAnswerSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		for _, db := range []server{
			ahead(-3 * time.Second),
			{ahead: time.Second, before: time.Second},
			{ahead: -2 * time.Second, after: time.Second},
		} {
			c.asks(t, db)
			c.tells(t, "after the answer", db.ahead, false)
		}
	})
}

func TestOneWrongAnswerDoesNotMoveTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.asks(t, repeated(100, ahead(0))...)
		c.asks(t, ahead(24*time.Hour))
		c.tells(t, "after one answer that is a day ahead", 0, true)
		if doubt := c.doubt(); !strings.Contains(doubt, "24h0m0s off") || !strings.Contains(doubt, "11 more") {
			t.Errorf("the doubt is %q", doubt)
		}
		c.asks(t, ahead(0))
		c.tells(t, "after the next, which is right", 0, false)
	})
}

func TestANewTimeIsTakenOnceEnoughAnswersInARowAgree(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c clock
				c.asks(t, ahead(0))
				c.asks(t, repeated(clockLooks-1, ahead(by))...)
				c.tells(t, "before the last", 0, true)
				c.asks(t, server{ahead: by, before: time.Second, after: time.Second})
				c.tells(t, "after the last", by, false)
			})
		})
	}
}

func TestWrongAnswersThatDoNotAgreeAreNeverTaken(t *testing.T) {
	for name, answers := range map[string][]server{
		"two nodes in turn":           {ahead(0), ahead(time.Hour)},
		"two wrong ones in turn":      {ahead(time.Hour), ahead(2 * time.Hour)},
		"a right one now and then":    append(repeated(clockLooks-1, ahead(time.Hour)), ahead(0)),
		"a node that never is steady": {ahead(time.Hour), ahead(time.Hour + 2*time.Second), ahead(time.Hour + 4*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c clock
				c.asks(t, ahead(0))
				for range 200 {
					c.asks(t, answers...)
					if c.ahead() != 0 {
						t.Fatalf("the clock is %v ahead", c.ahead())
					}
				}
			})
		})
	}
}

// One address may lead to nodes with different clocks: the more often the earlier time returns,
// the longer a new one must last.
func TestEachReturnToTheTimeBeforeTakesTwiceAsManyAnswersUntilAnHourWasCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.asks(t, ahead(0), ahead(time.Hour), ahead(0))
		c.asks(t, repeated(2*clockLooks-1, ahead(time.Hour))...)
		c.tells(t, "after almost twice as many", 0, true)
		c.asks(t, ahead(0))
		c.asks(t, repeated(int(clockCalm/clockEvery)+1, ahead(0))...)
		c.asks(t, repeated(clockLooks, ahead(time.Hour))...)
		c.tells(t, "after an hour that was calm", time.Hour, false)
	})
}

func TestWhereTheFirstAnswerIsFarFromThisMachinesClockItCountsAndIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.asks(t, ahead(time.Hour))
		c.tells(t, "after the first", time.Hour, true)
		c.asks(t, repeated(clockLooks-1, ahead(time.Hour))...)
		c.tells(t, "after enough", time.Hour, false)
	})
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.asks(t, ahead(time.Hour), ahead(0))
		c.tells(t, "after a second one that is as this machine's", 0, false)
	})
}
