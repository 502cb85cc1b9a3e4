// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// wall is a local time, as a clock on the wall shows it: seconds since 1970-01-01T00:00:00 of the same calendar, with 24 hours
// in each day.
type wall int64

const (
	hour wall = 3600
	day       = 24 * hour
	// spread is more than the difference between a local time and UTC ever is.
	spread = 26 * hour
)

// The years that patterns can name.
const firstYear, lastYear = 1970, 2200

// latest is the last local time of lastYear.
var latest = wallOf(time.Date(lastYear, 12, 31, 23, 59, 59, 0, time.UTC))

const (
	localForm = "2006-01-02T15:04:05"
	dateForm  = "2006-01-02"
)

// wallOf returns what the clock shows at t in the zone of t.
func wallOf(t time.Time) wall {
	_, offset := t.Zone()
	return wall(t.Unix()) + wall(offset)
}

// date returns the time in UTC that shows the same as the clock.
func (w wall) date() time.Time { return time.Unix(int64(w), 0).UTC() }

// midnight returns the begin of the day.
func (w wall) midnight() wall { return w - w%day }

func (w wall) String() string { return w.date().Format(localForm) }

// read returns the local time of a text that has exactly one of the forms. It returns false for another form, a day or an hour
// that the calendar does not have, and a year that patterns cannot name.
func read(text string, forms ...string) (wall, bool) {
	for _, form := range forms {
		t, err := time.Parse(form, text)
		if err == nil && t.Format(form) == text && t.Year() >= firstYear && t.Year() <= lastYear {
			return wallOf(t), true
		}
	}
	return 0, false
}

// readLocal returns the local time of a text; its seconds are optional.
func readLocal(text string) (wall, bool) { return read(text, localForm, "2006-01-02T15:04") }

// loadZone returns the time zone with an IANA name.
func loadZone(name string) (*time.Location, error) {
	const accepted = `an IANA name is needed, such as "Europe/Paris" or "UTC", with capital letters where it has them`
	switch {
	case name == "":
		return nil, fault.Field("time_zone", "is missing; %s", accepted)
	case utf8.RuneCountInString(name) > longest:
		return nil, fault.Field("time_zone", "is longer than %d characters; %s", longest, accepted)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" || !wellFormed(name) {
		return nil, fault.Field("time_zone", "%q is not known; %s", name, accepted)
	}
	return zone, nil
}

// wellFormed reports whether each part of a name begins with a capital letter. The database of a machine has other files too,
// such as "localtime", which is another zone on each machine, and those below "right", which count leap seconds.
func wellFormed(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] < 'A' || part[0] > 'Z' {
			return false
		}
	}
	return true
}

// instantOf returns when a local time is in a zone. A time that exists twice is the first of the two. A time that the clock
// skips is as much after the gap as it is in it: the offset from before the gap holds for it.
func instantOf(at wall, zone *time.Location) span.Instant {
	// time.Time.ZoneBounds would have the change of the clock, but on the last day of a leap year far ahead it returns an end that
	// has passed. Changes are more than twice the spread apart, so there is at most one here.
	ahead := func(instant int64) int64 {
		_, offset := time.Unix(instant, 0).In(zone).Zone()
		return int64(offset)
	}
	first, last := int64(at-spread), int64(at+spread)
	before, after := ahead(first), ahead(last)
	early, late := int64(at)-before, int64(at)-after
	if before == after {
		return span.Instant(early)
	}
	change := first + int64(sort.Search(int(last-first), func(n int) bool { return ahead(first+int64(n)) != before }))
	if early >= change && late >= change {
		return span.Instant(late)
	}
	return span.Instant(early) // the first of two, or in the gap
}
