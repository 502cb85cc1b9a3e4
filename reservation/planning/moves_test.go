// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const (
	moveTicks   = 10
	moveSeconds = 900 // of a tick
	moveNow     = span.Instant(36_000)
)

// block is a number of hosts for some ticks from start on, within [from, to), with a notice in ticks; -1 is fixed.
type block struct {
	hosts, ticks, start, from, to, notice int
	on                                    []int // its hosts
}

// board has, by host and tick, the number of what is there, counted from 1.
type board [3][moveTicks]int

// free reports whether a block may lie on a host from start on.
func (b *board) free(host, start, ticks int) bool {
	for tick := start; tick < start+ticks; tick++ {
		if b[host][tick] != 0 {
			return false
		}
	}
	return true
}

func (b *board) put(host, start, ticks, what int) {
	for tick := start; tick < start+ticks; tick++ {
		b[host][tick] = what
	}
}

// scenery is a small cloud with movable reservations, holds, and a request that has no room.
type scenery struct {
	hosts   int
	holds   []planning.Hold
	fixed   board
	movable []block
	request block
}

// drawScenery draws a cloud in which everything has a place, and a request.
func drawScenery(chance *rand.Rand) *scenery {
	s := &scenery{hosts: 1 + chance.IntN(3)}
	var taken board
	for range chance.IntN(4) {
		host, start, ticks := chance.IntN(s.hosts), chance.IntN(moveTicks-2), 1+chance.IntN(2)
		if taken.free(host, start, ticks) {
			taken.put(host, start, ticks, 1)
			s.fixed.put(host, start, ticks, 1)
			s.holds = append(s.holds, planning.Hold{Host: hostName(host), Span: ticksOf(start, ticks)})
		}
	}
	for range 1 + chance.IntN(3) {
		m := block{hosts: 1 + chance.IntN(s.hosts), ticks: 1 + chance.IntN(5), notice: 1 + chance.IntN(2)}
		m.start = chance.IntN(moveTicks - m.ticks + 1)
		m.from, m.to = chance.IntN(m.start+1), m.start+m.ticks+chance.IntN(moveTicks-m.start-m.ticks+1)
		for host := range s.hosts {
			if len(m.on) < m.hosts && taken.free(host, m.start, m.ticks) {
				m.on = append(m.on, host)
			}
		}
		if len(m.on) == m.hosts && m.to-m.from > m.ticks {
			for _, host := range m.on {
				taken.put(host, m.start, m.ticks, 1)
			}
			s.movable = append(s.movable, m)
		}
	}
	r := block{hosts: 1 + chance.IntN(s.hosts), ticks: 1 + chance.IntN(2)}
	r.from = chance.IntN(moveTicks - r.ticks + 1)
	r.to = r.from + r.ticks + chance.IntN(moveTicks-r.from-r.ticks+1)
	s.request = r
	return s
}

func hostName(host int) string { return fmt.Sprintf("h%d", host) }

func ticksOf(start, ticks int) span.Span {
	return span.New(moveNow.Add(int64(start)*moveSeconds), int64(ticks)*moveSeconds)
}

// reservations returns the movable reservations, each as it is stored.
func (s *scenery) reservations() (list []*reservation.Reservation) {
	for i, m := range s.movable {
		r := &reservation.Reservation{
			ID: fmt.Sprintf("m%d", i), ProjectID: fmt.Sprintf("p%d", i), Status: reservation.Pending, Span: ticksOf(m.start, m.ticks), Window: ticksOf(m.from, m.to-m.from), Version: 1,
			Terms: reservation.Terms{
				Kind: reservation.Hosts, Quantity: m.hosts, Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete, Notice: int64(m.notice) * moveSeconds,
			},
		}
		for _, host := range m.on {
			r.Claims = append(r.Claims, reservation.Claim{Host: hostName(host), Span: r.Span})
		}
		list = append(list, r)
	}
	return list
}

// view returns the view of a decision about the request.
func (s *scenery) view(t *testing.T) planning.View {
	t.Helper()
	hosts := make([]inventory.Host, s.hosts)
	for i := range hosts {
		hosts[i] = inventory.Host{Name: hostName(i), Reservable: true}
		hosts[i].Capacity.VCPUs = 4
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := planning.NewView(moveNow, snapshot, s.holds)
	if err != nil {
		t.Fatal(err)
	}
	list := s.reservations()
	for _, r := range list {
		if err := v.Calendar.Add(v.Hosts.Claims(r, r.Claims)...); err != nil {
			t.Fatal(err)
		}
	}
	v.Movable = func(span.Span) []*reservation.Reservation { return list }
	return v
}

func (s *scenery) asked() reservation.Request {
	w := ticksOf(s.request.from, s.request.to-s.request.from)
	return reservation.Request{Terms: reservation.Terms{Quantity: s.request.hosts}, Start: w.Start, End: w.End, Duration: int64(s.request.ticks) * moveSeconds}
}

// mayMove reports whether the i-th movable reservation may move for the request.
func (s *scenery) mayMove(m block) bool {
	return m.start > m.notice && m.hosts*m.ticks >= 4*s.request.hosts*s.request.ticks && m.start < s.request.to && m.start+m.ticks > s.request.from
}

// possible searches all times and hosts of the request and of what may move for it.
func (s *scenery) possible() bool {
	b := s.fixed
	items := []block{s.request}
	for _, m := range s.movable {
		if m.from = max(m.from, m.notice); s.mayMove(m) {
			items = append(items, m)
			continue
		}
		for _, host := range m.on {
			b.put(host, m.start, m.ticks, 1)
		}
	}
	return s.placed(&b, items)
}

// placed reports whether all items find a place.
func (s *scenery) placed(b *board, items []block) bool {
	if len(items) == 0 {
		return true
	}
	first := items[0]
	for start := first.from; start+first.ticks <= first.to; start++ {
		if s.onHosts(b, first, start, 0, first.hosts, items[1:]) {
			return true
		}
	}
	return false
}

// onHosts tries each set of so many hosts, from a host on.
func (s *scenery) onHosts(b *board, item block, start, from, more int, rest []block) bool {
	if more == 0 {
		return s.placed(b, rest)
	}
	for host := from; host <= s.hosts-more; host++ {
		if !b.free(host, start, item.ticks) {
			continue
		}
		b.put(host, start, item.ticks, 1)
		if s.onHosts(b, item, start, host+1, more-1, rest) {
			return true
		}
		b.put(host, start, item.ticks, 0)
	}
	return false
}

// checkMoves checks a plan with moves against what was promised.
func (s *scenery) checkMoves(t *testing.T, plan planning.Plan, moved []reservation.Reservation) {
	t.Helper()
	b, after := s.fixed, s.reservations()
	for _, r := range moved {
		i := slices.IndexFunc(after, func(m *reservation.Reservation) bool { return m.ID == r.ID })
		was, m := after[i], s.movable[i]
		switch {
		case !s.mayMove(m):
			t.Fatalf("%s moves and may not: %+v", r.ID, m)
		case r.Span.Seconds() != was.Span.Seconds() || r.Quantity != was.Quantity || r.Window != was.Window || r.Notice != was.Notice || r.Version != was.Version+1:
			t.Fatalf("%s becomes another promise: %+v", r.ID, r)
		case !was.Window.Covers(r.Span) || r.Span.Start < moveNow.Add(was.Notice):
			t.Fatalf("%s moves to %v; its window is %v and its notice %d s", r.ID, r.Span, was.Window, was.Notice)
		}
		after[i] = &r
	}
	fresh := reservation.Reservation{ID: "request", Span: plan.Span, Claims: plan.Claims, Terms: plan.Terms}
	if w := ticksOf(s.request.from, s.request.to-s.request.from); !w.Covers(plan.Span) || plan.Span.Seconds() != int64(s.request.ticks)*moveSeconds || plan.Terms.Quantity != s.request.hosts {
		t.Fatalf("the request gets %v of %v", plan.Span, w)
	}
	for i, r := range append(after, &fresh) {
		if len(r.HostNames()) != r.Quantity {
			t.Fatalf("%s has %v instead of %d hosts", r.ID, r.HostNames(), r.Quantity)
		}
		for _, c := range r.Claims {
			start, host := int(c.Span.Start-moveNow)/moveSeconds, int(c.Host[1]-'0')
			if ticks := int(c.Span.Seconds()) / moveSeconds; c.Span != r.Span || !b.free(host, start, ticks) {
				t.Fatalf("%s takes %s for %v, which is taken", r.ID, c.Host, c.Span)
			} else {
				b.put(host, start, ticks, i+1)
			}
		}
	}
}

// Each plan with moves is possible, breaks nothing, and is found in nearly all scenes in which an exhaustive search finds one.
func TestMovesMakeRoomWhereAnExhaustiveSearchDoes(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 42))
	refused, possible, found := 0, 0, 0
	for range 60_000 {
		s := drawScenery(chance)
		v := s.view(t)
		if _, err := planning.NewPlan(v, s.asked()); err == nil {
			continue
		}
		refused++
		plan, moved, ok := planning.PlanWithMoves(v, s.asked())
		switch can := s.possible(); {
		case ok && !can:
			t.Fatalf("%+v: a plan for what is impossible: %+v, %+v", s, plan, moved)
		case ok:
			s.checkMoves(t, plan, moved)
			possible, found = possible+1, found+1
		case can:
			possible++
		}
	}
	t.Logf("%d requests have no room; moves make room for %d, and are found for %d", refused, possible, found)
	if possible < 500 || found < possible*95/100 {
		t.Errorf("of %d requests for which moves make room, %d were accepted", possible, found)
	}
}
