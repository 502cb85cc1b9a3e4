// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What waits for slow clients is bounded in bytes, for each caller and for all; beyond that, the caller's that has waited
// longest is given up, and the newest never is. The oracle is a list.
func TestWhatWaitsForSlowClientsIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most, mostOfAll, each = 400_000, 700_000, 16 << 10
		l := newCarried(most, mostOfAll)
		type waiting struct {
			caller string
			number int
			bytes  int64
			done   func()
		}
		var open []waiting
		given := map[int]bool{}
		sum := func(caller string) (n int64) {
			for _, w := range open {
				if caller == "" || w.caller == caller {
					n += w.bytes
				}
			}
			return n
		}
		for number := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(open) > 0 && rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				open[i].done()
				open = slices.Delete(open, i, i+1)
				continue
			}
			w := waiting{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "caller"), number, rapid.Int64Range(0, 390_000).Draw(t, "bytes"), nil}
			w.done = l.add(w.caller, w.bytes, func() { given[number] = true })
			w.bytes += each
			open = append(open, w)
			want := map[int]bool{}
			giveUp := func(caller string) {
				i := slices.IndexFunc(open, func(w waiting) bool { return w.caller == caller })
				want[open[i].number] = true
				open = slices.Delete(open, i, i+1)
			}
			for sum(w.caller) > most && open[len(open)-1].number == number && slices.IndexFunc(open, func(o waiting) bool { return o.caller == w.caller }) < len(open)-1 {
				giveUp(w.caller)
			}
			for sum("") > mostOfAll {
				largest := slices.MaxFunc([]string{"c", "b", "a"}, func(a, b string) int { return int(sum(a) - sum(b)) })
				giveUp(largest)
			}
			if !maps.Equal(want, given) {
				t.Fatalf("given up are %v, want %v", given, want)
			}
			clear(given)
		}
	})
}

// A client can name any number of addresses. Requests without a token, whatever their addresses, displace no request with one.
func TestWhatAddressesSendMakesNobodyElseGiveUp(t *testing.T) {
	const most, each = 1 << 20, 16 << 10
	l, given := newCarried(most, most), map[string]int{}
	l.add("project demo", 500_000, func() { given["project"]++ })
	for i := range 2 * most / each {
		l.add(fmt.Sprint("address ", i), 1, func() { given["address"]++ })
	}
	if given["project"] != 0 || given["address"] == 0 {
		t.Errorf("given up are %v", given)
	}
}
