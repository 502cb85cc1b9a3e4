// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"slices"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A reservation may have hosts in several of Nova's cells, and a server never leaves its cell.
//
//make:test-cells
func TestServersStayInTheirCellAndReservationsHaveHostsOfSeveral(t *testing.T) {
	if labtest.OpenStack(t).Cells(t) < 2 {
		t.Skip("make test-cells runs it in a lab of two cells")
	}
	for _, way := range []string{built.Interpose, built.Replace} {
		t.Run(way, func(t *testing.T) {
			b := placing(t, way)
			cells := [][]string{b.cloud.InCell(t, 1)[:3], b.cloud.InCell(t, 2)[:3]}
			reserved := slices.Concat(cells...)
			b.pool("cmp-*")
			r := b.reserve(b.demo, v1.ReservationRequest{
				Name: "render", HostProperties: among(reserved...), Quantity: new(len(reserved)), Duration: new(v1.Duration(3600)),
			})
			b.becomes(r.ID, "active")
			guests := b.placed(b.demo, reserved, 0, wish{name: "guest", count: 2 * len(reserved), hints: map[string]any{"reservation": r.ID}})
			stranger := b.placed(b.demo2, others(b.cloud.Hosts(t), reserved), 1, wish{name: "stranger"})[0]

			var moves []order
			for _, hosts := range cells {
				i := slices.IndexFunc(guests, func(s server) bool { return slices.Contains(hosts, s.Host) })
				if i < 0 {
					t.Fatalf("of %d guests none is on the hosts %v of the reservation", len(guests), hosts)
				}
				moves = append(moves, order{server: guests[i], do: coldly, to: hosts})
			}
			moved := b.ordered(moves...)
			b.ordered(
				order{server: moved[0], do: live(nil), to: cells[0]},
				order{server: moved[1], do: live(nil), to: cells[1]},
			)
			b.runOn(others(b.cloud.Hosts(t), reserved), b.look(stranger.ID))
			b.endsSoon(r.ID)
			b.becomes(r.ID, "ended")
			b.traceless(r.ID)
			b.quiet()
		})
	}
}
