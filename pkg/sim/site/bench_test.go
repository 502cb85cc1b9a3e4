// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/site"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// BenchmarkDay simulates a day of 100 hosts, measured each minute. Jobs use about 40 % of them.
func BenchmarkDay(b *testing.B) {
	power := site.Paper(152)
	t := sim.NewTimeline(sim.Second(0))
	s, err := site.New(b.Context(), t, site.Options{Hosts: sim.Hosts(100), Machines: site.Machines{Shutdown: 6, Boot: 152, Draw: draw}, Power: &power})
	if err != nil {
		b.Fatal(err)
	}
	chance := sim.Chance(1, "jobs")
	var arrive func() error
	arrive = func() error {
		t.After(int64(chance.ExpFloat64()*1030), sim.Arriving, arrive)
		req := reservation.Request{Terms: hosts(1 + chance.IntN(32)), Duration: 60 + chance.Int64N(5000)}
		if chance.IntN(4) == 0 {
			req.Start = t.Now().Add(chance.Int64N(2 * day))
		}
		_, err := s.Submit(b.Context(), booking.Caller{ProjectID: "p"}, req)
		if _, refused := err.(*reservation.Refusal); refused {
			return nil
		}
		return err
	}
	t.After(1, sim.Arriving, arrive)
	b.ResetTimer()
	for range b.N {
		if err := t.Run(b.Context(), t.Now().Add(day)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.Finish().Steps)/float64(b.N), "steps/op")
	b.ReportMetric(30e9/365, "ns/op-goal") // a year in half a minute
}
