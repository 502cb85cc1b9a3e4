// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"cmp"
	"maps"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// The oracle reads the stored reservations and does not use the calendar.

// stored returns every stored reservation, canceled ones included.
func (s *scene) stored(t tester) []reservation.Reservation {
	t.Helper()
	list, err := s.memory.List(t.Context(), reservation.Query{Statuses: reservation.Statuses})
	if err != nil {
		t.Fatalf("list reservations: %v", err)
	}
	return list
}

// live returns the stored reservations that hold claims.
func (s *scene) live(t tester) []reservation.Reservation {
	t.Helper()
	return slices.DeleteFunc(s.stored(t), func(r reservation.Reservation) bool { return !r.Status.Live() })
}

// count returns how many hosts or instances r holds on host at t; "" stands for all hosts.
func count(r reservation.Reservation, host string, t span.Instant) int {
	n := 0
	for _, c := range r.Claims {
		if (host == "" || host == c.Host) && c.Span.Contains(t) {
			n += max(c.Slices, 1)
		}
	}
	return n
}

// turns returns the instants of w at which the claims may change.
func turns(w span.Span, rs ...reservation.Reservation) []span.Instant {
	times := []span.Instant{w.Start}
	for _, r := range rs {
		for _, c := range r.Claims {
			for _, t := range []span.Instant{c.Span.Start, c.Span.End} {
				if w.Contains(t) {
					times = append(times, t)
				}
			}
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// use returns what live reservations hold of host at t: how many hold it whole, and the sum
// of the slices.
func use(live []reservation.Reservation, host string, t span.Instant) (whole int, slices resource.Vector) {
	for _, r := range live {
		n := count(r, host, t)
		if r.Kind == reservation.Hosts {
			whole += n
		} else if n > 0 {
			slices = slices.Add(r.Resources.Scale(int64(n)))
		}
	}
	return whole, slices
}

// check checks every promise against every other.
func (s *scene) check(t tester) {
	t.Helper()
	live := s.live(t)
	for i := range s.hosts {
		s.checkHost(t, &s.hosts[i], live)
	}
	for _, r := range live {
		s.checkPromise(t, r)
	}
	s.checkLimits(t, live)
	s.checkDesk(t, live)
}

// checkHost checks that a whole-host claim never overlaps another claim, and that slices never
// exceed the host.
func (s *scene) checkHost(t tester, h *inventory.Host, live []reservation.Reservation) {
	t.Helper()
	for _, at := range turns(span.Span{Start: 0, End: span.Forever}, live...) {
		whole, slices := use(live, h.Name, at)
		switch {
		case whole > 1:
			t.Fatalf("%s is promised as a whole %d times at %v", h.Name, whole, at)
		case whole == 1 && !slices.IsZero():
			t.Fatalf("%s is promised as a whole at %v and has slices of %v", h.Name, at, slices)
		case !slices.Fits(h.Capacity):
			t.Fatalf("%s has slices of %v at %v and a capacity of %v", h.Name, slices, at, h.Capacity)
		}
	}
}

// checkPromise checks that from now on r has exactly its quantity, laid out as requested.
func (s *scene) checkPromise(t tester, r reservation.Reservation) {
	t.Helper()
	if r.Kind == reservation.Addresses {
		if len(r.Addresses) != r.Quantity || len(r.Claims) > 0 {
			t.Fatalf("%s promises %d addresses and has %v, and the hosts %v", r.ID, r.Quantity, r.Addresses, r.Claims)
		}
		return
	}
	if r.Status == reservation.Waiting {
		if len(r.Claims) > 0 || !r.Window.Covers(r.Span) || r.WaitsUntil() == 0 || r.HeldUntil() != 0 {
			t.Fatalf("%s waits until %v with %v, and lies at %v in %v", r.ID, r.WaitsUntil(), r.Claims, r.Span, r.Window)
		}
		return
	}
	if (r.Notice > 0) != !r.Window.Empty() || r.Notice > 0 && !r.Window.Covers(r.Span) {
		t.Fatalf("%s has a notice of %d s and the window %v, and lies at %v", r.ID, r.Notice, r.Window, r.Span)
	}
	rest := span.Span{Start: max(r.Span.Start, s.clock()), End: r.Span.End}
	if !rest.Empty() {
		for _, at := range turns(rest, r) {
			if n := count(r, "", at); n != r.Quantity {
				t.Fatalf("%s has %d of %d at %v: %+v", r.ID, n, r.Quantity, at, r.Claims)
			}
		}
	}
	for _, c := range r.Claims {
		if !r.Span.Covers(c.Span) || c.Span.Empty() || (c.Slices > 0) != (r.Kind == reservation.Instances) {
			t.Fatalf("%s has a claim %+v that is not its own in %v", r.ID, c, r.Span)
		}
		switch n := count(r, c.Host, c.Span.End-1); r.Affinity {
		case calendar.AffinityDifferent:
			if n != 1 {
				t.Fatalf("%s wants different hosts and has %d instances on %s", r.ID, n, c.Host)
			}
		case calendar.AffinitySame:
			if c.Host != r.Claims[0].Host {
				t.Fatalf("%s wants one host and has %s and %s", r.ID, c.Host, r.Claims[0].Host)
			}
		}
	}
}

// checkLimits checks that no project exceeds its limits.
func (s *scene) checkLimits(t tester, live []reservation.Reservation) {
	t.Helper()
	limits, seconds := s.options.Limits, make(map[string]int64)
	live = slices.DeleteFunc(slices.Clone(live), func(r reservation.Reservation) bool { return r.Maintenance })
	for _, at := range turns(span.Span{Start: 0, End: span.Forever}, live...) {
		hosts := make(map[string]int)
		for _, r := range live {
			if hosts[r.ProjectID] += count(r, "", at); limits.Hosts > 0 && hosts[r.ProjectID] > limits.Hosts {
				t.Fatalf("%s holds %d hosts of %d at %v", r.ProjectID, hosts[r.ProjectID], limits.Hosts, at)
			}
		}
	}
	for _, r := range live {
		for _, c := range r.Claims {
			seconds[r.ProjectID] += c.Span.Seconds() * int64(max(c.Slices, 1))
		}
		if limits.Duration > 0 && r.Span.Seconds() > limits.Duration {
			t.Fatalf("%s lasts %d s; the longest is %d s", r.ID, r.Span.Seconds(), limits.Duration)
		}
		if limits.StartAhead > 0 && r.Span.Start > r.Updated.Add(limits.StartAhead) {
			t.Fatalf("%s starts at %v, more than %d s after %v", r.ID, r.Span.Start, limits.StartAhead, r.Updated)
		}
	}
	for project := range seconds {
		if limits.HostSeconds > 0 && seconds[project] > limits.HostSeconds {
			t.Fatalf("%s holds %d host-seconds of %d", project, seconds[project], limits.HostSeconds)
		}
	}
}

// checkDesk checks that the service knows the stored reservations and its calendar their claims.
func (s *scene) checkDesk(t tester, live []reservation.Reservation) {
	t.Helper()
	promised := slices.DeleteFunc(slices.Clone(live), func(r reservation.Reservation) bool { return !r.Status.Promised() })
	if diff := gocmp.Diff(promised, s.bookings.Live(span.Span{Start: 0, End: span.Forever}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("live reservations (-stored +bookings):\n%s", diff)
	}
	s.checkCounted(t, live)
	ahead := span.Span{Start: s.clock(), End: span.Forever}
	for i := range s.hosts {
		name := s.hosts[i].Name
		var got []span.Span
		for next, ok := s.bookings.NextClaim(name, ahead.Start); ok; next, ok = s.bookings.NextClaim(name, next.End) {
			got = append(got, clip(next, ahead))
		}
		if diff := gocmp.Diff(merged(heldSpans(live, name, ahead)), got); diff != "" {
			t.Fatalf("claims of %s (-stored +bookings):\n%s", name, diff)
		}
	}
}

// checkCounted counts the live reservations, and compares the numbers that the service keeps.
func (s *scene) checkCounted(t tester, live []reservation.Reservation) {
	t.Helper()
	want, late := map[reservation.Status]int{}, map[string]bool{}
	degraded := 0
	for _, r := range live {
		if want[r.Status]++; r.Degraded != "" {
			degraded++
		}
		if slices.ContainsFunc(r.Events, func(e reservation.Event) bool { return e.State != reservation.EventDone && e.Time < s.clock() }) {
			late[r.ID] = true
		}
	}
	got, overdue := s.bookings.Counted(), map[string]bool{}
	maps.DeleteFunc(got.ByStatus, func(_ reservation.Status, n int) bool { return n == 0 })
	for r := range s.bookings.Overdue(s.clock()) {
		overdue[r.ID] = true
	}
	if diff := gocmp.Diff(want, got.ByStatus) + gocmp.Diff(late, overdue); diff != "" || degraded != got.Degraded {
		t.Fatalf("%d are degraded, and %d by the service; numbers and overdue (-counted +service):\n%s", degraded, got.Degraded, diff)
	}
}

func clip(s, to span.Span) span.Span {
	return span.Span{Start: max(s.Start, to.Start), End: min(s.End, to.End)}
}

// heldSpans returns the parts of the claims on host that lie in w.
func heldSpans(live []reservation.Reservation, host string, w span.Span) []span.Span {
	var held []span.Span
	for _, r := range live {
		for _, c := range r.Claims {
			if c.Host == host && c.Span.Overlaps(w) {
				held = append(held, clip(c.Span, w))
			}
		}
	}
	slices.SortFunc(held, func(a, b span.Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	return held
}

// merged joins sorted spans that touch or overlap.
func merged(spans []span.Span) []span.Span {
	var joined []span.Span
	for _, next := range spans {
		if last := len(joined) - 1; last >= 0 && next.Start <= joined[last].End {
			joined[last].End = max(joined[last].End, next.End)
		} else {
			joined = append(joined, next)
		}
	}
	return joined
}

// awakeFor returns when h can serve r, considering that it is woken for the claims of r.
func (s *scene) awakeFor(h *inventory.Host, r reservation.Reservation) span.Instant {
	awake := h.AwakeAt(s.clock())
	for _, c := range r.Claims {
		if c.Host == h.Name && awake != span.Forever {
			awake = min(awake, c.Span.Start)
		}
	}
	return awake
}

// checkGain checks that each host on which r holds more than before is in the pool and can be
// awake by then.
func (s *scene) checkGain(t tester, before, r reservation.Reservation) {
	t.Helper()
	for _, name := range r.HostNames() {
		h := s.host(name)
		for _, at := range turns(r.Span, before, r) {
			if count(r, name, at) <= count(before, name, at) {
				continue
			}
			if !h.Reservable {
				t.Fatalf("%s gained %s at %v, which is not in the pool", r.ID, name, at)
			}
			if awake := s.awakeFor(h, before); at < awake {
				t.Fatalf("%s gained %s at %v, which is awake only at %v", r.ID, name, at, awake)
			}
		}
	}
}
