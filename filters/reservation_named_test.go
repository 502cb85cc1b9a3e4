// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

func mark(id string) map[string]string { return map[string]string{inventory.ReservationMark: id} }

// fifteen returns that id fifteen times.
func fifteen(id string) []string { return slices.Repeat([]string{id}, 15) }

func TestARequestNamesAReservationByItsHintOrItsFlavor(t *testing.T) {
	for name, tc := range map[string]struct {
		hints   map[string][]string
		specs   map[string]string
		project string
		now     span.Instant
		want    string // id of the reservation
		why     string // empty, with an empty want: the request names no reservation
	}{
		"neither":                       {nil, nil, "demo", 150, "", ""},
		"other hints and specs":         {map[string][]string{"group": {"r1"}}, map[string]string{"x": "r1"}, "demo", 150, "", ""},
		"by its hint":                   {hint("r1"), nil, "demo", 150, "r1", ""},
		"by its flavor":                 {nil, mark("r1"), "demo", 150, "r1", ""},
		"by both":                       {hint("r1"), mark("r1"), "demo", 150, "r1", ""},
		"by both, which differ":         {hint("r1"), mark("r2"), "demo", 150, "", "another reservation than the flavor"},
		"no hint":                       {hint(), nil, "demo", 150, "", "must name one"},
		"no hint, but a flavor":         {hint(), mark("r1"), "demo", 150, "", "must name one"},
		"the first of two":              {hint("r1", "r2"), nil, "demo", 150, "r1", ""},
		"the second of two":             {hint("r2", "r1"), nil, "demo", 150, "r1", ""},
		"none of two":                   {hint("r2", "r3"), nil, "demo", 150, "", "no reservation r2, or it is over; nor may the request use another"},
		"its flavor's of two":           {hint("r2", "r1"), mark("r1"), "demo", 150, "r1", ""},
		"its flavor's is none of two":   {hint("r1", "r3"), mark("r2"), "demo", 150, "", "another reservation than the flavor"},
		"one of two is no id":           {hint("r1", "'"), nil, "demo", 150, "", "must be the id"},
		"one of sixteen":                {hint(append(fifteen("x"), "r1")...), nil, "demo", 150, "r1", ""},
		"too many":                      {hint(append(fifteen("x"), "y", "r1")...), nil, "demo", 150, "", "or up to 16"},
		"an empty hint":                 {hint(""), nil, "demo", 150, "", "must be the id"},
		"an empty mark":                 {nil, mark(""), "demo", 150, "", "must be the id"},
		"no id":                         {hint("r1; drop table"), nil, "demo", 150, "", "must be the id"},
		"no id, since it is too long":   {hint(strings.Repeat("r", 65)), nil, "demo", 150, "", "must be the id"},
		"an unknown one":                {hint("r2"), nil, "demo", 150, "", "the project has no reservation r2, or it is over"},
		"another project's":             {hint("r1"), nil, "lab", 150, "", "the project has no reservation r1, or it is over"},
		"another project's, by flavor":  {nil, mark("r1"), "lab", 150, "", "the project has no reservation r1, or it is over"},
		"active, but its time has come": {hint("r1"), nil, "demo", 200, "", "runs from 1970-01-01T00:01:40Z to 1970-01-01T00:03:20Z"},
		"active, before its time":       {hint("r1"), nil, "demo", 99, "", "runs from"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &placing.Request{ProjectID: tc.project, Hints: tc.hints, ExtraSpecs: tc.specs}
			got, why := filters.Reservation{Promises: promises(reservation.Active)}.Resolve(r, tc.now)
			switch {
			case (why == "") != (tc.why == "") || !strings.Contains(why, tc.why):
				t.Errorf("refused with %q, want a reason with %q", why, tc.why)
			case got == nil != (tc.want == "") || got != nil && got.ID != tc.want:
				t.Errorf("the request names %+v, want %q", got, tc.want)
			}
		})
	}
	for status, want := range map[reservation.Status]string{
		reservation.Waiting:  "waits for room until",
		reservation.Pending:  "has not started: it is pending; it runs from 1970-01-01T00:01:40Z",
		reservation.Starting: "has not started: it is starting; it runs from 1970-01-01T00:01:40Z",
		reservation.Ending:   "is ending; it ran from 1970-01-01T00:01:40Z to 1970-01-01T00:03:20Z",
	} {
		r := &placing.Request{ProjectID: "demo", Hints: hint("r1")}
		if got, why := (filters.Reservation{Promises: promises(status)}).Resolve(r, 150); got != nil || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want a reason with %q", status, why, want)
		}
	}
}

func TestAReservationIsNamedByItsIdInAnyCase(t *testing.T) {
	const id = "5c6e3e52-0c0c-4d0e-9a4e-6a1f4f3f4c55"
	kept := promises(reservation.Active)
	named := kept.reservations["r1"]
	named.ID = id
	kept.reservations[id] = named
	for name, r := range map[string]*placing.Request{
		"by its hint":   {ProjectID: "demo", Hints: hint(strings.ToUpper(id))},
		"by its flavor": {ProjectID: "demo", Hints: hint(strings.ToUpper(id)), ExtraSpecs: mark(id)},
	} {
		if got, why := (filters.Reservation{Promises: kept}).Resolve(r, 150); got == nil || got.ID != id {
			t.Errorf("%s: the request names %+v, refused with %q", name, got, why)
		}
	}
}

// leased are promised reservations. Two of them, r1 and r2, are in a lease of project demo.
type leased struct{ promised }

func (leased) InLease(lease, project string) []string {
	if lease != "lease" || project != "demo" {
		return nil
	}
	return []string{"r1", "r2"}
}

func TestTheOwnerOfALeaseIsToldWhichReservationsToName(t *testing.T) {
	f := filters.Reservation{Promises: leased{promises(reservation.Active)}}
	for project, want := range map[string]string{
		"demo": "lease lease is not a reservation; name one of its reservations: r1, r2",
		"lab":  "the project has no reservation lease, or it is over",
	} {
		if _, why := f.Resolve(&placing.Request{ProjectID: project, Hints: hint("lease")}, 150); why != want {
			t.Errorf("project %s is told %q, want %q", project, why, want)
		}
	}
}
