// SPDX-License-Identifier: Apache-2.0

package span_test

import (
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
)

const lastSecond = 60

func drawSpan(t *rapid.T, label string) span.Span {
	return span.Span{
		Start: span.Instant(rapid.IntRange(0, lastSecond).Draw(t, label+" from")),
		End:   span.Instant(rapid.IntRange(0, lastSecond).Draw(t, label+" to")),
	}
}

// The oracle is a tally of single seconds.
func TestACountKnowsEverySecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c span.Count
		var tally [lastSecond + 1]int
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s, n := drawSpan(t, "add"), rapid.IntRange(-3, 5).Draw(t, "n")
				before, levels := c, tally
				c = c.Add(s, n)
				for at := s.Start; at < s.End; at++ {
					tally[at] += n
				}
				for at := range levels {
					if got := before.At(span.Instant(at)); got != levels[at] {
						t.Fatalf("the count from before an addition has %d at %d, had %d", got, at, levels[at])
					}
				}
			},
			"": func(t *rapid.T) {
				for at, want := range tally {
					if got := c.At(span.Instant(at)); got != want {
						t.Fatalf("%d at %d, want %d", got, at, want)
					}
				}
				s := drawSpan(t, "asked")
				checkMost(t, c, s, tally[:])
				checkSteps(t, c, s)
				checkAtMost(t, c, s, rapid.IntRange(-3, 8).Draw(t, "at most"), tally[:])
			},
		})
	})
}

func checkMost(t *rapid.T, c span.Count, s span.Span, tally []int) {
	t.Helper()
	want := 0
	if !s.Empty() {
		want = slices.Max(tally[s.Start:s.End])
	}
	if got := c.Most(s); got != want {
		t.Fatalf("most in %v is %d, want %d", s, got, want)
	}
}

func checkSteps(t *rapid.T, c span.Count, s span.Span) {
	t.Helper()
	begin, before := s.Start, 0
	for part, level := range c.Steps(s) {
		if part.Start != begin || part.Empty() || begin != s.Start && level == before {
			t.Fatalf("a step of %d in %v comes after %d until %d", level, part, before, begin)
		}
		for at := part.Start; at < part.End; at++ {
			if c.At(at) != level {
				t.Fatalf("a step has %d in %v, and there are %d at %d", level, part, c.At(at), at)
			}
		}
		begin, before = part.End, level
	}
	if !s.Empty() && begin != s.End {
		t.Fatalf("the steps of %v end at %d", s, begin)
	}
}

func checkAtMost(t *rapid.T, c span.Count, s span.Span, n int, tally []int) {
	t.Helper()
	var want []span.Span
	for at := s.Start; at < s.End; at++ {
		last := len(want) - 1
		switch {
		case tally[at] > n:
		case last >= 0 && want[last].End == at:
			want[last].End = at + 1
		default:
			want = append(want, span.Span{Start: at, End: at + 1})
		}
	}
	if diff := gocmp.Diff(want, c.AtMost(n, s)); diff != "" {
		t.Fatalf("at most %d in %v (-want +got):\n%s", n, s, diff)
	}
}

// The same spans in another order, and spans that were added and removed, leave an equal count.
func TestACountForgetsHowItCameAbout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type addition struct {
			s span.Span
			n int
		}
		var list []addition
		for range rapid.IntRange(0, 20).Draw(t, "additions") {
			list = append(list, addition{drawSpan(t, "add"), rapid.IntRange(1, 3).Draw(t, "n")})
		}
		var one, other span.Count
		for _, a := range list {
			one = one.Add(a.s, a.n)
		}
		passing := drawSpan(t, "passing")
		other = other.Add(passing, 2)
		for _, a := range rapid.Permutation(list).Draw(t, "order") {
			other = other.Add(a.s, a.n)
		}
		other = other.Add(passing, -2)
		if !reflect.DeepEqual(one, other) {
			t.Fatal("the counts are not the same")
		}
		for _, a := range list {
			one = one.Add(a.s, -a.n)
		}
		if !one.IsZero() {
			t.Fatal("something is left of a count that was taken back")
		}
	})
}

func TestACountOfPartsEqualsTheCountToWhichTheyWereAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var added span.Count
		spans, numbers := make([]span.Span, rapid.IntRange(0, 40).Draw(t, "parts")), make([]int, 40)
		for i := range spans {
			spans[i], numbers[i] = drawSpan(t, "part"), rapid.IntRange(-2, 2).Draw(t, "n")
			added = added.Add(spans[i], numbers[i])
		}
		at := span.CountOf(func(yield func(span.Span, int) bool) {
			for i, s := range spans {
				if !yield(s, numbers[i]) {
					return
				}
			}
		})
		if !reflect.DeepEqual(at, added) {
			t.Fatalf("the count of %v with %v is another than the one to which they were added", spans, numbers)
		}
	})
}

// The ends of time are instants like any other.
func TestACountReachesToTheEndsOfTime(t *testing.T) {
	all := span.Span{Start: -span.Forever, End: span.Forever}
	c := span.Count{}.Add(all, 1).Add(span.New(100, 10), 2)
	var got []int
	for _, level := range c.Steps(all) {
		got = append(got, level)
	}
	if diff := gocmp.Diff([]int{1, 3, 1}, got); diff != "" || c.Most(all) != 3 {
		t.Errorf("most %d, steps (-want +got):\n%s", c.Most(all), diff)
	}
}

// BenchmarkCount adds a reservation to those of a large project and removes it.
func BenchmarkCount(b *testing.B) {
	var c span.Count
	for i := range span.Instant(100_000) {
		c = c.Add(span.New(i*3600, 7200), 1)
	}
	b.ReportAllocs()
	for i := range span.Instant(b.N) {
		s := span.New(i*977%360_000_000, 5000)
		more := c.Add(s, 1)
		if more.Most(s) == 0 {
			b.Fatal("nothing was added")
		}
	}
}
