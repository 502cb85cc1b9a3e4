// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/teambition/rrule-go"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// parts are the parts of a rule, in the ranges in which the library is correct.
type parts struct {
	frequency rrule.Frequency // YEARLY to DAILY
	interval  int             // at least 1
	count     int             // 0 means unlimited
	// until is the last local time that the rule can have, untilInstant the last instant.
	until        wall
	untilInstant span.Instant
	weekStart    int // 0 is Monday
	// Empty lists limit nothing.
	byMonth, byMonthDay, byYearDay, bySetPos []int
	byDay                                    []weekday
}

const (
	mostInterval = 1000
	mostCount    = 100000 // more than there are days up to lastYear
)

// frequencies are those with occurrences on whole days.
var frequencies = map[string]rrule.Frequency{"DAILY": rrule.DAILY, "WEEKLY": rrule.WEEKLY, "MONTHLY": rrule.MONTHLY, "YEARLY": rrule.YEARLY}

// readers has the parts of a rule that are accepted, each with what reads its value. A reader returns what is accepted if it
// cannot read the value; else an empty text.
var readers = map[string]func(p *parts, value string) (accepted string){
	"FREQ": func(p *parts, value string) string {
		var ok bool
		if p.frequency, ok = frequencies[value]; !ok {
			return "DAILY, WEEKLY, MONTHLY or YEARLY; make one series for each time of day"
		}
		return ""
	},
	"INTERVAL":   func(p *parts, value string) string { return readNumber(&p.interval, value, mostInterval) },
	"COUNT":      func(p *parts, value string) string { return readNumber(&p.count, value, mostCount) },
	"UNTIL":      (*parts).readUntil,
	"WKST":       (*parts).readWeekStart,
	"BYMONTH":    func(p *parts, value string) string { return readNumbers(&p.byMonth, value, 12, false) },
	"BYMONTHDAY": func(p *parts, value string) string { return readNumbers(&p.byMonthDay, value, 31, true) },
	"BYYEARDAY":  func(p *parts, value string) string { return readNumbers(&p.byYearDay, value, 366, true) },
	"BYSETPOS":   func(p *parts, value string) string { return readNumbers(&p.bySetPos, value, 366, true) },
	"BYDAY":      (*parts).readByDay,
}

// refused has the other parts of RFC 5545, each with what to do.
var refused = map[string]string{
	"BYHOUR":   "the time of day is that of the start; make one series for each time of day",
	"BYMINUTE": "the time of day is that of the start; make one series for each time of day",
	"BYSECOND": "the time of day is that of the start; make one series for each time of day",
	"BYWEEKNO": "write INTERVAL with FREQ=WEEKLY, or BYMONTH and BYDAY with FREQ=YEARLY",
}

// parseParts reads a rule, and returns it also in canonical form.
func parseParts(text string) (p parts, canonical string, err error) {
	const example = `write an RRULE of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"`
	if utf8.RuneCountInString(text) > longest {
		return parts{}, "", fault.Field("rule", "is longer than %d characters; %s", longest, example)
	}
	canonical = strings.TrimPrefix(strings.ToUpper(text), "RRULE:")
	if canonical == "" {
		return parts{}, "", fault.Field("rule", "is empty; %s", example)
	}
	p = parts{interval: 1, until: latest, untilInstant: span.Forever}
	given := map[string]bool{}
	for part := range strings.SplitSeq(canonical, ";") {
		name, value, ok := strings.Cut(part, "=")
		reader := readers[name]
		switch {
		case !ok:
			return parts{}, "", fault.Field("rule", "%s is no part of a rule, which has a name, = and a value; %s", quoted(part), example)
		case given[name]:
			return parts{}, "", fault.Field("rule", "%s is there twice; a part can be there once", name)
		case refused[name] != "":
			return parts{}, "", fault.Field("rule", "%s is not accepted: %s", name, refused[name])
		case reader == nil:
			return parts{}, "", fault.Field("rule", "%s is not known; the parts are FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYMONTHDAY, BYYEARDAY, BYDAY, BYSETPOS and WKST", quoted(name))
		}
		if accepted := reader(&p, value); accepted != "" {
			return parts{}, "", fault.Field("rule", "%s is %s; it must be %s", name, quoted(value), accepted)
		}
		given[name] = true
	}
	if !given["FREQ"] {
		return parts{}, "", fault.Field("rule", "has no FREQ; %s", example)
	}
	return p, canonical, p.check(given)
}

// check returns an error if the parts do not go together. given has the names of the parts.
func (p *parts) check(given map[string]bool) error {
	if given["COUNT"] && given["UNTIL"] {
		return fault.Field("rule", "has COUNT and UNTIL; one of them ends it")
	}
	if given["BYSETPOS"] && !given["BYMONTH"] && !given["BYMONTHDAY"] && !given["BYYEARDAY"] && !given["BYDAY"] {
		return fault.Field("rule", "BYSETPOS chooses among the days of another part; add BYDAY, BYMONTHDAY, BYMONTH or BYYEARDAY")
	}
	if given["BYMONTHDAY"] && p.frequency == rrule.WEEKLY {
		return fault.Field("rule", "BYMONTHDAY does not go with FREQ=WEEKLY; write FREQ=MONTHLY or FREQ=DAILY")
	}
	if given["BYYEARDAY"] && p.frequency != rrule.YEARLY {
		return fault.Field("rule", "BYYEARDAY goes with FREQ=YEARLY only")
	}
	return p.checkByDay()
}

func (p *parts) readUntil(value string) string {
	const dateOfRule, localOfRule = "20060102", "20060102T150405"
	if at, ok := read(value, dateOfRule); ok {
		p.until = at + day - 1
	} else if at, ok := read(value, localOfRule); ok {
		p.until = at
	} else if at, ok := read(value, localOfRule+"Z"); ok {
		p.untilInstant = span.Instant(at)
	} else {
		return fmt.Sprintf("a local date such as 20271231, a local time such as 20271231T170000, or a time in UTC such as 20271231T160000Z, in a year from %d to %d", firstYear, lastYear)
	}
	return ""
}

// endedBefore reports whether UNTIL is an instant before that of a local time.
func (p *parts) endedBefore(at wall, zone *time.Location) bool {
	if span.Instant(at+spread) <= p.untilInstant {
		return false // most of the time
	}
	return instantOf(at, zone) > p.untilInstant
}

// readNumber sets a number from 1 to most.
func readNumber(into *int, value string, most int) string {
	n, ok := number(value)
	if !ok || n < 1 || n > most {
		return fmt.Sprintf("a whole number from 1 to %d", most)
	}
	*into = n
	return ""
}

// readNumbers sets a list of numbers from 1 to most, sorted, each once; of signed ones also from -most to -1.
func readNumbers(into *[]int, value string, most int, signed bool) string {
	for text := range strings.SplitSeq(value, ",") {
		digits, minus := text, false
		if signed {
			digits, minus = unsigned(text)
		}
		n, ok := number(digits)
		if !ok || n < 1 || n > most {
			if signed {
				return fmt.Sprintf("a list of numbers from 1 to %d, or from -%d to -1, which count from the end, such as 1,-1", most, most)
			}
			return fmt.Sprintf("a list of numbers from 1 to %d, such as 1,7", most)
		}
		if minus {
			n = -n
		}
		*into = append(*into, n)
	}
	slices.Sort(*into)
	*into = slices.Compact(*into)
	return ""
}

// unsigned returns a text without the sign before it, and whether that is a minus.
func unsigned(text string) (digits string, minus bool) {
	if digits, minus = strings.CutPrefix(text, "-"); minus {
		return digits, true
	}
	return strings.TrimPrefix(text, "+"), false
}

// number returns the number that a text of digits is. It has no sign.
func number(digits string) (int, bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// quoted returns a text of a user for a message, cut if it is long.
func quoted(text string) string {
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return strconv.Quote(text)
}

// period returns the time of day of a start on the first day of its period: its year, month or week. The library counts periods from
// there. BYSETPOS counts in a whole period, also in that of the start.
func (p *parts) period(start wall) wall {
	date := start.date()
	switch p.frequency {
	case rrule.YEARLY:
		return start - wall(date.YearDay()-1)*day
	case rrule.MONTHLY:
		return start - wall(date.Day()-1)*day
	case rrule.WEEKLY:
		return start - wall((weekdayOf(date)-p.weekStart+7)%7)*day
	}
	return start
}

// option returns the parts in the form of the library, with the days that follow from the start where the rule names none.
func (p *parts) option(start wall) rrule.ROption {
	date := start.date()
	option := rrule.ROption{
		Freq: p.frequency, Interval: p.interval, Wkst: libraryDays[p.weekStart],
		Bymonth: p.byMonth, Bymonthday: p.byMonthDay, Byyearday: p.byYearDay, Bysetpos: p.bySetPos, Byweekday: p.libraryByDay(),
	}
	if len(p.byMonthDay)+len(p.byYearDay)+len(p.byDay) > 0 {
		return option
	}
	switch p.frequency {
	case rrule.YEARLY:
		if len(p.byMonth) == 0 {
			option.Bymonth = []int{int(date.Month())}
		}
		option.Bymonthday = []int{date.Day()}
	case rrule.MONTHLY:
		option.Bymonthday = []int{date.Day()}
	case rrule.WEEKLY:
		option.Byweekday = []rrule.Weekday{libraryDays[weekdayOf(date)]}
	}
	return option
}
