// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// The test compares the sums with a count of the images in the pool in each second.
func TestAPoolHasRoomWhereLookingSecondBySecondSaysSo(t *testing.T) {
	const horizon = 60
	rapid.Check(t, func(t *rapid.T) {
		second := func(name string) span.Instant { return span.Instant(rapid.Int64Range(0, horizon).Draw(t, name)) }
		size := func(id int) int64 { return []int64{0, 3, 5, 8}[id] }
		var list []stay
		p := newPool()
		for range rapid.IntRange(0, 8).Draw(t, "stays") {
			id := rapid.IntRange(0, 3).Draw(t, "image")
			s := stay{Image{ID: fmt.Sprint(id), Size: size(id)}, span.Span{Start: second("start"), End: second("end")}}
			list = append(list, s)
			p.add(s)
		}
		used := func(at span.Instant, but string) (sum int64) {
			var seen []string
			for _, s := range list {
				if s.image.ID != but && s.span.Contains(at) && !slices.Contains(seen, s.image.ID) {
					seen, sum = append(seen, s.image.ID), sum+s.image.Size
				}
			}
			return sum
		}
		for at := span.Instant(0); at < horizon; at++ {
			if got, want := p.used(at), used(at, ""); got != want {
				t.Fatalf("%d are used at %d, want %d, of %+v", got, at, want, list)
			}
		}
		id := rapid.IntRange(0, 3).Draw(t, "which")
		image, limit := Image{ID: fmt.Sprint(id), Size: size(id)}, rapid.Int64Range(8, 16).Draw(t, "limit")
		from, expire := second("from"), second("expire")
		want := from
		for at := from; at < expire; at++ {
			if used(at, image.ID)+image.Size > limit {
				want = at + 1
			}
		}
		if got := p.room(image, from, expire, limit); got != want && (got < expire || want < expire) {
			t.Fatalf("room for %s in [%d,%d) from %d, want %d, of %+v", image.ID, from, expire, got, want, list)
		}
	})
}
