// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The offers are those of an exhaustive search over all starts, quantities and durations in the four orders, in the order
// of their rank, and each can be booked.
//
//make:test-drawn
func TestOffersAreTheBestOfAllOptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCloud(t)
		if rapid.Bool().Draw(t, "in racks") {
			c.drawRacks()
		}
		w := c.drawWish()
		v := c.view()
		offers, complete, err := planning.Offers(v, w)
		if refusal, refused := errors.AsType[*reservation.Refusal](err); err != nil && !refused {
			t.Fatalf("%+v: %v", w, err)
		} else if refused && refusal.Message == "" {
			t.Fatal("a refusal has no reason")
		}
		if err == nil && !complete {
			t.Fatal("the search has ended early")
		}
		var got []choice
		for _, o := range offers {
			got = append(got, choice{int64(o.Alternative), int64(o.Span.Start-c.now) / c.scale, int64(o.Terms.Quantity), o.Span.Seconds() / c.scale})
		}
		if diff := gocmp.Diff(c.best(w), got, gocmp.AllowUnexported(choice{})); diff != "" {
			t.Fatalf("%+v\nthe offers differ (-exhaustive +offered):\n%s", w, diff)
		}
		for _, o := range offers {
			c.books(v, w, o)
			rule := o.Terms.Together
			if kept := c.lies(rule, c.counts(o.Claims)); kept == rule.Broken || !kept && !rule.Preferred {
				t.Fatalf("%+v is not kept by %v", rule, o.Claims)
			}
		}
	})
}

// choice is a start, a quantity and a duration for an alternative, in ticks of the scale.
type choice struct{ alternative, start, quantity, duration int64 }

const mostTicks = 14

// cloud is a small cloud and what is promised in it, by host and tick.
type cloud struct {
	t      *rapid.T
	now    span.Instant
	scale  int64 // seconds of a tick
	hosts  []inventory.Host
	holds  []planning.Hold
	whole  [][mostTicks]bool
	used   [][mostTicks]int64 // vCPUs
	held   [mostTicks]int     // by the project
	limits planning.Limits
	lasts  int64 // for how many ticks an offer can be booked
	spent  int64 // host-seconds that the project holds
	near   []int // the hosts of reservation x, from which requests lie apart
}

const coresOfHost = 4

func drawCloud(t *rapid.T) *cloud {
	c := &cloud{t: t, now: 36_000, scale: rapid.SampledFrom([]int64{1, 900, 3600}).Draw(t, "scale")}
	ticks := func(most int, label string) int { return rapid.IntRange(0, most).Draw(t, label) }
	for i := range rapid.IntRange(1, 4).Draw(t, "hosts") {
		h := inventory.Host{Name: fmt.Sprintf("h%d", i), Reservable: true, Power: inventory.PowerOn}
		h.Capacity = resource.Vector{VCPUs: coresOfHost, MemoryMB: 1000, DiskGB: 10}
		if ticks(3, "sleeps") == 0 {
			h.Power, h.BootSeconds = inventory.PowerSleeping, c.scale*int64(ticks(4, "boot"))
		}
		h.Used.MemoryMB = int64(500 * ticks(1, "used"))
		c.hosts = append(c.hosts, h)
		c.whole, c.used = append(c.whole, [mostTicks]bool{}), append(c.used, [mostTicks]int64{})
		for range ticks(4, "holds") {
			c.hold(i, ticks(9, "start"), 1+ticks(3, "length"), int64(ticks(coresOfHost, "cores")))
		}
	}
	if rapid.Bool().Draw(t, "limited") {
		c.drawLimits(ticks)
	}
	c.lasts = int64(rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "lasts"))
	t.Logf("%+v", *c)
	return c
}

// hold holds cores of a host, or all of it if they are 0, if that is possible.
func (c *cloud) hold(host, start, length int, cores int64) {
	for at := start; at < start+length; at++ {
		if c.whole[host][at] || cores == 0 && c.used[host][at] > 0 || c.used[host][at]+cores > coresOfHost {
			return
		}
	}
	for at := start; at < start+length; at++ {
		c.whole[host][at] = c.whole[host][at] || cores == 0
		c.used[host][at] += cores
	}
	h := planning.Hold{Host: c.hosts[host].Name, Span: c.span(int64(start), int64(length))}
	if cores > 0 {
		h.Resources = resource.Vector{VCPUs: cores}
	}
	c.holds = append(c.holds, h)
}

func (c *cloud) drawLimits(ticks func(int, string) int) {
	c.limits = planning.Limits{
		Duration: c.scale * int64(ticks(6, "longest")), StartAhead: c.scale * int64(ticks(9, "farthest")), Hosts: ticks(4, "most hosts"),
	}
	if c.scale == 1 {
		c.limits.HostSeconds = int64(ticks(20, "host-seconds"))
	}
	for range ticks(2, "held") {
		start, length, hosts := ticks(8, "from"), 1+ticks(3, "during"), 1+ticks(1, "held hosts")
		for at := start; at < start+length; at++ {
			c.held[at] += hosts
			c.spent += c.scale * int64(hosts)
		}
	}
}

func (c *cloud) span(start, length int64) span.Span {
	return span.New(c.now.Add(c.scale*start), c.scale*length)
}

func (c *cloud) view() planning.View { return c.viewAt(c.now) }

func (c *cloud) viewAt(now span.Instant) planning.View {
	s, err := inventory.NewSnapshot(c.hosts, nil, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	v, err := planning.NewView(now, s, c.holds)
	if err != nil {
		c.t.Fatal(err)
	}
	v.Limits, v.Held.HostSeconds, v.Holds = c.limits, c.spent, c.scale*c.lasts
	for at, hosts := range c.held {
		v.Held.Hosts = v.Held.Hosts.Add(c.span(int64(at), 1), hosts)
	}
	v.Apart = func(string, []string) []planning.Neighbor {
		x := planning.Neighbor{Of: &reservation.Reservation{ID: "x"}}
		for _, i := range c.near {
			x.Claims = append(x.Claims, reservation.Claim{Host: c.hosts[i].Name, Span: c.span(mostTicks, mostTicks)})
		}
		return []planning.Neighbor{x}
	}
	return v
}

func (c *cloud) drawWish() planning.Wish {
	t := c.t
	ranges := func(least, most int64, label string) planning.Range {
		low := rapid.Int64Range(1, least).Draw(t, "least "+label)
		return planning.Range{Min: low, Max: rapid.Int64Range(low, most).Draw(t, "most "+label)}
	}
	w := planning.Wish{Name: "w", Quantity: ranges(3, 9, "quantity"), Duration: ranges(4, 8, "duration")}
	w.Duration.Min, w.Duration.Max = c.scale*w.Duration.Min, c.scale*w.Duration.Max
	for range rapid.IntRange(0, 3).Draw(t, "windows") {
		one := c.span(rapid.Int64Range(0, 9).Draw(t, "window"), rapid.Int64Range(1, 9).Draw(t, "and its length"))
		w.Windows = append(w.Windows, one)
	}
	if !slices.ContainsFunc(w.Windows, func(s span.Span) bool { return s.Seconds() >= w.Duration.Min }) {
		w.Windows = nil
	}
	filters := []string{"", "", `["=", "$name", "h1"]`, `["in", "$name", "h0", "h2"]`}
	if c.scale == 1 { // the present lasts a second
		filters = append(filters, `[">=", "$free_ram_mb", 600]`)
	}
	for range rapid.IntRange(0, 3).Draw(t, "alternatives") {
		a := reservation.Terms{HostProperties: rapid.SampledFrom(filters).Draw(t, "filter")}
		if rapid.Bool().Draw(t, "of instances") {
			a.Kind = reservation.Instances
			a.Resources.VCPUs = rapid.Int64Range(1, 3).Draw(t, "size")
			a.Affinity = rapid.SampledFrom([]calendar.Affinity{"", "same", "different"}).Draw(t, "affinity")
		}
		if c.hosts[0].Properties != nil {
			c.drawRule(&a, w.Quantity.Min)
		}
		w.Alternatives = append(w.Alternatives, a)
	}
	return w
}

// drawRule draws how the hosts of an alternative must lie to each other, whose smallest quantity is least.
func (c *cloud) drawRule(a *reservation.Terms, least int64) {
	t := c.t
	rules := []reservation.TogetherRule{"", reservation.TogetherSame, reservation.TogetherSame, reservation.TogetherFewest}
	if least > 1 && a.Affinity != "same" {
		rules = append(rules, reservation.TogetherSpread, reservation.TogetherSpread)
	}
	rule := rapid.SampledFrom(rules).Draw(t, "rule")
	if rule != "" {
		a.Together = reservation.Together{By: "rack", Rule: rule, Preferred: rule == reservation.TogetherFewest || rapid.IntRange(0, 3).Draw(t, "preferred") == 0}
	}
	if rule == reservation.TogetherSpread {
		a.Together.Values = rapid.IntRange(2, int(least)).Draw(t, "values")
	}
	c.drawNeighbor(a)
}

// passes reports whether a host passes the filter of an alternative for a start.
func (c *cloud) passes(h *inventory.Host, filter string, start int64) bool {
	switch filter {
	case `["=", "$name", "h1"]`:
		return h.Name == "h1"
	case `["in", "$name", "h0", "h2"]`:
		return h.Name == "h0" || h.Name == "h2"
	case `[">=", "$free_ram_mb", 600]`:
		return start > c.lasts || start == 0 && h.Used.MemoryMB == 0
	}
	return true
}

// room returns how many hosts or instances an alternative has room for.
func (c *cloud) room(a reservation.Terms, start, duration int64) (sum int64) {
	for i := range c.hosts {
		h := &c.hosts[i]
		if !c.passes(h, a.HostProperties, start) || h.Power == inventory.PowerSleeping && h.BootSeconds > 0 && c.scale*(start-c.lasts) < h.BootSeconds {
			continue
		}
		room := int64(coresOfHost)
		for at := start; at < min(start+duration, mostTicks); at++ {
			if room = min(room, coresOfHost-c.used[i][at]); c.whole[i][at] {
				room = 0
			}
		}
		switch {
		case a.Kind != reservation.Instances:
			sum += room / coresOfHost
		case a.Affinity == "same":
			sum = max(sum, room/a.Resources.VCPUs)
		case a.Affinity == "different":
			sum += min(room/a.Resources.VCPUs, 1)
		default:
			sum += room / a.Resources.VCPUs
		}
	}
	return sum
}

// possible reports whether a choice is in the windows, keeps the limits and has room.
func (c *cloud) possible(w planning.Wish, a reservation.Terms, o choice) bool {
	for at := o.start; at < o.start+o.duration; at++ {
		inside := len(w.Windows) == 0
		for _, one := range w.Windows {
			inside = inside || one.Contains(c.span(at, 1).Start)
		}
		if !inside || c.limits.Hosts > 0 && at < mostTicks && c.held[at]+int(o.quantity) > c.limits.Hosts || c.limits.Hosts > 0 && int(o.quantity) > c.limits.Hosts {
			return false
		}
	}
	l := c.limits
	return (l.Duration == 0 || c.scale*o.duration <= l.Duration) && (l.StartAhead == 0 || c.scale*o.start <= l.StartAhead) &&
		(l.HostSeconds == 0 || c.spent+c.scale*o.quantity*o.duration <= l.HostSeconds) && c.roomLying(a, o.start, o.duration) >= o.quantity
}

// best returns the offers of a wish.
func (c *cloud) best(w planning.Wish) (offers []choice) {
	if w.Alternatives == nil {
		w.Alternatives = []reservation.Terms{{}}
	}
	var list []choice
	for i, a := range w.Alternatives {
		var all []choice
		for start := range int64(2 * mostTicks) {
			for quantity := w.Quantity.Min; quantity <= w.Quantity.Max; quantity++ {
				for duration := w.Duration.Min / c.scale; duration <= w.Duration.Max/c.scale; duration++ {
					if o := (choice{int64(i), start, quantity, duration}); c.possible(w, a, o) {
						all = append(all, o)
					}
				}
			}
		}
		if len(all) > 0 {
			list = append(list, slices.MinFunc(all, by(more, longer, sooner)), slices.MinFunc(all, by(sooner, more, longer)),
				slices.MinFunc(all, by(sooner, longer, more)), slices.MinFunc(all, by(longer, more, sooner)))
		}
	}
	for i, o := range list {
		if !slices.Contains(list[:i], o) && !slices.ContainsFunc(list, func(other choice) bool {
			return other != o && other.alternative <= o.alternative && sooner(other, o) <= 0 && more(other, o) <= 0 && longer(other, o) <= 0
		}) {
			offers = append(offers, o)
		}
	}
	partial := func(o choice) int {
		if o.quantity == w.Quantity.Max && c.scale*o.duration == w.Duration.Max {
			return 0
		}
		return 1
	}
	slices.SortFunc(offers, by(
		func(a, b choice) int { return partial(a) - partial(b) }, func(a, b choice) int { return int(a.alternative - b.alternative) },
		func(a, b choice) int { return cmp.Compare(b.quantity*b.duration, a.quantity*a.duration) }, sooner, more,
	))
	return offers[:min(len(offers), 6)]
}

func more(a, b choice) int   { return cmp.Compare(b.quantity, a.quantity) }
func longer(a, b choice) int { return cmp.Compare(b.duration, a.duration) }
func sooner(a, b choice) int { return cmp.Compare(a.start, b.start) }

// by compares by several orders, the first one first.
func by(orders ...func(a, b choice) int) func(a, b choice) int {
	return func(a, b choice) int {
		for _, order := range orders {
			if way := order(a, b); way != 0 {
				return way
			}
		}
		return 0
	}
}

// books books an offer, at once and as long as it lasts.
func (c *cloud) books(v planning.View, w planning.Wish, o planning.Offer) {
	var terms reservation.Terms
	if len(w.Alternatives) > 0 {
		terms = w.Alternatives[o.Alternative]
	}
	terms.Name, terms.Quantity = w.Name, o.Terms.Quantity
	plan, err := planning.NewPlan(v, reservation.Request{Terms: terms, Start: o.Span.Start, End: o.Span.End})
	if err != nil {
		c.t.Fatalf("%+v is refused: %v", o, err)
	}
	plan.Images = nil
	if diff := gocmp.Diff(o.Plan, plan); diff != "" {
		c.t.Fatalf("the plan differs (-offer +plan):\n%s", diff)
	}
	for seconds := min(c.scale*c.lasts, int64(o.Span.Start-c.now)); seconds > 0; seconds -= (c.scale + 1) / 2 {
		later := c.viewAt(c.now.Add(seconds))
		if _, err := planning.NewPlan(later, reservation.Request{Terms: terms, Start: o.Span.Start, End: o.Span.End}); err != nil {
			c.t.Fatalf("%+v is refused %d s later: %v", o, seconds, err)
		}
	}
}
