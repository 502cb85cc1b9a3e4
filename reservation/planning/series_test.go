// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

const (
	recurTicks   = 90
	recurSeconds = 6 * hour // of a tick
	ticksOfDay   = 4
)

// recurNow is the begin of a day in UTC, the zone of all drawn series.
var recurNow = span.At(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))

// times are the instants of a small cloud: what is used by host and tick, in cores, and what the project holds, in hosts or instances.
type times struct {
	used  [3][recurTicks]int
	held  [recurTicks]int
	spent int64
}

// recurring is a small cloud and a series that is asked for.
type recurring struct {
	t      *rapid.T
	hosts  int
	fixed  times // by what is no part of the series
	holds  []planning.Hold
	own    []span.Span // holds of the project, each of one host
	limits planning.Limits

	size     int // cores of an instance; 0 for whole hosts
	quantity int
	ticks    int
	starts   []int // sorted
	rule     recurrence.Rule
}

func recurSpan(start, ticks int) span.Span {
	return span.New(recurNow.Add(int64(start)*recurSeconds), int64(ticks)*recurSeconds)
}

func tickOf(at span.Instant) int { return int(at-recurNow) / recurSeconds }

func localOf(tick int) string {
	return recurSpan(tick, 1).Start.Time().UTC().Format("2006-01-02T15:04:05")
}

func drawRecurring(t *rapid.T) *recurring {
	number := func(least, most int, what string) int { return rapid.IntRange(least, most).Draw(t, what) }
	c := &recurring{t: t, hosts: number(1, 3, "hosts")}
	for host := range c.hosts {
		for range number(0, 5, "holds") {
			c.hold(host, number(0, 30, "at"), number(1, 4, "for"), number(0, coresOfHost-1, "cores"))
		}
	}
	if rapid.Bool().Draw(t, "of instances") {
		c.size = number(1, coresOfHost, "size")
	}
	c.quantity, c.ticks = number(1, 4, "quantity"), number(1, 6, "ticks")
	if rapid.Bool().Draw(t, "limited") {
		c.limits = planning.Limits{
			Duration: recurSeconds * int64(rapid.SampledFrom([]int{0, 0, 2, 4}).Draw(t, "longest")), StartAhead: recurSeconds * int64(rapid.SampledFrom([]int{0, 0, 9, 17}).Draw(t, "farthest")),
			Hosts: number(0, 5, "most hosts"), HostSeconds: recurSeconds * int64(rapid.SampledFrom([]int{0, 0, 10, 30}).Draw(t, "host time")),
		}
	}
	c.drawRule(number)
	return c
}

// hold holds cores of a host, or all of it if they are 0, if that is possible. Some holds are the project's.
func (c *recurring) hold(host, start, ticks, cores int) {
	use := cores
	if cores == 0 {
		use = coresOfHost
	}
	for tick := start; tick < start+ticks; tick++ {
		if c.fixed.used[host][tick]+use > coresOfHost || cores == 0 && c.fixed.used[host][tick] > 0 {
			return
		}
	}
	h := planning.Hold{Host: hostName(host), Span: recurSpan(start, ticks), Resources: resource.Vector{VCPUs: int64(cores)}}
	c.holds = append(c.holds, h)
	mine := rapid.IntRange(0, 3).Draw(c.t, "own") == 0
	if mine {
		c.own = append(c.own, h.Span)
		c.fixed.spent += h.Span.Seconds()
	}
	for tick := start; tick < start+ticks; tick++ {
		if c.fixed.used[host][tick] += use; mine {
			c.fixed.held[tick]++
		}
	}
}

// drawRule draws when the series is: each day or each other day, and sometimes in addition.
func (c *recurring) drawRule(number func(least, most int, what string) int) {
	first, each, count := number(0, 6, "first"), number(1, 2, "each"), number(1, 5, "count")
	p := recurrence.Pattern{Rule: fmt.Sprintf("FREQ=DAILY;INTERVAL=%d;COUNT=%d", each, count), TimeZone: "UTC", Start: localOf(first)}
	for i := range count {
		c.starts = append(c.starts, first+i*each*ticksOfDay)
	}
	for range number(0, 2, "also") {
		more := first + number(0, 20, "also at")
		c.starts, p.Also = append(c.starts, more), append(p.Also, localOf(more))
	}
	slices.Sort(c.starts)
	c.starts = slices.Compact(c.starts)
	var err error
	if c.rule, err = recurrence.Parse(p); err != nil {
		c.t.Fatal(err)
	}
}

func (c *recurring) request() planning.SeriesRequest {
	req := planning.SeriesRequest{Rule: c.rule}
	req.Terms, req.Duration = reservation.Terms{Name: "weekly", Quantity: c.quantity}, int64(c.ticks)*recurSeconds
	if c.size > 0 {
		req.Kind, req.Resources.VCPUs = reservation.Instances, int64(c.size)
	}
	return req
}

func (c *recurring) view(more ...reservation.Reservation) planning.View {
	hosts := make([]inventory.Host, c.hosts)
	for i := range hosts {
		hosts[i] = inventory.Host{Name: hostName(i), Reservable: true, Power: inventory.PowerOn, Capacity: resource.Vector{VCPUs: coresOfHost, MemoryMB: 1000, DiskGB: 10}}
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	v, err := planning.NewView(recurNow, s, c.holds)
	if err != nil {
		c.t.Fatal(err)
	}
	v.Limits = c.limits
	for _, w := range c.own {
		v.Held.Hosts, v.Held.HostSeconds = v.Held.Hosts.Add(w, 1), v.Held.HostSeconds+w.Seconds()
	}
	for _, r := range more {
		if err := v.Calendar.Add(v.Hosts.Claims(&r, r.Claims)...); err != nil {
			c.t.Fatal(err)
		}
		v.Held = v.Held.With(&r)
	}
	return v
}

// rooms returns how many hosts or instances there is room for on the hosts with these numbers.
func (c *recurring) room(of *times, hosts []int, start, ticks int) (sum int) {
	size := c.size
	if size == 0 {
		size = coresOfHost
	}
	for _, host := range hosts {
		free := coresOfHost
		for tick := start; tick < start+ticks; tick++ {
			free = min(free, coresOfHost-of.used[host][tick])
		}
		sum += free / size
	}
	return sum
}

func (c *recurring) allHosts() (all []int) {
	for host := range c.hosts {
		all = append(all, host)
	}
	return all
}

// reasons returns why an occurrence of so many hosts or instances is refused; nil if it is not.
func (c *recurring) reasons(of *times, start, quantity int) (why []reservation.Constraint) {
	l, seconds := c.limits, int64(c.ticks)*recurSeconds
	if l.Duration > 0 && seconds > l.Duration {
		why = append(why, reservation.MaxDuration)
	}
	if l.StartAhead > 0 && int64(start)*recurSeconds > l.StartAhead {
		why = append(why, reservation.MaxStartAhead)
	}
	if l.HostSeconds > 0 && of.spent+int64(quantity)*seconds > l.HostSeconds {
		why = append(why, reservation.MaxHostHours)
	}
	for tick := start; tick < start+c.ticks; tick++ {
		if l.Hosts > 0 && of.held[tick]+quantity > l.Hosts {
			why = append(why, reservation.MaxHosts)
			break
		}
	}
	if c.room(of, c.allHosts(), start, c.ticks) < quantity {
		why = append(why, reservation.HostsFree, reservation.HostsInPool, reservation.HostsMatching)
	}
	return why
}

// take adds what claims hold, which must be so many hosts or instances for a span, and all must have room.
func (c *recurring) take(of *times, claims []reservation.Claim, w span.Span, quantity int) {
	sum, seen := 0, map[string]bool{}
	for _, claim := range claims {
		host, cores := int(claim.Host[1]-'0'), coresOfHost
		if c.size > 0 {
			cores = claim.Slices * c.size
		}
		if claim.Span != w || c.size > 0 == (claim.Slices == 0) || seen[claim.Host] {
			c.t.Fatalf("the claim %+v is not one of an occurrence for %v", claim, w)
		}
		seen[claim.Host] = true
		sum += max(claim.Slices, 1)
		for tick := tickOf(w.Start); tick < tickOf(w.End); tick++ {
			if of.used[host][tick] += cores; of.used[host][tick] > coresOfHost {
				c.t.Fatalf("%s has %d cores, and %d are promised from %s on", claim.Host, coresOfHost, of.used[host][tick], localOf(tick))
			}
			of.held[tick] += max(claim.Slices, 1)
		}
	}
	if of.spent += int64(sum) * w.Seconds(); sum != quantity {
		c.t.Fatalf("%v are not the %d that were asked for", claims, quantity)
	}
}

// apart reports whether no two occurrences overlap, so that none of them depends on which hosts another one has.
func (c *recurring) apart() bool {
	for i := range c.starts[1:] {
		if c.starts[i]+c.ticks > c.starts[i+1] {
			return false
		}
	}
	return true
}

// An occurrence is refused exactly if there is no room for it beside those before it, or a limit forbids it. What is booked then
// depends on whether the request skips.
//
//make:test-drawn
func TestASeriesHasEachOccurrenceForWhichThereIsRoomOrNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRecurring(t)
		v, req := c.view(), c.request()
		whole, wholeErr := planning.NewSeriesPlan(v, req)
		req.Skip = true
		some, someErr := planning.NewSeriesPlan(v, req)
		refused := c.checkSome(some, someErr)
		if diff := cmp.Diff(refused, c.refusedOf(wholeErr)); diff != "" {
			t.Fatalf("the refused occurrences (-with skip +without):\n%s", diff)
		}
		if wholeErr == nil {
			if diff := cmp.Diff(some, whole); diff != "" {
				t.Fatalf("there is room for all, but the plans differ (-with skip +without):\n%s", diff)
			}
		}
		if len(refused) == len(c.starts) {
			if diff := cmp.Diff(wholeErr, someErr); diff != "" {
				t.Fatalf("there is room for none, but the refusals differ (-without skip +with):\n%s", diff)
			}
		}
	})
}

// checkSome checks a plan with skip, occurrence after occurrence, and returns what it refuses.
func (c *recurring) checkSome(plan planning.SeriesPlan, err error) []reservation.RefusedOccurrence {
	refused := plan.Refused
	if err != nil {
		if refused = c.refusedOf(err); len(refused) != len(c.starts) {
			c.t.Fatalf("%v, but not all occurrences are refused", err)
		}
	}
	now, left := c.fixed, refused
	for _, start := range c.starts {
		why := c.reasons(&now, start, c.quantity)
		if alone := c.reasons(&c.fixed, start, c.quantity); c.apart() && c.limits.HostSeconds == 0 && len(alone) == 0 != (len(why) == 0) {
			c.t.Fatalf("alone the occurrence at %s is refused by %v, among the others by %v", localOf(start), alone, why)
		}
		if len(plan.Occurrences) > 0 && plan.Occurrences[0].Local == localOf(start) {
			o := plan.Occurrences[0]
			if plan.Occurrences = plan.Occurrences[1:]; len(why) > 0 || o.Span != recurSpan(start, c.ticks) {
				c.t.Fatalf("%+v is booked, and refused by %v", o, why)
			}
			c.take(&now, o.Claims, o.Span, c.quantity)
			continue
		}
		if len(left) == 0 || left[0].Local != localOf(start) || left[0].Start != recurSpan(start, 1).Start || left[0].Message == "" {
			c.t.Fatalf("the occurrence at %s is neither booked nor refused, but %+v", localOf(start), left)
		}
		if !slices.Contains(why, left[0].Constraint) {
			c.t.Fatalf("%+v, but it is refused by %v", left[0], why)
		}
		left = left[1:]
	}
	if len(left) > 0 || len(plan.Occurrences) > 0 {
		c.t.Fatalf("besides its occurrences it has %+v, and refuses %+v", plan.Occurrences, left)
	}
	return refused
}

// refusedOf returns the occurrences of a refusal, whose facts are those of the first of them.
func (c *recurring) refusedOf(err error) []reservation.RefusedOccurrence {
	if err == nil {
		return nil
	}
	r, is := errors.AsType[*reservation.Refusal](err)
	if !is || len(r.Occurrences) == 0 {
		c.t.Fatalf("%v is no refusal of occurrences", err)
	}
	first := r.Occurrences[0]
	said := fmt.Sprintf("%d of %s cannot be had, the first at %s: %s", len(r.Occurrences), fault.Counted(len(c.starts), "occurrence"), first.Local, first.Message)
	if r.Constraint != first.Constraint || r.Message != said {
		c.t.Fatalf("the refusal is %v, its first occurrence %+v", r, first)
	}
	return r.Occurrences
}

// The largest quantity of a refusal is booked when it is asked for, and one more is not.
//
//make:test-drawn
func TestTheLargestQuantityOfARefusedSeriesCanBeBooked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRecurring(t)
		c.quantity += rapid.IntRange(0, 6).Draw(t, "more")
		v, req := c.view(), c.request()
		req.Skip = rapid.Bool().Draw(t, "skip")
		_, err := planning.NewSeriesPlan(v, req)
		refusal, refused := errors.AsType[*reservation.Refusal](err)
		if !refused {
			return
		}
		largest := planning.ExplainSeries(v, req, refusal).LargestQuantity
		for _, quantity := range []int{largest, largest + 1} {
			if quantity == 0 || quantity == req.Quantity {
				continue
			}
			back := req
			back.Quantity, back.Skip = quantity, false
			if _, err := planning.NewSeriesPlan(v, back); err == nil != (quantity == largest) {
				t.Fatalf("the largest quantity is %d; asked for %d: %v", largest, quantity, err)
			}
		}
		if c.apart() && largest != c.largest() {
			t.Fatalf("the largest quantity is %d, not %d", c.largest(), largest)
		}
	})
}

// largest returns the largest quantity less than the one that is asked for with which all occurrences have room, if they are apart.
func (c *recurring) largest() int {
	for quantity := c.quantity - 1; quantity > 0; quantity-- {
		all, now := true, c.fixed
		for _, start := range c.starts {
			all = all && c.reasons(&now, start, quantity) == nil
			now.spent += int64(quantity*c.ticks) * recurSeconds
		}
		if all {
			return quantity
		}
	}
	return 0
}

// booked returns the reservations of the series; those for which there is no room are left out. Some of them were canceled, and some
// changed alone.
func (c *recurring) booked() (list []reservation.Reservation) {
	req := c.request()
	req.Skip = true
	plan, err := planning.NewSeriesPlan(c.view(), req)
	if err != nil {
		return nil
	}
	for i, o := range plan.Occurrences {
		if rapid.IntRange(0, 9).Draw(c.t, "canceled") == 0 {
			continue
		}
		list = append(list, reservation.Reservation{
			ID: fmt.Sprintf("r%d", i), ProjectID: "p", Occurrence: reservation.Occurrence{SeriesID: "s", Local: o.Local}, Status: reservation.Pending,
			Terms: o.Terms, Span: o.Span, Claims: o.Claims, Created: recurNow, Updated: recurNow, Version: 1,
		})
	}
	for i := range list {
		if rapid.IntRange(0, 5).Draw(c.t, "changed alone") > 0 {
			continue
		}
		at := recurSpan(rapid.IntRange(0, 40).Draw(c.t, "moved to"), rapid.IntRange(1, 6).Draw(c.t, "for"))
		v := c.view(list...)
		v = v.Without(&list[i])
		if p, err := planning.PlanChange(v, list[i], planning.Change{Start: &at.Start, End: &at.End, Quantity: new(rapid.IntRange(1, 4).Draw(c.t, "of"))}); err == nil {
			list[i] = planning.ChangedAlone(list[i], p, recurNow)
		}
	}
	return list
}

const namedHosts = `["in", "$name", "h0", "h2"]`

func (c *recurring) drawChange() (change planning.SeriesChange) {
	draw := func(what string) bool { return rapid.IntRange(0, 2).Draw(c.t, what) == 0 }
	if draw("quantity changes") {
		change.Quantity = new(rapid.IntRange(1, 4).Draw(c.t, "to"))
	}
	if draw("duration changes") {
		change.Duration = new(int64(rapid.IntRange(1, 6).Draw(c.t, "to")) * recurSeconds)
	}
	if draw("time changes") {
		change.At = new(rapid.SampledFrom([]string{"00:00", "06:00:00", "12:00", "18:00"}).Draw(c.t, "to"))
	}
	if draw("filter changes") {
		change.HostProperties = new(namedHosts)
	}
	if draw("name changes") {
		change.Name = new("other")
	}
	return change
}

// changedTo returns what a reservation is after a change, apart from its claims.
func changedTo(r reservation.Reservation, c planning.SeriesChange) reservation.Reservation {
	set := func(at *string, to *string) {
		if to != nil {
			*at = *to
		}
	}
	set(&r.Name, c.Name)
	set(&r.HostProperties, c.HostProperties)
	if c.Quantity != nil {
		r.Quantity = *c.Quantity
	}
	seconds := r.Span.Seconds()
	if c.At != nil {
		clock, err := time.Parse("2006-01-02T15:04", r.Occurrence.Local[:10]+"T"+(*c.At)[:5])
		if err != nil {
			panic(err)
		}
		r.Span.Start = span.At(clock)
	}
	if c.Duration != nil {
		seconds = *c.Duration
	}
	r.Span.End = r.Span.Start.Add(seconds)
	return r
}

// same compares what an owner sees of reservations, apart from their claims.
func sameApartFromClaims(a, b reservation.Reservation) bool {
	for _, r := range []*reservation.Reservation{&a, &b} {
		r.Claims, r.Events, r.Version, r.Updated, r.PromisedEnd = nil, nil, 0, 0, 0
	}
	return cmp.Equal(a, b)
}

// A change of a series changes all its reservations as it says, and nothing else about them; or none. Nothing is promised twice.
//
//make:test-drawn
func TestAChangeOfASeriesIsOneOfEachOfItsReservationsOrOfNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRecurring(t)
		before := c.booked()
		if len(before) == 0 {
			return
		}
		if rapid.Bool().Draw(t, "without limits from now on") {
			c.limits = planning.Limits{}
		}
		change := c.drawChange()
		after, err := planning.PlanSeriesChange(c.view(before...), slices.Clone(before), c.rule, change)
		want := make([]reservation.Reservation, len(before))
		past, differ, twice := false, false, false
		begins := map[span.Instant]bool{}
		for i, r := range before {
			want[i] = changedTo(r, change)
			twice, begins[want[i].Span.Start] = twice || change.At != nil && begins[want[i].Span.Start], true
			past, differ = past || want[i].Span.Start < recurNow, differ || !sameApartFromClaims(r, want[i])
		}
		refusal, refused := errors.AsType[*reservation.Refusal](err)
		switch {
		case twice:
			if f := fault.Of(err); f == nil || f.Field != "time_of_day" {
				t.Fatalf("two begin at the same instant: %v", err)
			}
		case past:
			if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || !strings.Contains(f.Message, "past") {
				t.Fatalf("one begins in the past: %v", err)
			}
		case !differ && (err != nil || !cmp.Equal(before, after)):
			t.Fatalf("nothing changes, but: %v", cmp.Diff(before, after))
		case refused:
			c.checkRefused(want, refusal)
		case err != nil:
			t.Fatal(err)
		default:
			c.checkChanged(before, want, after)
		}
	})
}

func (c *recurring) checkChanged(before, want, after []reservation.Reservation) {
	if len(after) != len(before) {
		c.t.Fatalf("of %d reservations %d are left", len(before), len(after))
	}
	now, was := c.fixed, c.fixed
	for i, r := range after {
		if !sameApartFromClaims(want[i], r) {
			c.t.Fatalf("%s (-want +after the change):\n%s", r.ID, cmp.Diff(want[i], r))
		}
		if same := sameApartFromClaims(before[i], r); r.Version != before[i].Version+1 && !same || same && !cmp.Equal(before[i], r) {
			c.t.Fatalf("%s becomes version %d:\n%s", r.ID, r.Version, cmp.Diff(before[i], r))
		}
		c.take(&was, before[i].Claims, before[i].Span, before[i].Quantity)
		c.take(&now, r.Claims, r.Span, r.Quantity)
		if host := slices.Index(r.HostNames(), "h1"); r.HostProperties == namedHosts && host >= 0 {
			c.t.Fatalf("%s has h1, which does not match its filter", r.ID)
		}
	}
	for tick := range recurTicks {
		if l := c.limits.Hosts; l > 0 && now.held[tick] > max(l, slices.Max(was.held[:])) {
			c.t.Fatalf("%d hosts are held at once, %d before; the limit is %d", now.held[tick], slices.Max(was.held[:]), l)
		}
	}
	if l := c.limits.HostSeconds; l > 0 && now.spent > max(l, was.spent) {
		c.t.Fatalf("%d host-seconds are held, %d before; the limit is %d", now.spent, was.spent, l)
	}
}

// checkRefused checks that a refused change of reservations that do not overlap after it is one for which there is no room.
func (c *recurring) checkRefused(want []reservation.Reservation, r *reservation.Refusal) {
	if len(r.Occurrences) == 0 {
		c.t.Fatalf("%v names no occurrence", r)
	}
	if c.limits != (planning.Limits{}) {
		return
	}
	for i, a := range want {
		for _, b := range want[i+1:] {
			if a.Span.Overlaps(b.Span) {
				return
			}
		}
	}
	for _, one := range want {
		hosts := c.allHosts()
		if one.HostProperties == namedHosts {
			hosts = slices.DeleteFunc(hosts, func(host int) bool { return host == 1 })
		}
		if c.room(&c.fixed, hosts, tickOf(one.Span.Start), int(one.Span.Seconds()/recurSeconds)) < one.Quantity {
			return
		}
	}
	c.t.Fatalf("%v, but each has room: %+v", r, want)
}

// eachDay returns a view of one host with a reservation for so many ticks at each of the ticks, and the reservations, those of a series
// with an occurrence at 06:00 each day.
func eachDay(t *testing.T, l planning.Limits, ticks int, starts ...int) (planning.View, []reservation.Reservation, recurrence.Rule) {
	t.Helper()
	rule, err := recurrence.Parse(recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=9", TimeZone: "UTC", Start: localOf(1)})
	if err != nil {
		t.Fatal(err)
	}
	var list []reservation.Reservation
	for i, start := range starts {
		w := recurSpan(start, ticks)
		list = append(list, reservation.Reservation{
			ID: fmt.Sprint(i), Status: reservation.Pending, Span: w, Claims: []reservation.Claim{{Host: "h0", Span: w}}, Version: 1,
			Occurrence: reservation.Occurrence{SeriesID: "s", Local: localOf(1 + i*ticksOfDay)},
			Terms:      reservation.Terms{Kind: reservation.Hosts, Quantity: 1, Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		})
	}
	return (&recurring{hosts: 1, limits: l}).view(list...), list, rule
}

func startTicks(list []reservation.Reservation) (starts []int) {
	for _, r := range list {
		starts = append(starts, tickOf(r.Span.Start))
	}
	return starts
}

func TestReservationsOfASeriesFollowEachOtherOnTheSameHost(t *testing.T) {
	for at, want := range map[string][]int{"12:00": {2, 6, 10}, "00:00": {0, 4, 8}} {
		v, list, rule := eachDay(t, planning.Limits{Hosts: 1}, ticksOfDay, 1, 5, 9)
		after, err := planning.PlanSeriesChange(v, list, rule, planning.SeriesChange{At: &at})
		if err != nil || !slices.Equal(startTicks(after), want) {
			t.Errorf("each lasts a day, and moves to %s: %v, %v", at, startTicks(after), err)
		}
	}
}

func TestReservationsOfASeriesExchangeTheirTimes(t *testing.T) {
	v, list, rule := eachDay(t, planning.Limits{}, 1, 5, 1, 9) // the first two were moved to each other's day
	after, err := planning.PlanSeriesChange(v, list, rule, planning.SeriesChange{At: new("06:00")})
	if err != nil || !slices.Equal(startTicks(after), []int{1, 5, 9}) || after[2].Version != 1 {
		t.Errorf("%v, %v", startTicks(after), err)
	}
}

func TestAReservationOfASeriesThatIsRefusedStaysInTheWayOfOthers(t *testing.T) {
	v, list, rule := eachDay(t, planning.Limits{}, 1, 4, 5)
	if err := v.Calendar.Add(calendar.Claim{Host: 0, Span: recurSpan(0, 1)}); err != nil {
		t.Fatal(err)
	}
	_, err := planning.PlanSeriesChange(v, list, rule, planning.SeriesChange{At: new("00:00")})
	r, refused := errors.AsType[*reservation.Refusal](err)
	if !refused || len(r.Occurrences) != 2 || r.Occurrences[0].Local != localOf(1) || r.Occurrences[1].Local != localOf(5) {
		t.Errorf("the first cannot leave the time that the second is to have: %v", err)
	}
}

func TestAChangeOfASeriesNamesItsFields(t *testing.T) {
	for field, c := range map[string]planning.SeriesChange{
		"time_of_day": {At: new("25:00")}, "time_of_day ": {At: new("")}, "time_of_day  ": {At: new("9:00Z")}, "time_of_day   ": {At: new("00:00")},
		"duration": {Duration: new(int64(0))}, "duration ": {Duration: new(int64(1) << 60)}, "duration  ": {Duration: new(int64(-hour))},
		"quantity": {Change: planning.Change{Quantity: new(0)}}, "before_end": {Change: planning.Change{BeforeEnd: new(int64(-1))}},
		"host_properties": {Change: planning.Change{HostProperties: new(`["="`)}},
	} {
		v, list, rule := eachDay(t, planning.Limits{}, 1, 1, 5)
		v.Now = recurNow.Add(hour)
		_, err := planning.PlanSeriesChange(v, list, rule, c)
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != strings.TrimSpace(field) {
			t.Errorf("%q: %v", field, err)
		}
	}
}

func TestASeriesHasBounds(t *testing.T) {
	s, err := inventory.NewSnapshot([]inventory.Host{{Name: "a", Reservable: true, Power: inventory.PowerOn}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := planning.NewView(recurNow, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=400", TimeZone: "UTC", Start: "2027-01-01T00:00:00"}
	type request = planning.SeriesRequest
	for name, c := range map[string]struct {
		pattern        func(p *recurrence.Pattern)
		request        func(r *request)
		field, message string
	}{
		"as many as there may be": {},
		"one more": {
			pattern: func(p *recurrence.Pattern) { p.Rule = "FREQ=DAILY;COUNT=401" }, field: "rule",
			message: "has more than the 400 occurrences that a series may have, those of also among them; end it earlier with UNTIL or COUNT",
		},
		"no end": {
			pattern: func(p *recurrence.Pattern) { p.Rule = "FREQ=DAILY" }, field: "rule",
			message: "has more than the 400 occurrences that a series may have, those of also among them; end it earlier with UNTIL or COUNT",
		},
		"one a year, without an end": {
			pattern: func(p *recurrence.Pattern) { p.Rule = "FREQ=YEARLY" }, field: "rule",
			message: "has occurrences until 2200-01-01T00:00:00Z, and those of a series begin before 2037-01-08T00:00:00Z; end it with UNTIL or COUNT",
		},
		"one a year, as long as possible": {pattern: func(p *recurrence.Pattern) { p.Rule = "FREQ=YEARLY;COUNT=11" }},
		"one a year, a year longer": {
			pattern: func(p *recurrence.Pattern) { p.Rule = "FREQ=YEARLY;COUNT=12" }, field: "rule",
			message: "has occurrences until 2038-01-01T00:00:00Z, and those of a series begin before 2037-01-08T00:00:00Z; end it with UNTIL or COUNT",
		},
		"begins too late": {
			pattern: func(p *recurrence.Pattern) { p.Rule, p.Start = "FREQ=DAILY;COUNT=1", "2037-01-09T00:00:00" }, field: "rule",
			message: "has occurrences until 2037-01-09T00:00:00Z, and those of a series begin before 2037-01-08T00:00:00Z; end it with UNTIL or COUNT",
		},
		"all are left out": {
			pattern: func(p *recurrence.Pattern) { p.Rule, p.Except = "FREQ=DAILY;COUNT=1", []string{"2027-01-01"} }, field: "rule",
			message: "has no occurrence; all of them are left out",
		},
		"has begun": {
			pattern: func(p *recurrence.Pattern) { p.Start = "2026-12-31T23:59:59" }, field: "local_start",
			message: "the first occurrence begins at 2026-12-31T23:59:59Z, which lies in the past; it is now 2027-01-01T00:00:00Z",
		},
		"no time":       {request: func(r *request) { r.Duration = 0 }, field: "duration", message: "must be from one second to 100 years"},
		"negative time": {request: func(r *request) { r.Duration = -1 }, field: "duration", message: "must be from one second to 100 years"},
		"ages":          {request: func(r *request) { r.Duration = 1 << 60 }, field: "duration", message: "must be from one second to 100 years"},
		"too many hosts": {
			request: func(r *request) { r.Quantity = 51 }, field: "quantity", message: "is 51 for each of 400 occurrences; all together may have 20000",
		},
		"no hosts": {request: func(r *request) { r.Quantity = -1 }, field: "quantity"},
	} {
		p, req := good, request{Request: reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: hour}}
		if c.pattern != nil {
			c.pattern(&p)
		}
		if c.request != nil {
			c.request(&req)
		}
		if req.Rule, err = recurrence.Parse(p); err != nil {
			t.Fatal(err)
		}
		_, err := planning.NewSeriesPlan(v, req)
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != c.field || c.message != "" && f.Message != c.message {
			t.Errorf("%s is refused with %v, want %s %s", name, err, c.field, c.message)
		}
	}
}

func TestAsManyHostsAsASeriesMayHaveAreNoFault(t *testing.T) {
	v := (&recurring{hosts: 1}).view()
	rule, err := recurrence.Parse(recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=400", TimeZone: "UTC", Start: "2027-01-01T00:00:00"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = planning.NewSeriesPlan(v, planning.SeriesRequest{Rule: rule, Request: reservation.Request{Terms: reservation.Terms{Quantity: 50}, Duration: hour}})
	r, refused := errors.AsType[*reservation.Refusal](err)
	if !refused || len(r.Occurrences) != reservation.MaxRefused || !strings.HasPrefix(r.Message, "400 of 400 occurrences cannot be had, the first at 2027-01-01T00:00:00: ") {
		t.Errorf("400 times 50 hosts of one: %v", err)
	}
}

// Fewer hosts than a rule spreads them over are no valid request.
func TestTheLargestQuantityOfASeriesThatIsSpreadIsAtLeastAsManyAsItsValues(t *testing.T) {
	var hosts []inventory.Host
	for i := range 7 {
		hosts = append(hosts, inventory.Host{
			Name: hostName(i), Reservable: true, Power: inventory.PowerOn, Properties: map[string]inventory.Value{"rack": inventory.StringValue(fmt.Sprint(i))},
		})
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := planning.NewView(recurNow, s, []planning.Hold{{Host: hostName(0), Span: recurSpan(4, 4)}})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := recurrence.Parse(recurrence.Pattern{Rule: "FREQ=DAILY;COUNT=3", TimeZone: "UTC", Start: localOf(0)})
	if err != nil {
		t.Fatal(err)
	}
	req := planning.SeriesRequest{Rule: rule, Request: reservation.Request{Terms: reservation.Terms{Quantity: 7}, Duration: hour}}
	for values, largest := range map[int]int{2: 6, 5: 6, 6: 6, 7: 0} {
		req.Together = reservation.Together{By: "rack", Rule: reservation.TogetherSpread, Values: values}
		_, err := planning.NewSeriesPlan(v, req)
		refusal, refused := errors.AsType[*reservation.Refusal](err)
		if !refused || len(refusal.Occurrences) != 1 || refusal.Occurrences[0].Local != localOf(4) {
			t.Fatalf("over %d racks: %v", values, err)
		}
		if got := planning.ExplainSeries(v, req, refusal).LargestQuantity; got != largest {
			t.Errorf("over %d racks the largest quantity is %d, want %d", values, got, largest)
		}
	}
}
