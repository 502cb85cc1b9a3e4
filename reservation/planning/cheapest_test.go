// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// prices are those of the ticks of a cloud.
type prices [2 * mostTicks]int64

func drawPrices(t *rapid.T) (p prices) {
	for tick := range p {
		p[tick] = rapid.Int64Range(-3, 3).Draw(t, "price")
	}
	return p
}

// reading returns a tariff with the prices.
func (p *prices) reading(c *cloud) *tariff.Reading {
	var steps []tariff.Step
	for tick, price := range p {
		steps = append(steps, tariff.Step{Span: c.span(int64(tick), 1), Price: price})
	}
	curve, err := tariff.New(steps)
	if err != nil {
		c.t.Fatal(err)
	}
	return &tariff.Reading{Curve: curve, Written: c.now}
}

// cost adds up the prices of the ticks of a choice.
func (p *prices) cost(o choice) (sum int64) {
	for _, price := range p[o.start : o.start+o.duration] {
		sum += price
	}
	return sum
}

// The tariff changes at ticks, as everything in the cloud does, so the cheapest of all starts is at one. A tick lasts a
// second in a third of the clouds.
//
//make:test-drawn
func TestTheCheapestStartIsTheOneOfAnExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCloud(t)
		c.lasts = 0 // a booking is decided for now
		p, w := drawPrices(t), c.drawWish()
		terms := reservation.Terms{}
		if len(w.Alternatives) > 0 {
			terms = w.Alternatives[0]
		}
		from, length := rapid.Int64Range(0, 9).Draw(t, "ready"), rapid.Int64Range(1, 9).Draw(t, "duration")
		window := c.span(from, length+rapid.Int64Range(1, mostTicks/2).Draw(t, "slack"))
		w.Windows = []span.Span{window}
		want, found := choice{}, false
		for start := range int64(2*mostTicks) - length {
			o := choice{0, start, w.Quantity.Min, length}
			if c.possible(w, terms, o) && (!found || p.cost(o) < p.cost(want)) {
				want, found = o, true
			}
		}
		v := c.view()
		v.Tariff = p.reading(c)
		terms.Name, terms.Quantity, terms.Policy = "w", int(w.Quantity.Min), calendar.PolicyCheapest
		plan, err := planning.NewPlan(v, reservation.Request{Terms: terms, Start: window.Start, End: window.End, Duration: c.scale * length})
		if refusal, refused := errors.AsType[*reservation.Refusal](err); refused != !found || err != nil && !refused {
			t.Fatalf("%v (%v), want a start: %v", err, refusal, found)
		}
		if !found {
			return
		}
		if plan.Span != c.span(want.start, length) || plan.Terms.Policy != calendar.PolicyCheapest || plan.Fallback.Reason != "" {
			t.Fatalf("%v by %s (%+v), want %v for %d", plan.Span, plan.Terms.Policy, plan.Fallback, c.span(want.start, length), p.cost(want))
		}
		if _, err := planning.NewPlan(v, reservation.Request{Terms: plan.Terms, Start: plan.Span.Start, End: plan.Span.End}); err != nil {
			t.Fatalf("the start of the plan is refused: %v", err)
		}
	})
}

// pricedView is a view of one free host, with prices of 5, 2 and 9 for an hour each from now on.
func pricedView(t *testing.T) planning.View {
	t.Helper()
	one := inventory.Host{Name: "a", Reservable: true, Power: inventory.PowerOn}
	one.Capacity.VCPUs = 4
	s, err := inventory.NewSnapshot([]inventory.Host{one}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const now = span.Instant(36_000)
	v, err := planning.NewView(now, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := tariff.New([]tariff.Step{
		{Span: span.New(now, 3600), Price: 5}, {Span: span.New(now+3600, 3600), Price: 2}, {Span: span.New(now+7200, 3600), Price: 9},
	})
	if err != nil {
		t.Fatal(err)
	}
	v.Tariff = &tariff.Reading{Curve: curve, Written: now - 100, MaxAge: 100}
	return v
}

func TestWithoutAUsableTariffTheStartIsThatOfFirstFitAndThePlanTellsWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *planning.View)
		hours  int64 // of the window
		start  int64 // in hours from now
		reason planning.FallbackReason
		text   string
	}{
		"the cheapest hour":            {func(*planning.View) {}, 3, 1, "", ""},
		"one start needs no tariff":    {func(v *planning.View) { v.Tariff = nil }, 1, 0, "", ""},
		"one start needs no price":     {func(v *planning.View) { v.Now += 4 * 3600 }, 1, 0, "", ""},
		"no tariff":                    {func(v *planning.View) { v.Tariff = nil }, 3, 0, planning.TariffMissing, "first-fit instead of cheapest: there is no tariff now"},
		"a stale tariff":               {func(v *planning.View) { v.Now++ }, 2, 0, planning.TariffStale, "the tariff is from 1970-01-01T09:58:20Z, which is more than 1m40s ago"},
		"the window is longer":         {func(*planning.View) {}, 4, 0, planning.TariffShort, "has no price at 1970-01-01T13:00:00Z, and the requested window lasts until 1970-01-01T14:00:00Z"},
		"a limit makes it shorter":     {func(v *planning.View) { v.Limits.StartAhead = 7200 }, 4, 1, "", ""},
		"the window begins before it":  {func(v *planning.View) { v.Now--; v.Tariff.MaxAge = 0 }, 2, 0, planning.TariffShort, "has no price at 1970-01-01T09:59:59Z"},
		"a tariff that is never stale": {func(v *planning.View) { v.Tariff.MaxAge, v.Tariff.Written = 0, 0 }, 3, 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := pricedView(t)
			c.change(&v)
			req := reservation.Request{Start: v.Now, End: v.Now.Add(3600 * c.hours), Duration: 3600}
			req.Terms = reservation.Terms{Name: "r", Quantity: 1, Policy: calendar.PolicyCheapest}
			plan, err := planning.NewPlan(v, req)
			if err != nil {
				t.Fatal(err)
			}
			policy := calendar.PolicyCheapest
			if c.reason != "" {
				policy = calendar.PolicyFirstFit
			}
			if plan.Span.Start != v.Now.Add(3600*c.start) || plan.Terms.Policy != policy || plan.Fallback.Reason != c.reason || !strings.Contains(plan.Fallback.Text, c.text) {
				t.Errorf("start %v by %s, %+v; want hour %d by %s: %s, %q", plan.Span.Start, plan.Terms.Policy, plan.Fallback, c.start, policy, c.reason, c.text)
			}
		})
	}
}

func TestADefaultOfCheapestAppliesToInstancesAndNotToMaintenance(t *testing.T) {
	for what, c := range map[string]struct {
		change func(r *reservation.Request)
		want   calendar.Policy
		hour   int64
	}{
		"hosts":       {func(*reservation.Request) {}, calendar.PolicyCheapest, 1},
		"instances":   {func(r *reservation.Request) { r.Kind, r.Resources.VCPUs = reservation.Instances, 1 }, calendar.PolicyCheapest, 1},
		"maintenance": {func(r *reservation.Request) { r.Maintenance, r.Hosts = true, []string{"a"} }, calendar.PolicyFirstFit, 0},
	} {
		t.Run(what, func(t *testing.T) {
			v := pricedView(t)
			v.Defaults.Policy = calendar.PolicyCheapest
			req := reservation.Request{Terms: reservation.Terms{Name: "r", Quantity: 1}, Start: v.Now, End: v.Now.Add(10_800), Duration: 3600}
			c.change(&req)
			plan, err := planning.NewPlan(v, req)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Terms.Policy != c.want || plan.Span.Start != v.Now.Add(3600*c.hour) {
				t.Errorf("start %v by %s, want hour %d by %s", plan.Span.Start, plan.Terms.Policy, c.hour, c.want)
			}
		})
	}
}
