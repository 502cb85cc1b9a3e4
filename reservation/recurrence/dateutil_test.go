// SPDX-License-Identifier: Apache-2.0

package recurrence_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/reservation/recurrence"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// python-dateutil has the same days for rules of RFC 5545 over thirty years, except where the RFC decides against it: BYSETPOS in the
// first week, which it counts from the start instead of from the begin of the week, and BYDAY with and without numbers.
func TestDateutilHasTheSameDays(t *testing.T) {
	type question struct {
		Rule  string `json:"rule"`
		Start string `json:"start"`
		Until string `json:"until"`
	}
	const until = "2057-01-01T00:00:00"
	var questions []question
	var rules []*drawn
	for seed := range 450 {
		d := rapid.Custom(drawRule).Example(seed)
		days := d.days()
		if len(days) == 0 || days[len(days)-1].year < 2050 {
			continue // dateutil would look for the next day up to the year 9999
		}
		d.start = days[0]
		switch last := days[min(len(days)-1, seed)]; seed % 3 {
		case 0:
			d.count = seed/3 + 1
		case 1:
			d.until = shown(last.number*86400 + d.second)
			d.until = d.until[:4] + d.until[5:7] + d.until[8:13] + d.until[14:16] + d.until[17:]
		}
		questions = append(questions, question{d.rule(), shown(d.start.number*86400 + d.second), until})
		rules = append(rules, d)
	}
	var answers [][]string
	labtest.AskPython(t, "testdata/oracle.py", questions, &answers)
	same := 0
	for i, q := range questions {
		r := parse(t, recurrence.Pattern{Rule: q.Rule, TimeZone: "UTC", Start: q.Start})
		list, _ := r.Occurrences(at(t, until+"Z"), 100000)
		var got []string
		for _, o := range list {
			got = append(got, o.Local)
		}
		d := rules[i]
		numbered := func(o ordinal) bool { return o.nth != 0 }
		differs := d.frequency == "WEEKLY" && len(d.bySetPos) > 0 ||
			slices.ContainsFunc(d.byDay, numbered) && slices.ContainsFunc(d.byDay, func(o ordinal) bool { return !numbered(o) })
		switch {
		case slices.Equal(got, answers[i]):
			same++
		case !differs:
			t.Errorf("%+v: there are %d occurrences, dateutil has %d", q, len(got), len(answers[i]))
		}
	}
	t.Logf("of %d rules %d have the same days", len(questions), same)
	if same < len(questions)*3/4 || len(questions) < 300 {
		t.Errorf("of %d rules only %d have the same days", len(questions), same)
	}
}
