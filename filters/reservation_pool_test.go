// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation"
)

// pooled is promised reservations, with the hosts of the cloud.
type pooled struct {
	promised
	hosts *inventory.Snapshot
}

func (p *pooled) Snapshot() *inventory.Snapshot { return p.hosts }

func TestAClosedPoolIsForReservationsAndPreemptibleInstances(t *testing.T) {
	hosts := func(names ...string) *inventory.Snapshot {
		list := []inventory.Host{{Name: "outside"}}
		for _, name := range names {
			list = append(list, inventory.Host{Name: name, Reservable: true})
		}
		s, err := inventory.NewSnapshot(list, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p := &pooled{promises(reservation.Active), hosts("a", "b", "c")}
	s := states(t, []inventory.HostState{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "outside"}})
	open := func(fence filters.Fence, r placing.Request) string {
		f := filters.Reservation{Promises: p, Fence: fence, Eviction: 10}
		judge, test := f.Judge(r, 150), f.For(s, &r, 150)
		var names []string
		for i := range s.All().All() {
			name := s.Host(i).Name
			admitted := judge(name).Admitted()
			if test != nil {
				left := s.All().Clone()
				if test.Keep(left); left.Has(i) != admitted {
					t.Errorf("fence %s: for host %s, Judge and For differ", fence, name)
				}
			}
			if admitted {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	for name, c := range map[string]struct {
		fence filters.Fence
		r     placing.Request
		want  string
	}{
		"with the hint":          {filters.FencePool, placing.Request{ProjectID: "demo", Hints: hint("r1")}, "a b"},
		"without":                {filters.FencePool, placing.Request{ProjectID: "demo"}, "outside"},
		"preemptible":            {filters.FencePool, placing.Request{ProjectID: "demo", Preemptible: true}, "c outside"},
		"without, the pool open": {filters.FenceAlways, placing.Request{ProjectID: "demo"}, "c outside"},
	} {
		if got := open(c.fence, c.r); got != c.want {
			t.Errorf("%s: the request may use %s, want %s", name, got, c.want)
		}
	}
	why := filters.Reservation{Promises: p, Fence: filters.FencePool}.Judge(placing.Request{}, 150)("c").Reason
	if why != "the host is in the pool, and the request names no reservation" {
		t.Errorf("the refusal is %q", why)
	}
	p.hosts = hosts("a", "b")
	if got := open(filters.FencePool, placing.Request{}); got != "c outside" {
		t.Errorf("when host c has left the pool, a request may use %s", got)
	}
}
