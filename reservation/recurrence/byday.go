// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// weekday is a day of the week, each one in the period or one of them.
type weekday struct {
	of int // 0 is Monday
	// nth is which one of the month or the year it is, counted from its end if negative; 0 means each one.
	nth int
}

var (
	dayNames    = []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}
	libraryDays = []rrule.Weekday{rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU}
)

// A month has a day of the week at most 5 times, a year 53 times.
const (
	weeksOfMonth = 5
	weeksOfYear  = 53
)

// weekdayOf returns the day of the week of a date; 0 is Monday.
func weekdayOf(date time.Time) int { return (int(date.Weekday()) + 6) % 7 }

func (p *parts) readWeekStart(value string) string {
	if p.weekStart = slices.Index(dayNames, value); p.weekStart < 0 {
		return strings.Join(dayNames[:6], ", ") + " or SU"
	}
	return ""
}

func (p *parts) readByDay(value string) string {
	const accepted = "a list of days such as MO,TU, each with a number before it if only one of the month or the year is meant, such as 1MO,-1FR"
	for text := range strings.SplitSeq(value, ",") {
		if len(text) < 2 {
			return accepted
		}
		name, ordinal := text[len(text)-2:], text[:len(text)-2]
		d := weekday{of: slices.Index(dayNames, name)}
		if d.of < 0 {
			return accepted
		}
		if ordinal != "" {
			digits, minus := unsigned(ordinal)
			n, ok := number(digits)
			if !ok || n < 1 || n > weeksOfYear {
				return accepted
			}
			if d.nth = n; minus {
				d.nth = -n
			}
		}
		p.byDay = append(p.byDay, d)
	}
	return ""
}

// weeks returns how often the period in which numbers of BYDAY count can have a day of the week.
func (p *parts) weeks() int {
	if p.frequency == rrule.YEARLY && len(p.byMonth) == 0 {
		return weeksOfYear
	}
	return weeksOfMonth
}

func (p *parts) checkByDay() error {
	for _, d := range p.byDay {
		switch {
		case d.nth != 0 && p.frequency > rrule.MONTHLY:
			return fault.Field("rule", "a number in BYDAY goes with FREQ=MONTHLY or FREQ=YEARLY only")
		case d.nth > p.weeks() || d.nth < -p.weeks():
			return fault.Field("rule", "BYDAY has the number %d, and a month has each day at most %d times", d.nth, weeksOfMonth)
		}
	}
	return nil
}

// libraryByDay returns BYDAY in the form of the library. The library finds no day for a list of days with and without numbers, so
// there a day without a number becomes one with each number.
func (p *parts) libraryByDay() (list []rrule.Weekday) {
	numbered := slices.ContainsFunc(p.byDay, func(d weekday) bool { return d.nth != 0 })
	for _, d := range p.byDay {
		of := libraryDays[d.of]
		switch {
		case !numbered:
			list = append(list, of)
		case d.nth != 0:
			list = append(list, of.Nth(d.nth))
		default:
			for n := range p.weeks() {
				list = append(list, of.Nth(n+1))
			}
		}
	}
	return list
}
