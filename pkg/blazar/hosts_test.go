// SPDX-License-Identifier: Apache-2.0

package blazar_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

func snapshot(t testing.TB, hosts ...inventory.Host) *inventory.Snapshot {
	t.Helper()
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAHostIsFoundByItsNumberThenItsNameThenItsHypervisor(t *testing.T) {
	s := snapshot(t,
		inventory.Host{Name: "2", Number: 1},
		inventory.Host{Name: "b", Number: 2, Hypervisor: inventory.Hypervisor{Name: "c"}},
		inventory.Host{Name: "c", Number: 3, Hypervisor: inventory.Hypervisor{Name: "c.example.org"}},
		inventory.Host{Name: "d", Number: 17},
	)
	for named, want := range map[string]string{
		"1": "2", "2": "b", "3": "c", "17": "d", "b": "b", "c": "c", "c.example.org": "c", "d": "d",
		"": "", "0": "", "4": "", "01": "", "+1": "", "-1": "", "e": "",
	} {
		got := ""
		if i, found := blazar.FindHost(s, named); found {
			got = s.Host(i).Name
		}
		if got != want {
			t.Errorf("%q is %q, want %q", named, got, want)
		}
	}
}

// A thousand hosts with three thousand reservations of two hosts each are the size that a list of
// allocations is made for.
func BenchmarkAllocations(b *testing.B) {
	var hosts []*inventory.Host
	var live []reservation.Reservation
	for i := range 1000 {
		hosts = append(hosts, &inventory.Host{Name: fmt.Sprint("cmp-", i), Number: int64(i + 1)})
	}
	for i := range 3000 {
		w := span.Span{Start: span.Instant(1_000_000 + 3600*i), End: span.Instant(1_003_600 + 3600*i)}
		live = append(live, reservation.Reservation{ID: fmt.Sprint("r", i), Span: w, Claims: []reservation.Claim{
			{Host: hosts[i%1000].Name, Span: w}, {Host: hosts[(i+1)%1000].Name, Span: w},
		}})
	}
	for b.Loop() {
		list := blazar.Allocations(hosts, live, 0, func(*reservation.Reservation) bool { return true })
		if len(list) != 1000 || len(list[5].Reservations) != 6 {
			b.Fatalf("%d hosts, %d allocations on one", len(list), len(list[5].Reservations))
		}
	}
}
