// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// mixedCalendar is a calendar of whole-host claims and slices, and the list of its claims.
type mixedCalendar struct {
	calendar *calendar.Calendar
	claims   []calendar.Claim
}

var mixedHosts = []resource.Vector{
	{VCPUs: 8, MemoryMB: 100, Custom: map[string]int64{"CUSTOM_FPGA": 2}},
	{VCPUs: 5, MemoryMB: 100},
	{VCPUs: 3, MemoryMB: 20, Custom: map[string]int64{"CUSTOM_FPGA": 1, "CUSTOM_NIC": 9}},
}

const mixedHorizon = 40

func (m *mixedCalendar) change(t *rapid.T) {
	if len(m.claims) > 0 && rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
		i := rapid.IntRange(0, len(m.claims)-1).Draw(t, "which")
		if err := m.calendar.Remove(m.claims[i]); err != nil {
			t.Fatal(err)
		}
		m.claims = append(m.claims[:i:i], m.claims[i+1:]...)
		return
	}
	start := span.Instant(rapid.IntRange(0, mixedHorizon).Draw(t, "start"))
	claim := calendar.Claim{
		Host:  rapid.IntRange(0, len(mixedHosts)-1).Draw(t, "host"),
		Span:  span.New(start, rapid.Int64Range(1, 8).Draw(t, "length")),
		Slice: drawShape(t, 0),
	}
	fits := m.room(claim.Host, claim.Span, claim.Slice) > 0
	if err := m.calendar.Add(claim); (err == nil) != fits {
		t.Fatalf("add %+v beside %+v: %v, but it fits: %v", claim, m.claims, err, fits)
	}
	if fits {
		m.claims = append(m.claims[:len(m.claims):len(m.claims)], claim)
	}
}

// drawShape draws the shape of a slice with at least fewest vCPUs; 0 vCPUs stand for a whole host.
func drawShape(t *rapid.T, fewest int64) resource.Vector {
	v := resource.Vector{VCPUs: rapid.Int64Range(fewest, 4).Draw(t, "vcpus")}
	if v.VCPUs == 0 {
		return v // the whole host
	}
	v.MemoryMB = rapid.SampledFrom([]int64{0, 5, 30}).Draw(t, "memory")
	for _, class := range []string{"CUSTOM_FPGA", "CUSTOM_NIC"} {
		if amount := rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, class); amount > 0 {
			v.Custom = map[string]int64{class: amount}
		}
	}
	return v
}

// room counts for each second how many slices of that shape host has room for. For a whole
// host it returns 1 if there is no claim.
func (m *mixedCalendar) room(host int, w span.Span, shape resource.Vector) int {
	room := 1000
	for at := w.Start; at < w.End; at++ {
		left := mixedHosts[host]
		for _, c := range m.claims {
			switch {
			case c.Host != host || !c.Span.Contains(at):
			case c.Whole() || shape.IsZero():
				return 0
			default:
				left = left.Sub(c.Slice)
			}
		}
		if shape.IsZero() {
			room = min(room, 1)
			continue
		}
		room = min(room, int(left.Times(shape)))
	}
	return room
}

// check compares the calendar with the counts by hand.
func (m *mixedCalendar) check(t *rapid.T) {
	q := calendar.SliceQuery{
		Query:    calendar.Query{Ready: 5, Duration: rapid.Int64Range(1, 7).Draw(t, "duration"), Deadline: mixedHorizon, Quantity: rapid.IntRange(1, 8).Draw(t, "quantity")},
		Shape:    drawShape(t, 1),
		Affinity: rapid.SampledFrom([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}).Draw(t, "affinity"),
	}
	if rapid.Bool().Draw(t, "some hosts sleep") {
		q.AvailableFrom = []span.Instant{0, span.Instant(rapid.IntRange(0, mixedHorizon).Draw(t, "usable from")), span.Forever}
	}
	first, found, most := span.Instant(0), false, 0
	for start := q.Ready; start <= q.Deadline-span.Instant(q.Duration); start++ {
		sum, largest := 0, 0
		var free []int
		for host := range mixedHosts {
			if q.AvailableFrom != nil && q.AvailableFrom[host] > start {
				continue
			}
			room := m.room(host, q.Window(start), q.Shape)
			if q.Affinity == calendar.AffinityDifferent {
				room = min(room, 1)
			}
			sum, largest = sum+room, max(largest, room)
			if m.room(host, q.Window(start), resource.Vector{}) == 1 {
				free = append(free, host)
			}
		}
		if q.Affinity == calendar.AffinitySame {
			sum = largest
		}
		if most = max(most, sum); sum >= q.Quantity && !found {
			first, found = start, true
		}
		want := hostset.New(len(mixedHosts))
		for _, host := range free {
			want.Add(host)
		}
		if got := m.calendar.FreeAt(q.Query, start); !got.Equal(want) {
			t.Fatalf("free at %d: %v, want %v", start, got, want)
		}
	}
	if got, ok := m.calendar.EarliestSlices(q); ok != found || got != first {
		t.Fatalf("%+v beside %+v: start %d (found: %v), want %d (%v)", q, m.claims, got, ok, first, found)
	}
	if got := m.calendar.MostSlices(q, 1000); got != most {
		t.Fatalf("%+v beside %+v: most %d, want %d", q, m.claims, got, most)
	}
}

// A change of a calendar, of its snapshot or of a fork of the snapshot does not affect the others.
func TestASnapshotStaysAsItWasAndForksGoTheirOwnWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &mixedCalendar{calendar: calendar.New(mixedHosts, 0)}
		all := []*mixedCalendar{m}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			of := rapid.SampledFrom(all).Draw(t, "of")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				all = append(all, &mixedCalendar{calendar: of.calendar.Snapshot().Fork(), claims: of.claims})
			case 1:
				of.calendar.Prune(0)
			default:
				of.change(t)
			}
		}
		for _, each := range all {
			each.check(t)
			if diff := cmp.Diff(each.slots(), each.calendar.Slots()); diff != "" {
				t.Fatalf("slots (-want +got):\n%s", diff)
			}
		}
	})
}

// slots returns the slots of a calendar with the same claims that shares no data with others.
func (m *mixedCalendar) slots() []calendar.Slot {
	alone := calendar.New(mixedHosts, 0)
	if err := alone.Add(m.claims...); err != nil {
		panic(err)
	}
	return alone.Slots()
}

func TestAHostIsUnchangedUntilSomethingIsClaimedReleasedOrResized(t *testing.T) {
	claim := calendar.Claim{Host: 1, Span: span.Span{Start: 10, End: 20}}
	for name, change := range map[string]func(c *calendar.Calendar) error{
		"claimed": func(c *calendar.Calendar) error {
			return c.Add(calendar.Claim{Host: 1, Span: span.Span{Start: 30, End: 40}})
		},
		"released": func(c *calendar.Calendar) error { return c.Remove(claim) },
		"resized":  func(c *calendar.Calendar) error { c.SetCapacity(1, cpus(99)); return nil },
	} {
		c := calendar.New(mixedHosts, 0)
		if err := c.Add(claim); err != nil {
			t.Fatal(err)
		}
		before := c.Snapshot()
		c.SetCapacity(1, mixedHosts[1]) // as before
		if !c.Unchanged(before, 1) {
			t.Errorf("%s: changed before anything happened", name)
		}
		if err := change(c); err != nil {
			t.Fatal(err)
		}
		if c.Unchanged(before, 1) || !c.Unchanged(before, 0) {
			t.Errorf("%s: host 1 unchanged: %v, host 0 unchanged: %v", name, c.Unchanged(before, 1), c.Unchanged(before, 0))
		}
	}
}

func TestReadersOfASnapshotAndAWriterDoNotMeet(t *testing.T) {
	c := calendar.New(mixedHosts, 0)
	done := make(chan struct{})
	for range 3 {
		s := c.Snapshot()
		go func() {
			for range 200 {
				s.EarliestSlices(calendar.SliceQuery{Query: calendar.Query{Duration: 5, Deadline: 1000, Quantity: 2}, Shape: cpus(3)})
				s.FreeAt(calendar.Query{Duration: 5}, 100)
				_ = s.Fork().Add(calendar.Claim{Host: 2, Span: span.Span{Start: 0, End: 9999}})
			}
			done <- struct{}{}
		}()
	}
	for i := range span.Instant(200) {
		if err := c.Add(calendar.Claim{Host: int(i % 3), Span: span.New(i*7200, 7200), Slice: cpus(1)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		<-done
	}
}
