// SPDX-License-Identifier: Apache-2.0

package recurrence_test

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// date is a day of the calendar, by counting from 1 January 2025, a Wednesday.
type date struct {
	number                int64 // days since 1970-01-01
	year, month, day      int
	yearDay, weekday      int // 0 is Monday
	daysOfMonth, yearDays int
}

func (d date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day) }

// calendar has each day from 2025 to 2057.
var calendar = sync.OnceValue(func() (all []date) {
	number, weekday := int64(20089), 2
	for year := 2025; year <= 2057; year++ {
		lengths := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
		yearDays := 365
		if year%4 == 0 { // none of these years is a multiple of 100
			lengths[1], yearDays = 29, 366
		}
		yearDay := 0
		for month, length := range lengths {
			for day := range length {
				yearDay++
				all = append(all, date{number, year, month + 1, day + 1, yearDay, weekday, length, yearDays})
				number, weekday = number+1, (weekday+1)%7
			}
		}
	}
	return all
})

var dayNames = []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// ordinal is a day of BYDAY.
type ordinal struct{ nth, weekday int }

// drawn is a pattern in the form of the oracle.
type drawn struct {
	frequency                                string
	interval, count, weekStart               int
	byMonth, byMonthDay, byYearDay, bySetPos []int
	byDay                                    []ordinal
	until                                    string // the text of UNTIL, or empty
	// By UNTIL: the last local time, and the last instant; 0 means unlimited.
	untilLocal, untilInstant int64
	start                    date
	second                   int64 // of the day
}

// rule returns the text of the rule.
func (d *drawn) rule() string {
	parts := []string{"FREQ=" + d.frequency}
	numbers := func(name string, list []int) {
		if len(list) > 0 {
			parts = append(parts, name+"="+strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]"))
		}
	}
	if d.interval != 1 {
		parts = append(parts, "INTERVAL="+strconv.Itoa(d.interval))
	}
	if d.weekStart != 0 {
		parts = append(parts, "WKST="+dayNames[d.weekStart])
	}
	numbers("BYMONTH", d.byMonth)
	numbers("BYMONTHDAY", d.byMonthDay)
	numbers("BYYEARDAY", d.byYearDay)
	numbers("BYSETPOS", d.bySetPos)
	var days []string
	for _, o := range d.byDay {
		text := dayNames[o.weekday]
		if o.nth != 0 {
			text = strconv.Itoa(o.nth) + text
		}
		days = append(days, text)
	}
	if len(days) > 0 {
		parts = append(parts, "BYDAY="+strings.Join(days, ","))
	}
	if d.count > 0 {
		parts = append(parts, "COUNT="+strconv.Itoa(d.count))
	}
	if d.until != "" {
		parts = append(parts, "UNTIL="+d.until)
	}
	return strings.Join(parts, ";")
}

// drawRule draws a rule that RFC 5545 allows, without an end, and the day from which its start is searched.
func drawRule(t *rapid.T) *drawn {
	d := &drawn{
		frequency: rapid.SampledFrom([]string{"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}).Draw(t, "frequency"),
		interval:  rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3, 4, 5, 7, 12, 13}).Draw(t, "interval"),
		weekStart: rapid.SampledFrom([]int{0, 0, 6, 1, 3}).Draw(t, "week start"),
		start:     rapid.SampledFrom(calendar()[365:365+4*365]).Draw(t, "from"),
		second: rapid.OneOf(
			rapid.SampledFrom([]int64{9 * 3600, 2*3600 + 1800, 0, 1800, 3600, 5400, 2*3600 + 900, 86399}), rapid.Int64Range(0, 86399),
		).Draw(t, "second of the day"),
	}
	seldom := func(label string) bool { return rapid.IntRange(0, 2).Draw(t, label) == 0 }
	signed := func(label string, most, length int) []int {
		n := rapid.OneOf(rapid.SampledFrom([]int{1, -1, most, -most}), rapid.IntRange(1, most), rapid.IntRange(-most, -1))
		return rapid.SliceOfNDistinct(n, 1, length, rapid.ID).Draw(t, label)
	}
	if seldom("with months") {
		d.byMonth = rapid.SliceOfNDistinct(rapid.IntRange(1, 12), 1, 5, rapid.ID).Draw(t, "months")
	}
	if d.frequency != "WEEKLY" && seldom("with days of the month") {
		d.byMonthDay = signed("days of the month", 31, 6)
	}
	if d.frequency == "YEARLY" && seldom("with days of the year") {
		d.byYearDay = signed("days of the year", 366, 6)
	}
	if rapid.Bool().Draw(t, "with days of the week") {
		d.drawByDay(t)
	}
	if len(d.byMonth)+len(d.byMonthDay)+len(d.byYearDay)+len(d.byDay) > 0 && seldom("with positions") {
		d.bySetPos = signed("positions", 6, 3)
	}
	return d
}

func (d *drawn) drawByDay(t *rapid.T) {
	most := 0
	switch {
	case d.frequency == "MONTHLY" || d.frequency == "YEARLY" && len(d.byMonth) > 0:
		most = 5
	case d.frequency == "YEARLY":
		most = 53
	}
	d.byDay = rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) ordinal {
		o := ordinal{weekday: rapid.IntRange(0, 6).Draw(t, "day of the week")}
		if most > 0 && rapid.Bool().Draw(t, "numbered") {
			o.nth = rapid.IntRange(1, most).Draw(t, "number")
			if rapid.Bool().Draw(t, "from the end") {
				o.nth = -o.nth
			}
		}
		return o
	}), 1, 5, rapid.ID).Draw(t, "days of the week")
}

// matches reports whether a day is in the rule, in one of its periods. INTERVAL and BYSETPOS are for days.
func (d *drawn) matches(x date) bool {
	in := func(list []int, n, fromEnd int) bool {
		return len(list) == 0 || slices.Contains(list, n) || fromEnd != 0 && slices.Contains(list, fromEnd)
	}
	if !in(d.byMonth, x.month, 0) || !in(d.byMonthDay, x.day, x.day-x.daysOfMonth-1) || !in(d.byYearDay, x.yearDay, x.yearDay-x.yearDays-1) {
		return false
	}
	if len(d.byDay) > 0 {
		place, length := x.day, x.daysOfMonth
		if d.frequency == "YEARLY" && len(d.byMonth) == 0 {
			place, length = x.yearDay, x.yearDays
		}
		return slices.ContainsFunc(d.byDay, func(o ordinal) bool {
			return o.weekday == x.weekday && (o.nth == 0 || o.nth == (place-1)/7+1 || o.nth == -(length-place)/7-1)
		})
	}
	if len(d.byMonthDay)+len(d.byYearDay) > 0 {
		return true
	}
	switch d.frequency {
	case "WEEKLY":
		return x.weekday == d.start.weekday
	case "MONTHLY":
		return x.day == d.start.day
	case "YEARLY":
		return x.day == d.start.day && (len(d.byMonth) > 0 || x.month == d.start.month)
	}
	return true
}

// period returns the number of the day's period.
func (d *drawn) period(x date) int64 {
	switch d.frequency {
	case "YEARLY":
		return int64(x.year)
	case "MONTHLY":
		return int64(x.year*12 + x.month)
	case "WEEKLY":
		return (x.number + 3 - int64(d.weekStart)) / 7 // 1970-01-01 was a Thursday
	}
	return x.number
}

// days returns the days of the rule from the start on, without COUNT and UNTIL.
func (d *drawn) days() (chosen []date) {
	var set []date // of one period
	closeSet := func() {
		for i, x := range set {
			if (len(d.bySetPos) == 0 || slices.Contains(d.bySetPos, i+1) || slices.Contains(d.bySetPos, i-len(set))) && x.number >= d.start.number {
				chosen = append(chosen, x)
			}
		}
		set = set[:0]
	}
	for _, x := range calendar() {
		if len(set) > 0 && d.period(set[0]) != d.period(x) {
			closeSet()
		}
		if since := d.period(x) - d.period(d.start); since >= 0 && since%int64(d.interval) == 0 && d.matches(x) {
			set = append(set, x)
		}
	}
	closeSet()
	return chosen
}

// drawEnd draws COUNT or UNTIL, given the local times of the rule without them.
func (d *drawn) drawEnd(t *rapid.T, z *zone, times []int64) {
	near := rapid.SampledFrom(times[:min(len(times), 400)]).Draw(t, "near the end")
	near += rapid.SampledFrom([]int64{0, 0, 1, -1, 3600, -3600, 86400}).Draw(t, "that near")
	near = max(near, times[0])
	show := func(seconds int64, layout string) string { return time.Unix(seconds, 0).UTC().Format(layout) }
	switch rapid.SampledFrom([]string{"none", "count", "date", "local time", "instant"}).Draw(t, "end") {
	case "count":
		d.count = rapid.IntRange(1, 40).Draw(t, "count")
	case "date":
		d.until, d.untilLocal = show(near, "20060102"), near-near%86400+86399
	case "local time":
		d.until, d.untilLocal = show(near, "20060102T150405"), near
	case "instant":
		d.untilInstant = max(z.instant(near)+rapid.SampledFrom([]int64{0, 0, 1, -1}).Draw(t, "off by"), z.instant(times[0]))
		d.until = show(d.untilInstant, "20060102T150405Z")
	}
}

// ended returns the local times up to COUNT or UNTIL.
func (d *drawn) ended(z *zone, times []int64) (kept []int64) {
	for i, at := range times {
		if (d.count == 0 || i < d.count) && (d.untilLocal == 0 || at <= d.untilLocal) && (d.untilInstant == 0 || z.instant(at) <= d.untilInstant) {
			kept = append(kept, at)
		}
	}
	return kept
}

// zone has the instants at which the clock of a zone changes, found by walking along them.
type zone struct {
	name    string
	changes []change
}

// change is an instant from which a clock is that many seconds ahead of UTC.
type change struct{ at, offset int64 }

var zones = []string{
	"Europe/Paris", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca", "Pacific/Apia", "Europe/Dublin", "America/Santiago",
	"Asia/Tehran",
}

const quarter = 900 // In these years each change of these zones is at a quarter of an hour of UTC.

var walked sync.Map // zones, by name

func walk(t testing.TB, name string) *zone {
	if z, ok := walked.Load(name); ok {
		return z.(*zone)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	ahead := func(instant int64) int64 {
		_, offset := time.Unix(instant, 0).In(location).Zone()
		return int64(offset)
	}
	first, last := (calendar()[0].number-2)*86400, (calendar()[len(calendar())-1].number+3)*86400
	z := &zone{name: name, changes: []change{{first, ahead(first)}}}
	for noon := first; noon < last; noon += 86400 {
		if ahead(noon) == ahead(noon+86400) {
			continue
		}
		for at := noon + quarter; at <= noon+86400; at += quarter {
			if offset := ahead(at); offset != z.changes[len(z.changes)-1].offset {
				z.changes = append(z.changes, change{at, offset})
			}
		}
	}
	walked.Store(name, z)
	return z
}

// shows returns what the clock shows at an instant.
func (z *zone) shows(instant int64) int64 {
	i := sort.Search(len(z.changes), func(i int) bool { return z.changes[i].at > instant })
	return instant + z.changes[i-1].offset
}

// instant returns the first instant at which the clock shows a local time. If there is none, it is as much after the last moment at
// which the clock shows an earlier time as the local time is.
func (z *zone) instant(local int64) int64 {
	last := int64(0)
	for candidate := local - 60*quarter; candidate <= local+60*quarter; candidate += quarter {
		switch shown := z.shows(candidate); {
		case shown == local:
			return candidate
		case shown < local:
			last = candidate
		}
	}
	return last + local - z.shows(last)
}
