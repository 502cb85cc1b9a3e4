// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

const lastSecond = 20

// second is a second of a host, held whole or in slices.
type second struct {
	host  string
	whole bool
	at    span.Instant
}

// drawClaims draws claims and returns how much of each second they hold.
func drawClaims(t *rapid.T, label string) (claims []reservation.Claim, held map[second]int) {
	held = make(map[second]int)
	for i := range rapid.IntRange(0, 4).Draw(t, label) {
		start := rapid.Int64Range(0, lastSecond-1).Draw(t, fmt.Sprint(label, " from ", i))
		c := reservation.Claim{
			Host: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "host"), Slices: rapid.IntRange(0, 3).Draw(t, "slices"),
			Span: span.Span{Start: span.Instant(start), End: span.Instant(rapid.Int64Range(start+1, lastSecond).Draw(t, "to"))},
		}
		claims = append(claims, c)
		addSeconds(held, c, 1)
	}
	return claims, held
}

func addSeconds(held map[second]int, c reservation.Claim, times int) {
	for at := c.Span.Start; at < c.Span.End; at++ {
		held[second{c.Host, c.Slices == 0, at}] += max(c.Slices, 1) * times
	}
}

func TestWhatAChangeReleasesIsWhatWasHeldAndIsNotAnyMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, held := drawClaims(t, "before")
		after, stay := drawClaims(t, "after")
		now := span.Instant(rapid.Int64Range(0, lastSecond).Draw(t, "now"))
		want := make(map[second]int)
		for s, n := range held {
			if s.at < now && n > stay[s] {
				want[s] = n - stay[s]
			}
		}
		got := make(map[second]int)
		for _, c := range reservation.Released(before, after, now) {
			if c.Span.Empty() || c.Slices < 0 {
				t.Fatalf("released is %+v", c)
			}
			if c.Slices == 0 { // claims of a whole host do not overlap, except in this test
				for at := c.Span.Start; at < c.Span.End; at++ {
					got[second{c.Host, true, at}] = want[second{c.Host, true, at}]
				}
				continue
			}
			addSeconds(got, c, 1)
		}
		if !maps.Equal(want, got) {
			t.Fatalf("from %v to %v at %v: released are %v, want %v", before, after, now, got, want)
		}
	})
}
