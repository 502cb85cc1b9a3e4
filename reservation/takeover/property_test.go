// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// drawBlazar draws leases of at most two reservations each. Almanac lacks the last of their hosts.
func drawBlazar(t *rapid.T) *blazar {
	b := newBlazar()
	hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "1", "2", "2", "3", "9"}), 0, 3)
	for i := range rapid.IntRange(1, 8).Draw(t, "leases") {
		start := now + span.Instant(rapid.Int64Range(-30, 30).Draw(t, "start"))
		b.lease(fmt.Sprint("l", i), rapid.SampledFrom([]string{"PENDING", "PENDING", "ACTIVE", "ACTIVE", "TERMINATED", "ERROR", "CREATING"}).Draw(t, "status"),
			start, start.Add(rapid.Int64Range(1, 40).Draw(t, "length")))
		for k := range rapid.IntRange(0, 2).Draw(t, "reservations") {
			id := fmt.Sprintf("l%d-%d", i, k)
			if rapid.Bool().Draw(t, "of instances") {
				b.instances(id, hosts.Draw(t, "hosts")...)
			} else {
				b.hostsOf(id, "1-3", hosts.Draw(t, "hosts")...)
			}
		}
	}
	return b
}

// held returns the hosts of each reservation of a lease in Blazar, by name; an instance counts once.
// known is false if Almanac lacks one of them.
func (b *blazar) held(lease string) (hosts map[string][]string, known bool) {
	hosts, known = map[string][]string{}, true
	for _, r := range b.Reservations {
		if r.LeaseID != lease {
			continue
		}
		hosts[r.ID] = nil
		for _, a := range b.Allocations {
			if a.ReservationID == r.ID {
				hosts[r.ID] = append(hosts[r.ID], map[string]string{"1": "a", "2": "b", "3": "c"}[a.HostID])
			}
		}
		slices.Sort(hosts[r.ID])
		known = known && !slices.Contains(hosts[r.ID], "")
	}
	return hosts, known
}

// crowded returns the host that leases need beyond its 8 vCPUs at some instant; "" if there is none.
// A reservation of a host takes all of it, an instance 2.
func (b *blazar) crowded(leases []takeover.Lease) string {
	for _, first := range leases {
		need := map[string]int{}
		for _, l := range leases {
			hosts, _ := b.held(l.ID)
			for _, r := range b.Reservations {
				for _, host := range hosts[r.ID] {
					if l.Start <= first.Start && first.Start < l.End {
						need[host] += map[bool]int{true: 8, false: 2}[r.Hosts != nil]
					}
				}
			}
		}
		for host, n := range need {
			if n > 8 {
				return host
			}
		}
	}
	return ""
}

// The leases are in the order in which they were made. Each is as in Blazar, or named with the reason why
// it is left.
func TestEachLeaseOfBlazarIsTakenOverAsItIsOrNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBlazar(t)
		p := b.plan(t, nil)
		stored := map[string]bool{}
		var before []takeover.Lease
		for _, l := range b.Leases {
			hosts, known := b.held(l.ID)
			at := slices.IndexFunc(p.Leases, func(r reservation.LeaseRecord) bool { return r.ID == l.ID })
			kind, want := takeover.Kind(""), takeover.Kind("")
			if f := slices.IndexFunc(p.Findings, func(f takeover.Finding) bool { return f.Lease == l.ID && f.Kind != takeover.Overdue }); f >= 0 {
				kind = p.Findings[f].Kind
			}
			nothing := slices.ContainsFunc(b.Reservations, func(r takeover.Reservation) bool { return r.LeaseID == l.ID && len(hosts[r.ID]) == 0 })
			switch {
			case l.Status == "TERMINATED", l.Status == "ERROR" && l.End <= now:
				want = takeover.Over
			case l.Status == "ERROR":
				want = takeover.InError
			case l.Status == "CREATING":
				want = takeover.Unfinished
			case nothing || !known:
				want = kind // the first of its reservations decides
				if kind != takeover.Unreadable && kind != takeover.UnknownHost {
					t.Fatalf("lease %+v on %v is %q", l, hosts, kind)
				}
			case b.crowded(append(slices.Clip(before), l)) != "":
				want = takeover.DoubleBooked
			}
			if kind != want || (at >= 0) != (want == "") {
				t.Fatalf("lease %+v on %v, after %+v, is %q and not %q: %+v", l, hosts, before, kind, want, p.Findings)
			}
			if at < 0 {
				continue
			}
			got := p.Leases[at]
			before, stored[l.ID] = append(before, l), true
			if got.Name != l.Name || got.ProjectID != l.ProjectID || got.UserID != l.UserID || got.Span != (span.Span{Start: l.Start, End: l.End}) {
				t.Fatalf("lease %+v is %+v", l, got)
			}
			on := map[string][]string{}
			for _, r := range got.Reservations {
				on[r.ID] = nil
				for _, c := range r.Claims {
					on[r.ID] = append(on[r.ID], slices.Repeat([]string{c.Host}, max(1, c.Slices))...)
				}
				if status := map[string]reservation.Status{"PENDING": reservation.Pending, "ACTIVE": reservation.Active}[l.Status]; r.Status != status || r.Span != got.Span {
					t.Fatalf("a reservation of lease %+v is %+v", l, r)
				}
			}
			if d := cmp.Diff(hosts, on); d != "" {
				t.Fatalf("hosts of lease %s (-Blazar's +Almanac's):\n%s", l.ID, d)
			}
		}
		if again := b.plan(t, func(o *takeover.Options) { o.Stored = stored }); slices.ContainsFunc(again.Leases, func(l reservation.LeaseRecord) bool { return stored[l.ID] }) {
			t.Fatalf("once more: %+v", again.Leases)
		}
	})
}
