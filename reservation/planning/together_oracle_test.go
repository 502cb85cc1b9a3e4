// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The hosts of a plan lie as the request asks, no earlier start allows that, and of several choices it has the one of
// docs/concepts.md "Together". All this is compared with every distribution over the hosts at every start.
//
//make:test-drawn
func TestHostsLieToEachOtherAsARequestAsks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRacks(t)
		a, o := c.drawTerms(), c.drawWindow()
		plan, err := planning.NewPlan(c.view(), c.ask(a, o))
		if refusal, refused := errors.AsType[*reservation.Refusal](err); refused {
			c.checkRefusal(a, o, refusal)
			return
		} else if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		start := int64(plan.Span.Start-c.now) / c.scale
		if first := c.first(a, o, o.last); first != start {
			t.Fatalf("it starts at %d, the first possible start is %d", start, first)
		}
		got := c.counts(plan.Claims)
		all := c.distributions(a, start, o.duration)
		if !slices.ContainsFunc(all, func(d []int) bool { return slices.Equal(d, got) }) {
			t.Fatalf("there is no room for %v at %d", got, start)
		}
		c.checkChoice(a, plan, got, all)
	})
}

// window is when a reservation may start, in ticks.
type window struct{ first, last, duration int64 }

// drawRacks draws a cloud whose hosts are in racks; some are in none.
func drawRacks(t *rapid.T) *cloud {
	c := drawCloud(t)
	c.lasts = 0
	c.drawRacks()
	return c
}

func (c *cloud) drawRacks() {
	t := c.t
	for range rapid.IntRange(0, 2).Draw(t, "more hosts") {
		i := len(c.hosts)
		c.hosts = append(c.hosts, inventory.Host{
			Name: fmt.Sprintf("h%d", i), Reservable: true, Power: inventory.PowerOn, Capacity: resource.Vector{VCPUs: coresOfHost, MemoryMB: 1000, DiskGB: 10},
		})
		c.whole, c.used = append(c.whole, [mostTicks]bool{}), append(c.used, [mostTicks]int64{})
		c.hold(i, rapid.IntRange(0, 6).Draw(t, "from"), 3, int64(rapid.IntRange(0, coresOfHost).Draw(t, "cores")))
	}
	c.hosts[0].Properties = map[string]inventory.Value{"rack": inventory.StringValue("r1")} // so that the property exists
	for i := range c.hosts {
		if rack := rapid.SampledFrom([]string{"", "r1", "r1", "r2", "r2", "r3"}).Draw(t, "rack"); rack != "" {
			c.hosts[i].Properties = map[string]inventory.Value{"rack": inventory.StringValue(rack)}
		}
	}
	for i := range c.hosts {
		if rapid.IntRange(0, 3).Draw(t, "near") == 0 {
			c.near = append(c.near, i)
		}
	}
}

func (c *cloud) rack(i int) string {
	text, _ := c.hosts[i].Properties["rack"].Any().(string)
	return text
}

func (c *cloud) drawTerms() reservation.Terms {
	t := c.t
	a := reservation.Terms{Quantity: rapid.IntRange(1, 4).Draw(t, "quantity"), Kind: reservation.Hosts, Policy: calendar.PolicyFirstFit}
	filters := []string{"", "", `["in", "$name", "h0", "h2"]`}
	if c.scale == 1 { // the present lasts a second
		filters = append(filters, `[">=", "$free_ram_mb", 600]`)
	}
	a.HostProperties = rapid.SampledFrom(filters).Draw(t, "filter")
	if rapid.Bool().Draw(t, "of instances") {
		a.Kind, a.Resources.VCPUs = reservation.Instances, rapid.Int64Range(1, 3).Draw(t, "size")
		a.Affinity = rapid.SampledFrom([]calendar.Affinity{"none", "same", "different"}).Draw(t, "affinity")
	}
	a.Together = reservation.Together{By: "rack", Rule: rapid.SampledFrom(reservation.TogetherRules).Draw(t, "rule"), Preferred: true}
	if a.Together.Rule == reservation.TogetherSpread {
		a.Quantity, a.Together.Values = max(a.Quantity, 2), rapid.IntRange(2, max(a.Quantity, 2)).Draw(t, "values")
		if a.Affinity == "same" {
			a.Affinity = "none"
		}
	}
	if a.Together.Rule != reservation.TogetherFewest {
		a.Together.Preferred = rapid.Bool().Draw(t, "preferred")
	}
	c.drawNeighbor(&a)
	return a
}

// drawNeighbor draws a reservation from which the request lies apart, beside its rule or without one.
func (c *cloud) drawNeighbor(a *reservation.Terms) {
	if rapid.IntRange(0, 2).Draw(c.t, "apart") > 0 {
		return
	}
	a.Together.ApartFrom = "x"
	if rapid.Bool().Draw(c.t, "only apart") {
		a.Together = reservation.Together{By: "rack", ApartFrom: "x"}
	}
	a.Together.By = "rack"
}

// apart reports whether a host is where the request lies apart from its neighbor.
func (c *cloud) apart(a reservation.Terms, i int) bool {
	return a.Together.ApartFrom == "" || c.rack(i) != "" && !slices.ContainsFunc(c.near, func(n int) bool { return c.rack(n) == c.rack(i) })
}

func (c *cloud) drawWindow() window {
	first := rapid.Int64Range(0, 9).Draw(c.t, "from")
	return window{first, first + rapid.SampledFrom([]int64{0, 0, 1, 4, 9}).Draw(c.t, "later"), rapid.Int64Range(1, 5).Draw(c.t, "duration")}
}

func (c *cloud) ask(a reservation.Terms, o window) reservation.Request {
	return reservation.Request{Terms: a, Start: c.span(o.first, 1).Start, End: c.span(o.last+o.duration, 1).Start, Duration: c.scale * o.duration}
}

// rooms returns how many hosts or instances each host has room for.
func (c *cloud) rooms(a reservation.Terms, start, duration int64) (rooms []int) {
	for i := range c.hosts {
		if !c.apart(a, i) {
			rooms = append(rooms, 0)
			continue
		}
		one := &cloud{hosts: c.hosts[i : i+1], whole: c.whole[i : i+1], used: c.used[i : i+1], scale: c.scale, lasts: c.lasts}
		rooms = append(rooms, int(one.room(a, start, duration)))
	}
	return rooms
}

// roomLying returns how many hosts or instances there is room for as a request asks for them, if they are at least as many as
// it asks for values.
func (c *cloud) roomLying(a reservation.Terms, start, duration int64) int64 {
	all, racks := 0, map[string]int{}
	for i, n := range c.rooms(a, start, duration) {
		if c.rack(i) == "" && a.Together.Rule != "" && !a.Together.Preferred || n == 0 {
			continue
		}
		if a.Affinity == "same" {
			all, racks[c.rack(i)] = max(all, n), max(racks[c.rack(i)], n)
		} else {
			all, racks[c.rack(i)] = all+n, racks[c.rack(i)]+n
		}
	}
	most := 0
	for _, n := range racks {
		most = max(most, n)
	}
	switch {
	case a.Together.Preferred:
	case a.Together.Rule == reservation.TogetherSame:
		return int64(most)
	case a.Together.Rule == reservation.TogetherSpread && len(racks) < a.Together.Values:
		return 0
	}
	return int64(all)
}

// distributions returns all distributions of the quantity over the hosts for which there is room.
func (c *cloud) distributions(a reservation.Terms, start, duration int64) (all [][]int) {
	rooms := c.rooms(a, start, duration)
	var distribute func(so []int, left int)
	distribute = func(so []int, left int) {
		if len(so) == len(rooms) {
			used := len(so) - countOf(so, 0)
			if left == 0 && (a.Affinity != "same" || used == 1) {
				all = append(all, slices.Clone(so))
			}
			return
		}
		for n := range min(rooms[len(so)], left) + 1 {
			distribute(append(slices.Clip(so), n), left-n)
		}
	}
	distribute(nil, a.Quantity)
	return all
}

func countOf(list []int, value int) (n int) {
	for _, one := range list {
		if one == value {
			n++
		}
	}
	return n
}

// byRack returns how many hosts or instances of a distribution are in each rack; "" is no rack.
func (c *cloud) byRack(d []int) map[string]int {
	racks := map[string]int{}
	for i, n := range d {
		if n > 0 {
			racks[c.rack(i)] += n
		}
	}
	return racks
}

// lies reports whether a distribution is as the rule asks.
func (c *cloud) lies(rule reservation.Together, d []int) bool {
	racks := c.byRack(d)
	none := racks[""] > 0
	delete(racks, "")
	switch rule.Rule {
	case reservation.TogetherSame:
		return !none && len(racks) == 1
	case reservation.TogetherSpread:
		return len(racks) >= rule.Values && (rule.Preferred || !none)
	}
	return true
}

// accepts reports whether a start is possible.
func (c *cloud) accepts(a reservation.Terms, start, duration int64) bool {
	o := choice{start: start, quantity: int64(a.Quantity), duration: duration}
	return c.possible(planning.Wish{}, a, o) && slices.ContainsFunc(c.distributions(a, start, duration), func(d []int) bool {
		return a.Together.Preferred || c.lies(a.Together, d)
	})
}

// first returns the first possible start from the window on, up to latest; -1 if there is none.
func (c *cloud) first(a reservation.Terms, o window, latest int64) int64 {
	for start := o.first; start <= latest; start++ {
		if c.accepts(a, start, o.duration) {
			return start
		}
	}
	return -1
}

// counts returns how many hosts or instances claims have on each host.
func (c *cloud) counts(claims []reservation.Claim) []int {
	counts := make([]int, len(c.hosts))
	for _, one := range claims {
		i := slices.IndexFunc(c.hosts, func(h inventory.Host) bool { return h.Name == one.Host })
		counts[i] += max(one.Slices, 1)
	}
	return counts
}

// checkChoice checks which of all distributions was chosen.
func (c *cloud) checkChoice(a reservation.Terms, plan planning.Plan, got []int, all [][]int) {
	rule, racks := plan.Terms.Together, c.byRack(got)
	start := int64(plan.Span.Start-c.now) / c.scale
	possible := slices.ContainsFunc(all, func(d []int) bool { return c.lies(rule, d) })
	if rule.Rule == reservation.TogetherFewest {
		possible = true
	}
	if rule.Broken == c.lies(rule, got) || rule.Broken == possible {
		c.t.Fatalf("%+v on %v: broken is %t, and to keep it was possible: %t", rule, racks, rule.Broken, possible)
	}
	if a.Affinity == "same" || rule.Rule == "" {
		return
	}
	room := map[string]int{}
	for i, n := range c.rooms(a, start, plan.Span.Seconds()/c.scale) {
		room[c.rack(i)] += min(n, a.Quantity)
	}
	switch {
	case rule.Rule == reservation.TogetherSame && !rule.Broken:
		for rack := range racks {
			for other, n := range room {
				if other != "" && n >= a.Quantity && (n < room[rack] || n == room[rack] && other < rack) {
					c.t.Fatalf("it is in %s with room for %d, not in %s with room for %d", rack, room[rack], other, n)
				}
			}
		}
	case rule.Rule == reservation.TogetherSpread:
		if want := inTurns(room, a.Quantity); fmt.Sprint(want) != fmt.Sprint(racks) {
			c.t.Fatalf("it has %v of %v, in turns that is %v", racks, room, want)
		}
	default: // fewest, and what a preferred same has instead
		fewest := len(racks)
		for _, d := range all {
			if other := c.byRack(d); other[""] <= racks[""] {
				fewest = min(fewest, len(other))
			}
		}
		if fewest < len(racks) {
			c.t.Fatalf("%v are not the fewest racks: %d", racks, fewest)
		}
	}
}

// inTurns distributes a quantity over racks, one each in turns; no rack comes last.
func inTurns(room map[string]int, quantity int) map[string]int {
	has := map[string]int{}
	for quantity > 0 {
		before := quantity
		for _, rack := range []string{"r1", "r2", "r3"} {
			if quantity > 0 && has[rack] < room[rack] {
				has[rack], quantity = has[rack]+1, quantity-1
			}
		}
		if before == quantity {
			has[""], quantity = quantity, 0
		}
	}
	return has
}

// neverApart reports whether the hosts that lie apart from the neighbor have too little room even without other reservations.
func (c *cloud) neverApart(a reservation.Terms) bool {
	empty := &cloud{t: c.t, hosts: c.hosts, near: c.near, scale: c.scale, whole: make([][mostTicks]bool, len(c.hosts)), used: make([][mostTicks]int64, len(c.hosts))}
	return a.Together.ApartFrom != "" && !slices.ContainsFunc(empty.distributions(a, mostTicks-2, 1), func(d []int) bool { return a.Together.Preferred || c.lies(a.Together, d) })
}

// checkRefusal checks the facts of a refusal.
func (c *cloud) checkRefusal(a reservation.Terms, o window, r *reservation.Refusal) {
	if first := c.first(a, o, o.last); first >= 0 {
		c.t.Fatalf("%v, but it can start at %d", r, first)
	}
	anywhere := a
	anywhere.Together = reservation.Together{}
	byRoom := slices.Contains([]reservation.Constraint{reservation.HostsFree, reservation.HostsTogether, reservation.HostsInPool, reservation.HostsMatching}, r.Constraint)
	if plain := c.first(anywhere, o, o.last) >= 0; byRoom && plain != (r.Constraint == reservation.HostsTogether) && !(r.Constraint == reservation.HostsTogether && c.neverApart(a)) {
		c.t.Fatalf("%v, but without the rule it is possible: %t", r, plain)
	}
	if r.Constraint == reservation.HostsTogether && !strings.Contains(r.Message, "rack") {
		c.t.Fatalf("the sentence names no property: %v", r)
	}
	largest := 0
	for fewer := a; fewer.Quantity > 1; {
		if fewer.Quantity--; fewer.Quantity < fewer.Together.Values {
			break
		}
		if largest == 0 && c.first(fewer, o, o.last) >= 0 {
			largest = fewer.Quantity
		}
	}
	if r.LargestQuantity != largest && (byRoom || r.LargestQuantity > 0) {
		c.t.Fatalf("%v: the largest quantity is %d, not %d", r, largest, r.LargestQuantity)
	}
	later := o
	later.first = max(o.first, 1)
	if c.scale > 1 && o.first == 0 {
		later.first = 0
	}
	earliest := c.first(a, later, 3*mostTicks)
	if r.EarliestStart != 0 && (r.EarliestStart.Add(0)-c.now)%span.Instant(c.scale) == 0 {
		if got := int64(r.EarliestStart-c.now) / c.scale; got != earliest {
			c.t.Fatalf("%v: the earliest start is %d, not %d", r, earliest, got)
		}
	}
	if r.EarliestStart == 0 && byRoom && earliest >= 0 {
		c.t.Fatalf("%v: names no start, but %d is possible", r, earliest)
	}
	if r.EarliestStart != 0 {
		q := c.ask(a, o)
		q.Start, q.End = r.EarliestStart, r.EarliestStart.Add(q.Duration)
		if p, err := planning.NewPlan(c.view(), q); err != nil || p.Span.Start != q.Start {
			c.t.Fatalf("asked back for its earliest start: %v", err)
		}
	}
}
