// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
)

var errAway = errors.New("the store is away")

// counter is a source whose reads take a second; each returns its number.
type counter struct {
	begun int
	fails bool
	hangs bool
}

func (c *counter) shared() *job.Shared[int] {
	return &job.Shared[int]{Read: c.read, Limit: time.Minute}
}

func (c *counter) read(ctx context.Context) (int, error) {
	c.begun++
	number, fails, pause := c.begun, c.fails, time.Second
	if c.hangs {
		pause = time.Hour
	}
	if err := job.Pause(ctx, pause); err != nil {
		return 0, err
	}
	if fails {
		return 0, errAway
	}
	return number, nil
}

func TestOneReadServesAllWhoAskedBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		s, begun := c.shared(), time.Now()
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond) // the first alone, then ten each second
				asked := int(time.Since(begun) / time.Second)
				number, err := s.Get(t.Context())
				if want := asked + 2; i > 0 && i%10 > 0 && number != want || i == 0 && number != 1 || err != nil {
					t.Errorf("the caller after %d00 ms got read %d, %v", i, number, err)
				}
			})
		}
		all.Wait()
		if c.begun != 4 {
			t.Errorf("%d reads, want 4", c.begun)
		}
	})
}

func TestACallerThatLeavesTakesTheReadFromNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		s := c.shared()
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.Get(impatient); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the caller that left got %v", err)
			}
		})
		all.Go(func() {
			if number, err := s.Get(t.Context()); err != nil || number > 2 {
				t.Errorf("the other got read %d, %v", number, err)
			}
		})
		all.Wait()
		time.Sleep(2 * time.Second) // the read ends although nobody waits for it
	})
}

func TestAFailedReadFailsForThoseWhoShareItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := counter{fails: true}
		s := c.shared()
		if _, err := s.Get(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
		c.fails = false
		if number, err := s.Get(t.Context()); number != 2 || err != nil {
			t.Errorf("then got read %d, %v", number, err)
		}
	})
}

func TestAReadThatHangsEndsAndTheNextOneBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := counter{hangs: true}
		s, begun := c.shared(), time.Now()
		if _, err := s.Get(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		c.hangs = false
		if number, err := s.Get(t.Context()); number != 2 || err != nil {
			t.Errorf("then got read %d, %v", number, err)
		}
	})
}

func TestAYoungReadServesThoseWhoComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counter
		s := c.shared()
		s.Young = 3 * time.Second
		begun := time.Now()
		for _, call := range []struct{ second, want int }{{0, 1}, {2, 1}, {4, 2}, {6, 2}, {8, 3}} {
			time.Sleep(time.Until(begun.Add(time.Duration(call.second) * time.Second)))
			if number, err := s.Get(t.Context()); number != call.want || err != nil {
				t.Errorf("the call at second %d got read %d, %v; want %d", call.second, number, err, call.want)
			}
		}
	})
}

func TestAReadThatFailedServesNobodyWhoComesLaterHoweverYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := counter{fails: true}
		s := c.shared()
		s.Young = time.Minute
		if _, err := s.Get(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
		c.fails = false
		if number, err := s.Get(t.Context()); number != 2 || err != nil {
			t.Errorf("then got read %d, %v", number, err)
		}
	})
}
