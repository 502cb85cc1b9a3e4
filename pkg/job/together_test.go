// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
)

// sums lets callers share calls that take a second, up to a sum of 10. A call fails for the item 7.
type sums struct {
	job.Together[string, int]
	calls [][]int
	ended []error // of the contexts of the calls
}

var errSeven = errors.New("seven")

func newSums(stay bool) *sums {
	s := &sums{}
	s.AtOnce, s.Stay = 1, stay
	s.Fits = func(items []int, more int) bool {
		for _, one := range items {
			more += one
		}
		return more <= 10
	}
	s.Do = func(ctx context.Context, items []int) []error {
		s.calls = append(s.calls, items)
		time.Sleep(time.Second)
		s.ended = append(s.ended, ctx.Err())
		errs := make([]error, len(items))
		if i := slices.Index(items, 7); i >= 0 {
			errs[i] = errSeven
		}
		return errs
	}
	return s
}

// start calls Run for each item, in their order, and returns what awaits the errors.
func (s *sums) start(ctx context.Context, items ...int) (answers func() []error) {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = s.Run(ctx, "key", item) })
		synctest.Wait()
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func TestCallersThatWaitShareACallAsFarAsTheyFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(false)
		errs := s.start(t.Context(), 1, 5, 8, 3, 7, 20)()
		want := [][]int{{1}, {5, 3}, {8}, {7}, {20}}
		if !slices.EqualFunc(s.calls, want, slices.Equal) {
			t.Errorf("the calls are for %v, want %v", s.calls, want)
		}
		for i, err := range errs {
			if seven := i == 4; errors.Is(err, errSeven) != seven || !seven && err != nil {
				t.Errorf("caller %d has %v", i, err)
			}
		}
	})
}

func TestCallersOfDifferentKeysDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(false)
		s.Do = func(context.Context, []int) []error {
			time.Sleep(time.Second)
			return []error{nil}
		}
		begun := time.Now()
		var all sync.WaitGroup
		for _, key := range []string{"a", "b", "c"} {
			all.Go(func() { _ = s.Run(t.Context(), key, 1) })
		}
		all.Wait()
		if took := time.Since(begun); took != time.Second {
			t.Errorf("three keys take %v, want a second", took)
		}
	})
}

func TestACallerThatLeavesBeforeItsCallBeginsIsNotInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(true)
		s.start(t.Context(), 1, 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.Run(ctx, "key", 3); !errors.Is(err, job.ErrNotBegun) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it has %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := [][]int{{1}, {2}}; !slices.EqualFunc(s.calls, want, slices.Equal) {
			t.Errorf("the calls are for %v, want %v", s.calls, want)
		}
	})
}

func TestACallEndsWithTheLastOfItsCallers(t *testing.T) {
	for name, tc := range map[string]struct {
		patience [2]time.Duration // of the two callers of the second call, which lasts from 1 s to 2 s
		want     error
	}{
		"one stays": {[2]time.Duration{1500 * time.Millisecond, time.Minute}, nil},
		"none":      {[2]time.Duration{1500 * time.Millisecond, 1700 * time.Millisecond}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSums(false)
				s.start(t.Context(), 1)
				var both sync.WaitGroup
				for _, patience := range tc.patience {
					both.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						err := s.Run(ctx, "key", 2)
						if left := patience < time.Minute; (err == context.DeadlineExceeded) != left || !left && err != nil {
							t.Errorf("the caller that waits for %v has %v", patience, err)
						}
					})
				}
				both.Wait()
				time.Sleep(time.Minute)
				synctest.Wait()
				if s.ended[1] != tc.want {
					t.Errorf("the context of the call ends with %v, want %v", s.ended[1], tc.want)
				}
			})
		})
	}
}

func TestACallerThatStaysHasTheResultOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(true)
		s.start(t.Context(), 1)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if err := s.Run(ctx, "key", 7); !errors.Is(err, errSeven) {
			t.Errorf("it has %v, want %v", err, errSeven)
		}
	})
}

// A panic belongs to the request in which it happens: nothing may end the process, and all other requests, instead.
func TestAPanicReachesEachCallerOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(true)
		do := s.Do
		s.Do = func(ctx context.Context, items []int) []error {
			errs := do(ctx, items)
			if slices.Contains(items, 2) {
				panic("two")
			}
			return errs
		}
		panics := make([]string, 4)
		var all sync.WaitGroup
		for i, item := range []int{1, 2, 3, 9} {
			all.Go(func() {
				defer func() { panics[i] = fmt.Sprint(recover()) }()
				_ = s.Run(t.Context(), "key", item) // the panic is what matters
			})
			synctest.Wait()
		}
		all.Wait()
		for i, want := range []bool{false, true, true, false} {
			if got := strings.HasPrefix(panics[i], "two\n") && strings.Contains(panics[i], "together_test.go"); got != want {
				t.Errorf("caller %d: %s", i, panics[i])
			}
		}
		if err := s.Run(t.Context(), "key", 4); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}
