// SPDX-License-Identifier: Apache-2.0

package span_test

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestTouchingSpansDoNotOverlap(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b span.Span
		want bool
	}{
		"apart":            {span.Span{Start: 0, End: 10}, span.Span{Start: 20, End: 30}, false},
		"back to back":     {span.Span{Start: 0, End: 10}, span.Span{Start: 10, End: 20}, false},
		"share one second": {span.Span{Start: 0, End: 11}, span.Span{Start: 10, End: 20}, true},
		"one in the other": {span.Span{Start: 0, End: 30}, span.Span{Start: 10, End: 20}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Overlaps(tc.b); got != tc.want {
				t.Errorf("%v overlaps %v: got %v, want %v", tc.a, tc.b, got, tc.want)
			}
			if got := tc.b.Overlaps(tc.a); got != tc.want {
				t.Errorf("the relation is symmetric, but in the other order it is %v", got)
			}
		})
	}
}

func TestTheEndOfASpanIsOutsideIt(t *testing.T) {
	s := span.New(10, 5)
	for at, want := range map[span.Instant]bool{9: false, 10: true, 14: true, 15: false} {
		if got := s.Contains(at); got != want {
			t.Errorf("%d in %v: got %v, want %v", at, s, got, want)
		}
	}
}

func TestAddStopsAtForever(t *testing.T) {
	if got := span.Forever.Add(1); got != span.Forever {
		t.Errorf("forever + 1 = %d", got)
	}
	if got := span.Instant(5).Add(int64(span.Forever)); got != span.Forever {
		t.Errorf("5 + the largest duration = %d", got)
	}
}

func TestAnInstantIsWrittenInUTC(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	at := span.At(time.Date(2026, 12, 1, 10, 0, 0, 999, berlin))
	if got, want := at.String(), "2026-12-01T09:00:00Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
