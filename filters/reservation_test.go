// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// promised holds the promises of a test: reservations by id, and one claim per host.
type promised struct {
	reservations map[string]reservation.Reservation
	claims       map[string]span.Span
	overdue      []string // hosts whose claim has ended but is not carried out yet
}

func (p promised) Reservation(id string) (reservation.Reservation, bool) {
	r, ok := p.reservations[id]
	return r, ok
}

func (p promised) Promised(t span.Instant) (claims []reservation.Claim) {
	for host, claim := range p.claims {
		if claim.End > t || slices.Contains(p.overdue, host) {
			claims = append(claims, reservation.Claim{Host: host, Span: claim})
		}
	}
	return claims
}

// held is the span for which project demo holds hosts a and b in these tests.
var held = span.Span{Start: 100, End: 200}

func promises(status reservation.Status) promised {
	r := reservation.Reservation{
		ID: "r1", ProjectID: "demo", Status: status, Span: held,
		Claims: []reservation.Claim{{Host: "a", Span: held}, {Host: "b", Span: held}},
	}
	return promised{
		reservations: map[string]reservation.Reservation{"r1": r},
		claims:       map[string]span.Span{"a": held, "b": held},
	}
}

func TestAHintOpensTheHostsOfItsReservationOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		status     reservation.Status
		project    string
		hint       []string
		host       string
		now        span.Instant
		wantRefuse string // part of the reason; empty if admitted
	}{
		"its host":                        {reservation.Active, "demo", []string{"r1"}, "a", 150, ""},
		"its other host":                  {reservation.Active, "demo", []string{"r1"}, "b", 150, ""},
		"at its start":                    {reservation.Active, "demo", []string{"r1"}, "a", 100, ""},
		"another host":                    {reservation.Active, "demo", []string{"r1"}, "c", 150, "not one of reservation r1"},
		"an unknown host":                 {reservation.Active, "demo", []string{"r1"}, "nobody", 150, "not one of reservation r1"},
		"another project's reservation":   {reservation.Active, "lab", []string{"r1"}, "a", 150, "no reservation r1"},
		"an unknown reservation":          {reservation.Active, "demo", []string{"r2"}, "a", 150, "no reservation r2"},
		"an empty hint":                   {reservation.Active, "demo", []string{}, "a", 150, "must name one"},
		"the first of two":                {reservation.Active, "demo", []string{"r1", "r2"}, "a", 150, ""},
		"the second of two":               {reservation.Active, "demo", []string{"r2", "r1"}, "a", 150, ""},
		"none of two":                     {reservation.Active, "demo", []string{"r2", "r3"}, "a", 150, "no reservation r2"},
		"pending":                         {reservation.Pending, "demo", []string{"r1"}, "a", 50, "is pending"},
		"pending, though its start is by": {reservation.Pending, "demo", []string{"r1"}, "a", 150, "is pending"},
		"starting":                        {reservation.Starting, "demo", []string{"r1"}, "a", 150, "is starting"},
		"ending":                          {reservation.Ending, "demo", []string{"r1"}, "a", 150, "is ending"},
		"ended":                           {reservation.Ended, "demo", []string{"r1"}, "a", 250, "is ended"},
		"active, though its end is by":    {reservation.Active, "demo", []string{"r1"}, "a", 200, "runs from"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, fence := range []filters.Fence{filters.FenceAlways, filters.FenceLeadTime} {
				for _, preemptible := range []bool{false, true} {
					f := filters.Reservation{Promises: promises(tc.status), Fence: fence, LeadTime: 30}
					req := placing.Request{ProjectID: tc.project, Hints: map[string][]string{placing.ReservationHint: tc.hint}, Preemptible: preemptible}
					expect(t, f.Judge(req, tc.now)(tc.host), tc.wantRefuse)
				}
			}
		})
	}
}

func TestWithoutAHintTheFenceDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		host        string
		now         span.Instant
		preemptible bool
		wantAlways  string // part of the reason of the fence "always"; empty if it admits
		wantLead    string // the same for the fence "lead_time" with 30 s
	}{
		"a host without a claim":           {host: "c", now: 150},
		"a host that nobody knows":         {host: "nobody", now: 150},
		"long before the claim":            {host: "a", now: 0, wantAlways: "reserved from"},
		"just before the lead time":        {host: "a", now: 69, wantAlways: "reserved from"},
		"at the lead time":                 {host: "a", now: 70, wantAlways: "reserved from", wantLead: "reserved from"},
		"just before the claim":            {host: "a", now: 99, wantAlways: "reserved from", wantLead: "reserved from"},
		"as the claim begins":              {host: "a", now: 100, wantAlways: "reserved until", wantLead: "reserved until"},
		"while the claim runs":             {host: "a", now: 199, wantAlways: "reserved until", wantLead: "reserved until"},
		"as the claim ends":                {host: "a", now: 200},
		"preemptible, long before":         {host: "a", now: 0, preemptible: true},
		"preemptible, within the lead":     {host: "a", now: 99, preemptible: true},
		"preemptible, as the claim begins": {host: "a", now: 100, preemptible: true, wantAlways: "reserved until", wantLead: "reserved until"},
		"preemptible, as it ends":          {host: "a", now: 200, preemptible: true},
	} {
		t.Run(name, func(t *testing.T) {
			// Neither other hints nor ownership of the claim change the verdict.
			for _, req := range []placing.Request{
				{ProjectID: "lab", Preemptible: tc.preemptible},
				{ProjectID: "demo", Preemptible: tc.preemptible, Hints: map[string][]string{"group": {"r1"}}},
			} {
				f := filters.Reservation{Promises: promises(reservation.Active), LeadTime: 30}
				f.Fence = filters.FenceAlways
				expect(t, f.Judge(req, tc.now)(tc.host), tc.wantAlways)
				f.Fence = filters.FenceLeadTime
				expect(t, f.Judge(req, tc.now)(tc.host), tc.wantLead)
			}
		})
	}
}

func TestPreemptibleInstancesComeInUntilTheyMustLeave(t *testing.T) {
	f := filters.Reservation{Promises: promises(reservation.Pending), Fence: filters.FenceAlways, Eviction: 20}
	for now, want := range map[span.Instant]string{0: "", 79: "", 80: "reserved from", 99: "reserved from", 100: "reserved until", 200: ""} {
		expect(t, f.Judge(placing.Request{Preemptible: true}, now)("a"), want)
	}
}

// fillable is a Promises whose host a accepts preemptible instances while no start is
// less than a minute ahead.
type fillable struct{ promised }

func (fillable) Fillable(_ span.Instant, ahead int64) map[string]bool {
	return map[string]bool{"a": ahead < 60}
}

func TestPreemptibleInstancesFillActiveReservationsWhereTheyMakeRoom(t *testing.T) {
	preemptible := placing.Request{Preemptible: true}
	f := filters.Reservation{Promises: fillable{promises(reservation.Active)}, Fence: filters.FenceAlways, Eviction: 20, Fill: true}
	expect(t, f.Judge(preemptible, 150)("a"), "")
	expect(t, f.Judge(preemptible, 150)("b"), "reserved until")
	expect(t, f.Judge(placing.Request{}, 150)("a"), "reserved until")
	f.Eviction = 60
	expect(t, f.Judge(preemptible, 150)("a"), "reserved until")
	f.Eviction, f.Fill = 20, false
	expect(t, f.Judge(preemptible, 150)("a"), "reserved until")
}

func TestAHostIsClosedUntilTheEndIsCarriedOut(t *testing.T) {
	p := promises(reservation.Ending)
	p.overdue = []string{"b"}
	for _, preemptible := range []bool{false, true} {
		judge := filters.Reservation{Promises: p, Fence: filters.FenceLeadTime}.Judge(placing.Request{Preemptible: preemptible}, 300)
		expect(t, judge("a"), "")
		expect(t, judge("b"), "still being carried out")
	}
}

func TestAHostThatWasGivenBackIsTheReservationsNoMore(t *testing.T) {
	p := promises(reservation.Active)
	r := p.reservations["r1"]
	r.Claims[0].Span.End, r.Claims[1].Span.Start = 150, 150
	for now, want := range map[span.Instant][2]string{149: {"", "not one of"}, 150: {"not one of", ""}} {
		judge := filters.Reservation{Promises: p}.Judge(placing.Request{ProjectID: "demo", Hints: hint("r1")}, now)
		expect(t, judge("a"), want[0])
		expect(t, judge("b"), want[1])
	}
}

func TestAFenceThatIsNotKnownIsAlwaysClosed(t *testing.T) {
	f := filters.Reservation{Promises: promises(reservation.Pending), Fence: "sometimes", LeadTime: 30}
	expect(t, f.Judge(placing.Request{}, 0)("a"), "reserved from")
}

func hint(ids ...string) map[string][]string {
	return map[string][]string{placing.ReservationHint: ids}
}

// expect fails unless v admits (empty reason) or refuses with a reason that contains reason.
func expect(t *testing.T, v placing.Verdict, reason string) {
	t.Helper()
	switch {
	case reason == "" && !v.Admitted():
		t.Errorf("refused: %s", v.Reason)
	case reason != "" && v.Admitted():
		t.Errorf("admitted, want a refusal with %q", reason)
	case reason != "" && !strings.Contains(v.Reason, reason):
		t.Errorf("refused: %s; want a reason with %q", v.Reason, reason)
	}
}
