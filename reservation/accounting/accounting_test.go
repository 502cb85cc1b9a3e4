// SPDX-License-Identifier: Apache-2.0

package accounting_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/accounting"
)

const lastSecond = 40

func drawSpan(t *rapid.T, label string) span.Span {
	start := rapid.IntRange(0, lastSecond-1).Draw(t, label+" from")
	return span.Span{Start: span.Instant(start), End: span.Instant(rapid.IntRange(start+1, lastSecond).Draw(t, label+" to"))}
}

// drawQuestion returns a question about hosts of four vCPUs on which at most one reservation holds
// anything at a time.
func drawQuestion(t *rapid.T) (q accounting.Question, list []reservation.Reservation) {
	q = accounting.Question{
		Span: drawSpan(t, "asked"), Now: span.Instant(rapid.IntRange(0, lastSecond).Draw(t, "now")),
		Pool: map[string]resource.Vector{}, Sizes: map[string]resource.Vector{}, Asleep: map[string][]span.Span{},
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "hosts") {
		host := fmt.Sprint("host-", i)
		q.Sizes[host] = resource.Vector{VCPUs: 4}
		if rapid.Bool().Draw(t, "in the pool") {
			q.Pool[host] = q.Sizes[host]
		}
		if rapid.Bool().Draw(t, "sleeps") {
			q.Asleep[host] = []span.Span{drawSpan(t, "asleep")}
		}
		for at := 0; at < lastSecond; {
			w := span.Span{Start: span.Instant(at + rapid.IntRange(0, 9).Draw(t, "gap"))}
			w.End = w.Start.Add(rapid.Int64Range(1, 12).Draw(t, "length"))
			at = int(w.End)
			r := reservation.Reservation{ProjectID: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "project"), Span: w}
			c := reservation.Claim{Host: host, Span: w}
			if r.Kind = reservation.Hosts; rapid.Bool().Draw(t, "instances") {
				r.Kind, r.Resources, c.Slices = reservation.Instances, resource.Vector{VCPUs: 1}, rapid.IntRange(1, 4).Draw(t, "instances")
			}
			r.Maintenance = r.Kind == reservation.Hosts && rapid.Bool().Draw(t, "maintenance")
			if rapid.Bool().Draw(t, "began") {
				r.Events = []reservation.Event{{Type: reservation.StartEvent, State: reservation.EventDone, Done: w.Start.Add(rapid.Int64Range(0, 3).Draw(t, "late"))}}
			}
			r.Claims = []reservation.Claim{c}
			list = append(list, r)
		}
	}
	return q, list
}

// oracle adds up second by second.
func oracle(q accounting.Question, list []reservation.Reservation) (projects, hosts map[string]accounting.Sum) {
	projects, hosts = map[string]accounting.Sum{}, map[string]accounting.Sum{}
	for at := q.Span.Start; at < q.Span.End; at++ {
		held := map[string]float64{}
		for _, r := range list {
			c := r.Claims[0]
			if !c.Span.Contains(at) {
				continue
			}
			share := 1.0
			if r.Kind == reservation.Instances {
				share = float64(c.Slices) / 4
			}
			held[c.Host] += share
			if r.Maintenance {
				h := hosts[c.Host]
				h.Maintenance++
				hosts[c.Host] = h
				continue
			}
			p, h := projects[r.ProjectID], hosts[c.Host]
			p.Reserved, h.Reserved = p.Reserved+share, h.Reserved+share
			if len(r.Events) > 0 && r.Events[0].Done <= at && at < q.Now {
				p.Used, h.Used = p.Used+share, h.Used+share
			}
			projects[r.ProjectID], hosts[c.Host] = p, h
		}
		for host := range q.Pool {
			h := hosts[host]
			h.Capacity++
			asleep := slices.ContainsFunc(q.Asleep[host], func(s span.Span) bool { return s.Contains(at) })
			switch {
			case at >= q.Now:
			case asleep:
				h.Asleep += 1 - held[host]
			default:
				h.Idle += 1 - held[host]
			}
			hosts[host] = h
		}
	}
	return projects, hosts
}

func near(a, b accounting.Sum) bool {
	differs := func(x, y float64) bool { return math.Abs(x-y) > 1e-9 }
	return !differs(a.Reserved, b.Reserved) && !differs(a.Used, b.Used) && !differs(a.Maintenance, b.Maintenance) &&
		!differs(a.Idle, b.Idle) && !differs(a.Asleep, b.Asleep) && !differs(a.Capacity, b.Capacity)
}

func TestTheSumsAreThoseOfEverySecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, list := drawQuestion(t)
		account := q.Begin()
		for i := range list {
			account.Add(&list[i], list[i].Claims)
		}
		report := account.Report()
		projects, hosts := oracle(q, list)
		var total accounting.Sum
		for host, want := range hosts {
			if got := report.Hosts[host]; !near(got, want) {
				t.Fatalf("%s has %+v, want %+v", host, got, want)
			}
			total.Reserved, total.Used, total.Idle = total.Reserved+want.Reserved, total.Used+want.Used, total.Idle+want.Idle
			total.Maintenance += want.Maintenance
			total.Asleep, total.Capacity = total.Asleep+want.Asleep, total.Capacity+want.Capacity
		}
		for project, want := range projects {
			if got := report.Projects[project]; !near(got, want) {
				t.Fatalf("project %s has %+v, want %+v", project, got, want)
			}
		}
		if len(report.Hosts) != len(hosts) || len(report.Projects) != len(projects) || !near(report.Total, total) {
			t.Fatalf("got %+v, want the hosts %v, the projects %v and the total %+v", report, hosts, projects, total)
		}
	})
}

// What was held is the same whether it is added claim by claim or by the sums of its days, if the report
// covers whole days and nobody slept.
func TestTheSumsOfDaysAreThoseOfTheirClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, list := drawQuestion(t)
		q.Span, q.Now, q.Asleep = span.Span{Start: 0, End: 3 * accounting.Day}, 2*accounting.Day, nil
		byClaims, byDays := q.Begin(), q.Begin()
		for i := range list {
			c := &list[i].Claims[0]
			c.Span.End = c.Span.End.Add(rapid.Int64Range(0, accounting.Day).Draw(t, "longer"))
			byClaims.Add(&list[i], list[i].Claims)
			for day := range accounting.Days(&list[i], list[i].Claims) {
				if day.Day%accounting.Day != 0 || day.Held > accounting.Day || day.Held <= 0 {
					t.Fatalf("a day is %+v", day)
				}
				byDays.AddDay(day)
			}
		}
		want, got := byClaims.Report(), byDays.Report()
		if !near(want.Total, got.Total) || len(want.Hosts) != len(got.Hosts) || len(want.Projects) != len(got.Projects) {
			t.Fatalf("by days the total is %+v, by claims %+v", got.Total, want.Total)
		}
		for host := range want.Hosts {
			if !near(want.Hosts[host], got.Hosts[host]) {
				t.Fatalf("%s has by days %+v, by claims %+v", host, got.Hosts[host], want.Hosts[host])
			}
		}
	})
}
