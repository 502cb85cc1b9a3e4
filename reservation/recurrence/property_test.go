// SPDX-License-Identifier: Apache-2.0

package recurrence_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// drawAlso draws additional times: at the time of day of the rule, at others, and in hours that the clock skips.
func drawAlso(t *rapid.T, d *drawn, z *zone) (times []int64) {
	first := d.start.number*86400 + d.second
	for range rapid.IntRange(0, 6).Draw(t, "how many also") {
		at := first + 86400*rapid.Int64Range(0, 4000).Draw(t, "days later")
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 1:
			at += rapid.Int64Range(0, 86399).Draw(t, "seconds later")
		case 2:
			at = z.shows(rapid.SampledFrom(z.changes).Draw(t, "change").at) + rapid.Int64Range(-7200, 7200).Draw(t, "seconds from it")
		}
		times = append(times, max(at, first))
	}
	return times
}

// shown returns a local time as patterns have it.
func shown(local int64) string { return time.Unix(local, 0).UTC().Format("2006-01-02T15:04:05") }

// drawExcept draws times and days to leave out, among the local times of a pattern, and returns them with what is left.
func drawExcept(t *rapid.T, times []int64) (except []string, left []int64) {
	left = slices.Clone(times)
	for range rapid.IntRange(0, 5).Draw(t, "how many except") {
		at := rapid.SampledFrom(times[:min(len(times), 300)]).Draw(t, "except")
		if text := shown(at); rapid.Bool().Draw(t, "the whole day") {
			except = append(except, text[:10])
			left = slices.DeleteFunc(left, func(other int64) bool { return other/86400 == at/86400 })
		} else {
			except = append(except, text)
			left = slices.DeleteFunc(left, func(other int64) bool { return other == at })
		}
	}
	return except, left
}

// occurrences returns local times before an instant as the package should list them.
func (z *zone) occurrences(times []int64, until span.Instant) (list []recurrence.Occurrence) {
	seen := map[int64]bool{}
	for _, at := range times {
		start := z.instant(at)
		if !seen[start] && span.Instant(start) < until {
			list = append(list, recurrence.Occurrence{Local: shown(at), Start: span.Instant(start)})
		}
		seen[start] = true
	}
	slices.SortStableFunc(list, func(a, b recurrence.Occurrence) int { return int(a.Start - b.Start) })
	return list
}

// Rules of RFC 5545 in ten zones are compared with an oracle over thirty years. It shares no code with the package and its
// library: it decides for each day whether the rule has it, by the numbers of the day, and finds the instant of a local time
// among the instants that the clock of the zone passes.
//
//make:test-drawn
func TestEachDayOfARuleIsAnOccurrenceAndNoOtherIs(t *testing.T) {
	var all []*zone
	for _, name := range zones {
		all = append(all, walk(t, name))
	}
	rapid.Check(t, func(t *rapid.T) {
		z, d := rapid.SampledFrom(all).Draw(t, "zone"), drawRule(t)
		p := recurrence.Pattern{Rule: d.rule(), TimeZone: z.name, Start: shown(d.start.number*86400 + d.second)}
		days := d.days()
		if len(days) == 0 || days[0] != d.start {
			_, err := recurrence.Parse(p)
			if f := fault.Of(err); f == nil || f.Field != "start" || len(days) > 0 && !strings.HasSuffix(f.Message, " is "+shown(days[0].number*86400+d.second)) {
				t.Fatalf("%+v begins on a day that is not in the rule, and Parse returns %v; the days are %v", p, err, days[:min(3, len(days))])
			}
			if len(days) == 0 {
				return
			}
			d.start = days[0]
		}
		var times []int64
		for _, x := range days {
			times = append(times, x.number*86400+d.second)
		}
		d.drawEnd(t, z, times)
		also := drawAlso(t, d, z)
		times = append(d.ended(z, times), also...)
		slices.Sort(times)
		times = slices.Compact(times)
		p = recurrence.Pattern{Rule: d.rule(), TimeZone: z.name, Start: shown(times[0])}
		for _, at := range also {
			p.Also = append(p.Also, shown(at))
		}
		p.Except, times = drawExcept(t, times)
		r, err := recurrence.Parse(p)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		until := span.Instant(rapid.OneOf(rapid.Just(int64(calendar()[31*365].number)), rapid.Int64Range(d.start.number-1, calendar()[31*365].number)).Draw(t, "until") * 86400)
		compare(t, r, until, z.occurrences(times, until))
	})
}

// compare fails unless a rule has these occurrences before an instant, and the first of them if fewer are asked for.
func compare(t *rapid.T, r recurrence.Rule, until span.Instant, want []recurrence.Occurrence) {
	got, more := r.Occurrences(until, 100000)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%+v: before %s, from number %d on, of %d there are %v, more: %t; want of %d %v", r.Pattern(), until, i, len(got), got[i:min(i+3, len(got))], more, len(want), want[i:min(i+3, len(want))])
		}
	}
	if more {
		t.Fatalf("%+v has more before %s than all", r.Pattern(), until)
	}
	most := rapid.IntRange(0, min(len(want)+1, 50)).Draw(t, "most")
	got, more = r.Occurrences(until, most)
	if !slices.Equal(got, want[:min(most, len(want))]) || more != (len(want) > most) {
		t.Fatalf("%+v: before %s the first %d are %v, more: %t; want %v", r.Pattern(), until, most, got, more, want[:min(most, len(want))])
	}
}
