// SPDX-License-Identifier: Apache-2.0

// Package span provides Almanac's time: instants in whole seconds and half-open intervals
// between them.
//
// Everything inside Almanac uses these types; time zones and fractions of a second exist only
// at its edges.
package span

import (
	"fmt"
	"math"
	"time"
)

// Instant is a point in time: seconds since 1970-01-01 UTC. The zero Instant means "not set" if
// a field is optional.
type Instant int64

// Forever is later than every instant that a promise can name.
const Forever Instant = math.MaxInt64

// At returns the instant of t, cut to the second.
func At(t time.Time) Instant { return Instant(t.Unix()) }

// Time returns the instant in UTC.
func (i Instant) Time() time.Time { return time.Unix(int64(i), 0).UTC() }

// Add returns the instant that many seconds later, at most Forever.
func (i Instant) Add(seconds int64) Instant {
	if seconds > 0 && i > Forever-Instant(seconds) {
		return Forever
	}
	return i + Instant(seconds)
}

// String formats the instant as RFC 3339 in UTC.
func (i Instant) String() string {
	if i == Forever {
		return "forever"
	}
	return i.Time().Format(time.RFC3339)
}

// Span is the half-open interval [Start, End).
type Span struct {
	Start, End Instant
}

// New returns the span that begins at start and lasts seconds.
func New(start Instant, seconds int64) Span { return Span{start, start.Add(seconds)} }

// Always is all time.
var Always = Span{math.MinInt64, Forever}

// Empty reports whether the span contains no instant.
func (s Span) Empty() bool { return s.End <= s.Start }

// Seconds returns the length of the span; 0 if it is empty.
func (s Span) Seconds() int64 {
	if s.Empty() {
		return 0
	}
	return int64(s.End - s.Start)
}

// Contains reports whether t is in the span.
func (s Span) Contains(t Instant) bool { return s.Start <= t && t < s.End }

// Covers reports whether every instant of o is in the span.
func (s Span) Covers(o Span) bool { return s.Start <= o.Start && o.End <= s.End }

// Overlaps reports whether the spans share an instant. Touching spans do not.
func (s Span) Overlaps(o Span) bool { return s.Start < o.End && o.Start < s.End }

// String formats the span as "[start, end)".
func (s Span) String() string { return fmt.Sprintf("[%s, %s)", s.Start, s.End) }
