// SPDX-License-Identifier: Apache-2.0

package recurrence_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // the tests need no zones of the machine

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

func parse(t testing.TB, p recurrence.Pattern) recurrence.Rule {
	t.Helper()
	r, err := recurrence.Parse(p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	return r
}

func at(t testing.TB, text string) span.Instant {
	t.Helper()
	when, err := span.ParseTime(text)
	if err != nil {
		t.Fatal(err)
	}
	return span.At(when)
}

// locals returns the local times of the first occurrences.
func locals(r recurrence.Rule, most int) (texts []string) {
	list, _ := r.Occurrences(span.Forever, most)
	for _, o := range list {
		texts = append(texts, o.Local)
	}
	return texts
}

// starts returns the starts of the first occurrences, in UTC.
func starts(r recurrence.Rule, most int) (texts []string) {
	list, _ := r.Occurrences(span.Forever, most)
	for _, o := range list {
		texts = append(texts, o.Start.String())
	}
	return texts
}

func TestEachWorkingDayInParisBeginsAtNineThroughBothChangesOfTheClock(t *testing.T) {
	r := parse(t, recurrence.Pattern{Rule: "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", TimeZone: "Europe/Paris", Start: "2027-03-01T09:00:00"})
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	list, more := r.Occurrences(at(t, "2027-12-01T00:00:00Z"), 1000)
	if len(list) != 197 || more { // 39 weeks of five days, and two days
		t.Fatalf("there are %d occurrences, more: %t", len(list), more)
	}
	offsets := map[string]int{}
	for _, o := range list {
		local := o.Start.Time().In(paris)
		if local.Format("15:04:05") != "09:00:00" || local.Format("2006-01-02T15:04:05") != o.Local || local.Weekday() == time.Saturday || local.Weekday() == time.Sunday {
			t.Errorf("%s begins at %s", o.Local, local)
		}
		offsets[local.Format("-07:00")]++
	}
	if offsets["+01:00"] != 20+22 || offsets["+02:00"] != 155 {
		t.Errorf("the offsets are %v", offsets)
	}
}

func TestATimeThatTheClockSkipsIsAsMuchAfterTheGapAsItIsInIt(t *testing.T) {
	for _, c := range []struct{ zone, local, want string }{
		{"Europe/Paris", "2027-03-28T01:59:59", "2027-03-28T00:59:59Z"},
		{"Europe/Paris", "2027-03-28T02:00:00", "2027-03-28T01:00:00Z"}, // 03:00
		{"Europe/Paris", "2027-03-28T02:30:00", "2027-03-28T01:30:00Z"}, // 03:30
		{"Europe/Paris", "2027-03-28T03:00:00", "2027-03-28T01:00:00Z"},
		{"America/New_York", "2027-03-14T02:30:00", "2027-03-14T07:30:00Z"},    // 03:30
		{"Australia/Lord_Howe", "2027-10-03T02:15:00", "2027-10-02T15:45:00Z"}, // half an hour is skipped: 02:45
		{"Australia/Lord_Howe", "2027-10-03T02:30:00", "2027-10-02T15:30:00Z"},
		{"America/Sao_Paulo", "2018-11-04T00:00:00", "2018-11-04T03:00:00Z"}, // midnight is skipped: 01:00
		{"America/Santiago", "2027-09-05T00:30:00", "2027-09-05T04:30:00Z"},  // 01:30
		{"Pacific/Apia", "2011-12-30T00:00:00", "2011-12-30T10:00:00Z"},      // a day is skipped: the 31st
		{"Pacific/Apia", "2011-12-30T23:59:59", "2011-12-31T09:59:59Z"},
		{"Pacific/Apia", "2011-12-31T00:00:00", "2011-12-30T10:00:00Z"},
	} {
		r := parse(t, recurrence.Pattern{Rule: "FREQ=DAILY", TimeZone: c.zone, Start: c.local})
		if got := starts(r, 1)[0]; got != c.want || locals(r, 1)[0] != c.local {
			t.Errorf("%s in %s is %s at %s, want %s", c.local, c.zone, locals(r, 1)[0], got, c.want)
		}
		if got, err := r.At(c.local); err != nil || got.String() != c.want {
			t.Errorf("%s in %s: At returns %s (%v), want %s", c.local, c.zone, got, err, c.want)
		}
	}
}

func TestATimeThatExistsTwiceIsTheFirstOfTheTwo(t *testing.T) {
	for _, c := range []struct{ zone, local, want string }{
		{"Europe/Paris", "2027-10-31T01:59:59", "2027-10-30T23:59:59Z"},
		{"Europe/Paris", "2027-10-31T02:00:00", "2027-10-31T00:00:00Z"},
		{"Europe/Paris", "2027-10-31T02:30:00", "2027-10-31T00:30:00Z"},
		{"Europe/Paris", "2027-10-31T03:00:00", "2027-10-31T02:00:00Z"},
		{"Australia/Lord_Howe", "2027-04-04T01:45:00", "2027-04-03T14:45:00Z"},
		{"Europe/Dublin", "2027-10-31T01:30:00", "2027-10-31T00:30:00Z"}, // winter has the negative change
		{"America/Santiago", "2027-04-03T23:30:00", "2027-04-04T02:30:00Z"},
	} {
		r := parse(t, recurrence.Pattern{Rule: "FREQ=DAILY", TimeZone: c.zone, Start: c.local})
		if got := starts(r, 1)[0]; got != c.want {
			t.Errorf("%s in %s is %s, want %s", c.local, c.zone, got, c.want)
		}
	}
}

func TestANightThatBeginsInTheSkippedHourIsBackAtItsTimeOnTheNextDay(t *testing.T) {
	r := parse(t, recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=3", TimeZone: "Europe/Paris", Start: "2027-03-27T02:30:00"})
	if got, want := starts(r, 9), []string{"2027-03-27T01:30:00Z", "2027-03-28T01:30:00Z", "2027-03-29T00:30:00Z"}; !slices.Equal(got, want) {
		t.Errorf("the starts are %v, want %v", got, want)
	}
}

func TestOfTwoLocalTimesWithOneInstantTheEarlierIsKept(t *testing.T) {
	r := parse(t, recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=4", TimeZone: "Pacific/Apia", Start: "2011-12-29T12:00:00"})
	if got, want := locals(r, 9), []string{"2011-12-29T12:00:00", "2011-12-30T12:00:00", "2012-01-01T12:00:00"}; !slices.Equal(got, want) {
		t.Errorf("the local times are %v, want %v", got, want)
	}
	r = parse(t, recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=4", TimeZone: "Pacific/Apia", Start: "2011-12-29T12:00:00", Except: []string{"2011-12-30"}})
	if got, want := locals(r, 9), []string{"2011-12-29T12:00:00", "2011-12-31T12:00:00", "2012-01-01T12:00:00"}; !slices.Equal(got, want) {
		t.Errorf("without the skipped day the local times are %v, want %v", got, want)
	}
}

func TestTheListIsSortedByStartAlsoWhereTheClockSkips(t *testing.T) {
	r := parse(t, recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=2", TimeZone: "Europe/Paris", Start: "2027-03-28T02:30:00", Also: []string{"2027-03-28T03:15:00", "2027-03-28T03:30"}})
	want := []string{"2027-03-28T03:15:00", "2027-03-28T02:30:00", "2027-03-29T02:30:00"}
	for most := range 4 {
		list, more := r.Occurrences(span.Forever, most)
		if len(list) != most || more != (most < 3) {
			t.Errorf("of at most %d there are %d, more: %t", most, len(list), more)
		}
		if got := locals(r, most); !slices.Equal(got, want[:most]) {
			t.Errorf("the first %d are %v, want %v", most, got, want[:most])
		}
	}
}

func TestRulesHaveTheDaysOfRFC5545(t *testing.T) {
	for name, c := range map[string]struct {
		rule, start string
		want        []string // days; the rule has no others in front
	}{
		"the 31st omits short months":                              {"FREQ=MONTHLY;BYMONTHDAY=31", "2027-01-31", []string{"2027-01-31", "2027-03-31", "2027-05-31", "2027-07-31", "2027-08-31", "2027-10-31"}},
		"monthly from the 31st, too":                               {"FREQ=MONTHLY", "2027-01-31", []string{"2027-01-31", "2027-03-31", "2027-05-31"}},
		"the last day of each month":                               {"FREQ=MONTHLY;BYMONTHDAY=-1", "2027-01-31", []string{"2027-01-31", "2027-02-28", "2027-03-31"}},
		"29 February is in leap years only":                        {"FREQ=YEARLY", "2092-02-29", []string{"2092-02-29", "2096-02-29", "2104-02-29"}},
		"the last Friday":                                          {"FREQ=MONTHLY;BYDAY=-1FR", "2027-01-29", []string{"2027-01-29", "2027-02-26", "2027-03-26", "2027-04-30"}},
		"the fifth Monday":                                         {"FREQ=MONTHLY;BYDAY=5MO", "2027-03-29", []string{"2027-03-29", "2027-05-31", "2027-08-30"}},
		"each Monday and the second Friday":                        {"FREQ=MONTHLY;BYDAY=MO,2FR", "2027-02-01", []string{"2027-02-01", "2027-02-08", "2027-02-12", "2027-02-15", "2027-02-22", "2027-03-01"}},
		"the last working day":                                     {"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "2027-01-29", []string{"2027-01-29", "2027-02-26", "2027-03-31"}},
		"the second of the days of a week, also of the first week": {"FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", "2027-01-06", []string{"2027-01-06", "2027-01-13"}},
		"Friday the 13th":                                          {"FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "2026-11-13", []string{"2026-11-13", "2027-08-13", "2028-10-13"}},
		"each other week from Monday":                              {"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU", "2027-01-05", []string{"2027-01-05", "2027-01-10", "2027-01-19", "2027-01-24"}},
		"each other week from Sunday":                              {"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU", "2027-01-05", []string{"2027-01-05", "2027-01-17", "2027-01-19", "2027-01-31"}},
		"the 100th day of each year":                               {"FREQ=YEARLY;BYYEARDAY=100", "2027-04-10", []string{"2027-04-10", "2028-04-09"}},
		"Thursdays in March":                                       {"FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "2027-03-04", []string{"2027-03-04", "2027-03-11", "2027-03-18", "2027-03-25", "2028-03-02"}},
		"the 20th Monday of each year":                             {"FREQ=YEARLY;BYDAY=20MO", "2027-05-17", []string{"2027-05-17", "2028-05-15"}},
		"twice a year on the same day":                             {"FREQ=YEARLY;BYMONTH=1,7", "2027-01-20", []string{"2027-01-20", "2027-07-20", "2028-01-20"}},
		"UNTIL as a date has that day":                             {"FREQ=DAILY;UNTIL=20270103", "2027-01-01", []string{"2027-01-01", "2027-01-02", "2027-01-03", ""}},
		"UNTIL as a local time":                                    {"FREQ=DAILY;UNTIL=20270103T090000", "2027-01-01", []string{"2027-01-01", "2027-01-02", "2027-01-03", ""}},
		"UNTIL a second too early":                                 {"FREQ=DAILY;UNTIL=20270103T085959", "2027-01-01", []string{"2027-01-01", "2027-01-02", ""}},
		"UNTIL as an instant":                                      {"FREQ=DAILY;UNTIL=20270103T080000Z", "2027-01-01", []string{"2027-01-01", "2027-01-02", "2027-01-03", ""}},
		"UNTIL an instant too early":                               {"FREQ=DAILY;UNTIL=20270103T075959Z", "2027-01-01", []string{"2027-01-01", "2027-01-02", ""}},
	} {
		r := parse(t, recurrence.Pattern{Rule: c.rule, TimeZone: "Europe/Paris", Start: c.start + "T09:00"})
		var days []string
		for _, local := range locals(r, len(c.want)) {
			days = append(days, local[:10])
		}
		want := c.want
		if last := len(want) - 1; want[last] == "" {
			want = want[:last] // there is no other
		}
		if !slices.Equal(days, want) {
			t.Errorf("%s: %s is on %v, want %v", name, c.rule, days, want)
		}
	}
}

func TestCountCountsBeforeExceptAndWithoutAlso(t *testing.T) {
	r := parse(t, recurrence.Pattern{
		Rule: "FREQ=DAILY;COUNT=4", TimeZone: "UTC", Start: "2027-01-01T09:00", Except: []string{"2027-01-02", "2027-01-03T09:00"},
		Also: []string{"2027-01-02T10:00", "2027-01-09T09:00", "2027-01-01T09:00"},
	})
	if got, want := locals(r, 9), []string{"2027-01-01T09:00:00", "2027-01-04T09:00:00", "2027-01-09T09:00:00"}; !slices.Equal(got, want) {
		t.Errorf("the local times are %v, want %v: a date in Except leaves out Also, too", got, want)
	}
}

func TestOnlyOccurrencesBeforeTheEndAreListed(t *testing.T) {
	r := parse(t, recurrence.Pattern{Rule: "FREQ=DAILY", TimeZone: "Europe/Paris", Start: "2027-01-01T09:00"})
	for until, want := range map[string]int{
		"2026-12-31T08:00:00Z": 0, "2027-01-01T08:00:00Z": 0, "2027-01-01T08:00:01Z": 1, "2027-01-03T08:00:00Z": 2, "2027-01-03T08:00:01Z": 3,
	} {
		if list, more := r.Occurrences(at(t, until), 10); len(list) != want || more {
			t.Errorf("before %s there are %d, more: %t", until, len(list), more)
		}
	}
	if list, more := r.Occurrences(span.Forever, 2); len(list) != 2 || !more {
		t.Errorf("of at most 2 there are %d, more: %t", len(list), more)
	}
	if list, more := (recurrence.Rule{}).Occurrences(span.Forever, 2); len(list) != 0 || more {
		t.Errorf("the zero Rule has %d, more: %t", len(list), more)
	}
}

func TestThePatternIsCanonical(t *testing.T) {
	p := recurrence.Pattern{
		Rule: "rrule:freq=weekly;byday=mo,tu", TimeZone: "Europe/Paris", Start: "2027-01-04T09:00",
		Except: []string{"2027-01-11T09:00", "2027-01-05", "2027-01-11T09:00:00"}, Also: []string{"2027-02-03T09:00", "2027-01-06T09:00:00"},
	}
	want := recurrence.Pattern{
		Rule: "FREQ=WEEKLY;BYDAY=MO,TU", TimeZone: "Europe/Paris", Start: "2027-01-04T09:00:00",
		Except: []string{"2027-01-05", "2027-01-11T09:00:00"}, Also: []string{"2027-01-06T09:00:00", "2027-02-03T09:00:00"},
	}
	for _, p := range []recurrence.Pattern{p, want} {
		got := parse(t, p).Pattern()
		if got.Rule != want.Rule || got.TimeZone != want.TimeZone || got.Start != want.Start || !slices.Equal(got.Except, want.Except) || !slices.Equal(got.Also, want.Also) {
			t.Errorf("the pattern is %+v, want %+v", got, want)
		}
	}
}

func TestAWrongPatternIsRefusedWithItsFieldAndWhatIsAccepted(t *testing.T) {
	good := recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=9", TimeZone: "Europe/Paris", Start: "2027-01-01T09:00"} // a Friday
	type pattern = recurrence.Pattern
	for _, c := range []struct {
		change  func(*pattern)
		field   string
		message string
	}{
		{func(p *pattern) { p.TimeZone = "" }, "time_zone", `is missing; an IANA name is needed, such as "Europe/Paris" or "UTC", with capital letters where it has them`},
		{func(p *pattern) { p.TimeZone = "Local" }, "time_zone", `"Local" is not known; an IANA name is needed, such as "Europe/Paris" or "UTC", with capital letters where it has them`},
		{func(p *pattern) { p.TimeZone = "europe/paris" }, "time_zone", ``},
		{func(p *pattern) { p.TimeZone = "Europe/paris" }, "time_zone", ``},
		{func(p *pattern) { p.TimeZone = "../Europe/Paris" }, "time_zone", ``},
		{func(p *pattern) { p.TimeZone = "right/Europe/Paris" }, "time_zone", ``},
		{func(p *pattern) { p.TimeZone = "Europe/Atlantis" }, "time_zone", ``},
		{func(p *pattern) { p.Start = "" }, "start", `"" is no local time; write it as "2026-12-01T09:00:00", without an offset, in a year from 1970 to 2200`},
		{func(p *pattern) { p.Start = "2027-01-01T09:00:00Z" }, "start", ``},
		{func(p *pattern) { p.Start = "2027-02-29T09:00:00" }, "start", ``},
		{func(p *pattern) { p.Start = "2201-01-01T09:00:00" }, "start", ``},
		{func(p *pattern) { p.Start = "1969-12-31T09:00:00" }, "start", ``},
		{func(p *pattern) { p.Rule = "FREQ=WEEKLY;BYDAY=MO" }, "start", `2027-01-01T09:00:00 is not in the rule; the first local time on or after it that is in the rule is 2027-01-04T09:00:00`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30" }, "start", `2027-01-01T09:00:00 is not in the rule, and neither is a later local time up to UNTIL or the year 2200`},
		{func(p *pattern) { p.Rule = "" }, "rule", `is empty; write an RRULE of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"`},
		{func(p *pattern) { p.Rule = "INTERVAL=2" }, "rule", `has no FREQ; write an RRULE of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"`},
		{func(p *pattern) { p.Rule = "FREQ=HOURLY" }, "rule", `FREQ is "HOURLY"; it must be DAILY, WEEKLY, MONTHLY or YEARLY; make one series for each time of day`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;" }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;FREQ=DAILY" }, "rule", `FREQ is there twice; a part can be there once`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;BYHOUR=9,17" }, "rule", `BYHOUR is not accepted: the time of day is that of the start; make one series for each time of day`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;BYMINUTE=9" }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;BYSECOND=9" }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=YEARLY;BYWEEKNO=20" }, "rule", `BYWEEKNO is not accepted: write INTERVAL with FREQ=WEEKLY, or BYMONTH and BYDAY with FREQ=YEARLY`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;BYEASTER=0" }, "rule", `"BYEASTER" is not known; the parts are FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYMONTHDAY, BYYEARDAY, BYDAY, BYSETPOS and WKST`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;INTERVAL=0" }, "rule", `INTERVAL is "0"; it must be a whole number from 1 to 1000`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;INTERVAL=1001" }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;COUNT=0" }, "rule", `COUNT is "0"; it must be a whole number from 1 to 100000`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;COUNT=3;UNTIL=20280101" }, "rule", `has COUNT and UNTIL; one of them ends it`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;UNTIL=20261231" }, "rule", `UNTIL is before the start, 2027-01-01T09:00:00`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;UNTIL=20270101T075959Z" }, "rule", `UNTIL is before the start, 2027-01-01T09:00:00`},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;UNTIL=2027-12-31" }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;UNTIL=22010101" }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=DAILY;BYSETPOS=1" }, "rule", `BYSETPOS chooses among the days of another part; add BYDAY, BYMONTHDAY, BYMONTH or BYYEARDAY`},
		{func(p *pattern) { p.Rule = "FREQ=MONTHLY;BYDAY=FR;BYSETPOS=0" }, "rule", `BYSETPOS is "0"; it must be a list of numbers from 1 to 366, or from -366 to -1, which count from the end, such as 1,-1`},
		{func(p *pattern) { p.Rule = "FREQ=MONTHLY;BYMONTHDAY=32" }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=MONTHLY;BYMONTHDAY=1," }, "rule", ``},
		{func(p *pattern) { p.Rule = "FREQ=MONTHLY;BYMONTH=-1" }, "rule", `BYMONTH is "-1"; it must be a list of numbers from 1 to 12, such as 1,7`},
		{func(p *pattern) { p.Rule = "FREQ=WEEKLY;BYMONTHDAY=1" }, "rule", `BYMONTHDAY does not go with FREQ=WEEKLY; write FREQ=MONTHLY or FREQ=DAILY`},
		{func(p *pattern) { p.Rule = "FREQ=MONTHLY;BYYEARDAY=1" }, "rule", `BYYEARDAY goes with FREQ=YEARLY only`},
		{func(p *pattern) { p.Rule = "FREQ=WEEKLY;BYDAY=1FR" }, "rule", `a number in BYDAY goes with FREQ=MONTHLY or FREQ=YEARLY only`},
		{func(p *pattern) { p.Rule = "FREQ=YEARLY;BYMONTH=1;BYDAY=6FR" }, "rule", `BYDAY has the number 6, and a month has each day at most 5 times`},
		{func(p *pattern) { p.Rule = "FREQ=WEEKLY;BYDAY=FRIDAY" }, "rule", `BYDAY is "FRIDAY"; it must be a list of days such as MO,TU, each with a number before it if only one of the month or the year is meant, such as 1MO,-1FR`},
		{func(p *pattern) { p.Rule = "FREQ=WEEKLY;WKST=FRI" }, "rule", `WKST is "FRI"; it must be MO, TU, WE, TH, FR, SA or SU`},
		{func(p *pattern) { p.Except = []string{"2027-01-02T10:00"} }, "except", `2027-01-02T10:00:00 is no occurrence; the one on that day is at 2027-01-02T09:00:00`},
		{func(p *pattern) { p.Except = []string{"2027-01-10T09:00"} }, "except", `2027-01-10T09:00:00 is no occurrence, and no other is on that day`},
		{func(p *pattern) { p.Except = []string{"2027-01-09", "2027-01-10"} }, "except", `2027-01-10 has no occurrence`},
		{func(p *pattern) { p.Except = []string{"Christmas"} }, "except", `"Christmas" is no local time and no date; write it as "2026-12-24T09:00:00", without an offset, or as "2026-12-24", in a year up to 2200`},
		{func(p *pattern) { p.Except = make([]string, 1001) }, "except", `has 1001 entries; the most is 1000`},
		{func(p *pattern) { p.Also = []string{"2027-01-02"} }, "also", `"2027-01-02" is no local time; write it as "2026-12-01T09:00:00", without an offset, in a year up to 2200`},
		{func(p *pattern) { p.Also = []string{"2026-12-31T09:00"} }, "also", `2026-12-31T09:00:00 is before the start, 2027-01-01T09:00:00; the start is the first occurrence`},
		{func(p *pattern) { p.Also = make([]string, 1001) }, "also", `has 1001 local times; the most is 1000`},
	} {
		p := good
		c.change(&p)
		_, err := recurrence.Parse(p)
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != c.field || c.message != "" && f.Message != c.message {
			t.Errorf("%+v is refused with %v, want %s: %s", p, err, c.field, c.message)
		}
	}
}

// Go's time.Time.ZoneBounds returns an end before this day where the rule of a zone, and no list, has the changes.
func TestTheLastDayOfALeapYearHasItsOccurrence(t *testing.T) {
	for _, zone := range []string{"Europe/Paris", "America/New_York", "Australia/Lord_Howe"} {
		for _, year := range []string{"2028", "2040", "2196"} {
			r := parse(t, recurrence.Pattern{Rule: "FREQ=DAILY", TimeZone: zone, Start: year + "-12-29T12:00"})
			if got, want := locals(r, 4)[2:], []string{year + "-12-31T12:00:00", starts(r, 4)[3][:4] + "-01-01T12:00:00"}; !slices.Equal(got, want) {
				t.Errorf("in %s there are %v, want %v", zone, got, want)
			}
		}
	}
}
