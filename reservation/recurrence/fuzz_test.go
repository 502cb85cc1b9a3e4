// SPDX-License-Identifier: Apache-2.0

package recurrence_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// FuzzParse reads any texts: each pattern is refused with its field, or has its start as its first occurrence and a canonical form.
func FuzzParse(f *testing.F) {
	f.Add("FREQ=WEEKLY;BYDAY=MO,TU;WKST=SU;INTERVAL=2", "Europe/Paris", "2027-01-04T09:00", "2027-01-05", "2027-01-06T10:00")
	f.Add("RRULE:FREQ=YEARLY;BYDAY=-1FR,MO;BYMONTH=1,2;BYSETPOS=-1,1;COUNT=3", "UTC", "2027-01-04T09:00:00", "", "")
	f.Add("freq=monthly;bymonthday=-1,31;until=20300101T000000Z", "Africa/Casablanca", "2027-01-31T02:30", "", "2028-02-29T00:00")
	f.Add("FREQ=YEARLY;BYYEARDAY=366,-366;UNTIL=20400101", "Pacific/Apia", "2028-01-01T00:00", "2028-12-31,2032-01-01", "")
	f.Fuzz(func(t *testing.T, rule, zone, start, except, also string) {
		p := recurrence.Pattern{Rule: rule, TimeZone: zone, Start: start}
		if except != "" {
			p.Except = strings.Split(except, ",")
		}
		if also != "" {
			p.Also = strings.Split(also, ",")
		}
		r, err := recurrence.Parse(p)
		if err != nil {
			if of := fault.Of(err); of.Kind != fault.Invalid || of.Field == "" {
				t.Fatalf("%+v is refused without a field: %v", p, err)
			}
			return
		}
		canonical := r.Pattern()
		again, err := recurrence.Parse(canonical)
		if err != nil {
			t.Fatalf("%+v is canonical, and refused: %v", canonical, err)
		}
		list, more := r.Occurrences(span.Forever, 10)
		other, otherMore := again.Occurrences(span.Forever, 10)
		if len(list) != len(other) || more != otherMore {
			t.Fatalf("%+v has %d occurrences, and %d in its canonical form", p, len(list), len(other))
		}
		for i, o := range list {
			if o != other[i] || o.Local < canonical.Start {
				t.Fatalf("%+v has %v, and %v in its canonical form", p, o, other[i])
			}
		}
	})
}
