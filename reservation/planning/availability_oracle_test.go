// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The windows of an availability are the starts at which every distribution over the hosts is tried and one lies as asked. What
// is free at the start of a window can lie so, and one more cannot.
//
//make:test-drawn
func TestTheAvailabilityIsWhenHostsCanLieAsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRacks(t)
		a, o := c.drawTerms(), c.drawWindow()
		req := c.ask(a, o)
		windows, _, err := planning.Availability(c.view(), req, 1000)
		if refusal, refused := errors.AsType[*reservation.Refusal](err); err != nil && !refused {
			t.Fatalf("%+v: %v", a, err)
		} else if refused && c.first(a, o, o.last) >= 0 {
			t.Fatalf("%v, though there is a start", refusal)
		}
		for start := o.first; start <= o.last; start++ {
			at := c.span(start, 1).Start
			inside := slices.ContainsFunc(windows, func(w calendar.Window) bool { return w.Start <= at && at <= w.LatestStart })
			if inside != c.accepts(a, start, o.duration) {
				t.Fatalf("%d is in a window: %v of %v", start, inside, windows)
			}
		}
		for _, w := range windows {
			if start := int64(w.Start-c.now) / c.scale; a.Kind == reservation.Hosts && c.now.Add(c.scale*start) == w.Start {
				if free := c.roomLying(a, start, o.duration); int64(w.Free) != free {
					t.Fatalf("%d are free at %d, not %d", free, start, w.Free)
				}
			}
		}
		if len(windows) == 0 && err == nil {
			c.checkNext(a, o, req)
		}
	})
}

// checkNext checks the first start after a window without any.
func (c *cloud) checkNext(a reservation.Terms, o window, req reservation.Request) {
	next, err := planning.NextStart(c.view(), req)
	if err != nil {
		c.t.Fatal(err)
	}
	o.first = o.last + 1
	want := c.first(a, o, 3*mostTicks)
	if want < 0 && next != 0 || want >= 0 && (next == 0 || next > c.span(want, 1).Start) {
		c.t.Fatalf("the next start is %v, want %d", next, want)
	}
	if next == 0 {
		return
	}
	req.Start, req.End = next, next.Add(req.Duration)
	if p, err := planning.NewPlan(c.view(), req); err != nil || p.Span != span.New(next, req.Duration) {
		c.t.Fatalf("the next start %v is refused: %v", next, err)
	}
}
