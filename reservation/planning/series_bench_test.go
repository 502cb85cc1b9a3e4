// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// BenchmarkSeries measures the decision on a series beside one plain decision in the same run: 260 occurrences, those of each working
// day of a year, of 4 hosts for 9 hours, over 1,000 and 10,000 hosts with 100 claims each in that year. The row "accepted" has room
// for all, and in "changed" they begin an hour later. In "refused" there is room for none, and in "explained" the largest
// quantity is searched in addition: they are of 20 hosts, all that match.
func BenchmarkSeries(b *testing.B) {
	for _, hosts := range []int{1_000, 10_000} {
		v := crowdedCloud(b, reservation.Hosts, hosts, 100, 5*day)
		four := workingDays(b, v.Now)
		all := four
		all.Quantity, all.HostProperties = 20, `["<", "$name", "h00020"]`
		for _, row := range []struct {
			name     string
			request  planning.SeriesRequest
			measured func(b *testing.B, v planning.View, req planning.SeriesRequest)
		}{
			{"accepted", four, measureAccepted}, {"changed", four, measureChanged}, {"refused", all, measureRefused}, {"explained", all, measureExplained},
		} {
			b.Run(fmt.Sprintf("%d hosts/%s", hosts, row.name), func(b *testing.B) { row.measured(b, v, row.request) })
		}
	}
}

// workingDays returns the request for 4 hosts on each working day of a year.
func workingDays(b *testing.B, now span.Instant) planning.SeriesRequest {
	b.Helper()
	rule, err := recurrence.Parse(recurrence.Pattern{
		Rule: "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;COUNT=260", TimeZone: "Europe/Paris", Start: now.Add(7*day).Time().Format("2006-01-02") + "T09:00",
	})
	if err != nil {
		b.Fatal(err)
	}
	return planning.SeriesRequest{Rule: rule, Request: reservation.Request{
		Terms: reservation.Terms{Quantity: 4}, Duration: 9 * hour,
	}}
}

// besidePlain measures a decision beside the plain one about the first occurrence.
func besidePlain(b *testing.B, v planning.View, req planning.SeriesRequest, decide func()) {
	first, _ := req.Rule.Occurrences(span.Forever, 1)
	one := req.Request
	one.Start, one.End, one.Policy = first[0].Start, first[0].Start.Add(req.Duration), calendar.PolicyFirstFit
	var plain, whole []int64
	for b.Loop() {
		plain = append(plain, spent(b, func() { _, _ = planning.NewPlan(v, one) }))
		whole = append(whole, spent(b, decide))
	}
	b.ReportMetric(median(plain)/1e6, "plan-ms")
	b.ReportMetric(median(whole)/1e6, "series-ms")
	b.ReportMetric(median(whole)/median(plain), "x-plan")
}

func measureAccepted(b *testing.B, v planning.View, req planning.SeriesRequest) {
	besidePlain(b, v, req, func() {
		if _, err := planning.NewSeriesPlan(v, req); err != nil {
			b.Fatal(err)
		}
	})
}

// refusedSeries returns the refusal of all occurrences of a series.
func refusedSeries(b *testing.B, v planning.View, req planning.SeriesRequest) *reservation.Refusal {
	b.Helper()
	_, err := planning.NewSeriesPlan(v, req)
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	if !refused {
		b.Fatalf("%v is no refusal", err)
	}
	return refusal
}

func measureRefused(b *testing.B, v planning.View, req planning.SeriesRequest) {
	besidePlain(b, v, req, func() { refusedSeries(b, v, req) })
}

func measureExplained(b *testing.B, v planning.View, req planning.SeriesRequest) {
	besidePlain(b, v, req, func() { planning.ExplainSeries(v, req, refusedSeries(b, v, req)) })
}

func measureChanged(b *testing.B, v planning.View, req planning.SeriesRequest) {
	plan, err := planning.NewSeriesPlan(v, req)
	if err != nil {
		b.Fatal(err)
	}
	var list []reservation.Reservation
	for i, o := range plan.Occurrences {
		r := reservation.Reservation{
			ID: fmt.Sprint(i), Occurrence: reservation.Occurrence{SeriesID: "s", Local: o.Local}, Status: reservation.Pending,
			Terms: o.Terms, Span: o.Span, Claims: o.Claims, Version: 1,
		}
		list = append(list, r)
	}
	v.Calendar = v.Calendar.Fork()
	for i := range list {
		if err := v.Calendar.Add(v.Hosts.Claims(&list[i], list[i].Claims)...); err != nil {
			b.Fatal(err)
		}
		v.Held = v.Held.With(&list[i])
	}
	v.Calendar = v.Calendar.Snapshot()
	besidePlain(b, v, req, func() {
		if _, err := planning.PlanSeriesChange(v, list, req.Rule, planning.SeriesChange{At: new("10:00")}); err != nil {
			b.Fatal(err)
		}
	})
}
