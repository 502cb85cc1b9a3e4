// SPDX-License-Identifier: Apache-2.0

package recurrence_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// worst are the patterns that cost most, by what is costly in them.
func worst() map[string]recurrence.Pattern {
	lists := recurrence.Pattern{Rule: "FREQ=DAILY", TimeZone: "Europe/Paris", Start: "2027-01-01T02:30"}
	for n := range 1000 {
		lists.Except = append(lists.Except, fmt.Sprintf("%d-%02d-%02d", 2100+n/300, n/25%12+1, n%25+1))
		lists.Also = append(lists.Also, fmt.Sprintf("%d-%02d-%02dT12:00", 2100+n/300, n/25%12+1, n%25+1))
	}
	return map[string]recurrence.Pattern{
		"a rule that matches once": {Rule: "FREQ=DAILY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU", TimeZone: "Europe/Paris", Start: "2032-02-29T09:00"},
		"positions": {
			Rule: "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR,SA,1SU,2SU,3SU,4SU,5SU;BYSETPOS=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,-1,-2,-3,-4,-5", TimeZone: "Europe/Paris",
			Start: "2027-01-01T09:00",
		},
		"a thousand left out and added": lists,
	}
}

// BenchmarkParse checks the costly patterns.
func BenchmarkParse(b *testing.B) {
	patterns := worst()
	patterns["a rule that never matches"] = recurrence.Pattern{Rule: "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", TimeZone: "Europe/Paris", Start: "2027-01-01T09:00"}
	for name, p := range patterns {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = recurrence.Parse(p)
			}
		})
	}
}

// BenchmarkOccurrences lists the occurrences of costly patterns: those of a month, and all up to the year 2200.
func BenchmarkOccurrences(b *testing.B) {
	for name, p := range worst() {
		r := parse(b, p)
		list, _ := r.Occurrences(span.Forever, 1)
		for until, at := range map[string]span.Instant{"a month": list[0].Start.Add(30 * 86400), "all": span.Forever} {
			b.Run(name+"/"+until, func(b *testing.B) {
				for b.Loop() {
					r.Occurrences(at, 100000)
				}
			})
		}
	}
}
