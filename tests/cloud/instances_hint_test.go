// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// instancesByTheHint puts two instances of a reservation on each of two hosts.
func (b *beside) instancesByTheHint(way string, hosts []string) {
	b.t.Helper()
	r := b.reserve(b.demo, v1.ReservationRequest{
		Name: "web", Kind: "instance", Quantity: new(4), HostProperties: among(hosts...), Duration: new(v1.Duration(3600)), OnEnd: "leave",
		Resources: &v1.Resources{VCPUs: 4, MemoryMB: 2048, DiskGB: 20},
	})
	b.becomes(r.ID, "active")
	hint := map[string]any{"reservation": r.ID}
	refused := func(why string, w wish) {
		b.t.Helper()
		w.hints = hint
		// nova-scheduler may count the instances before Almanac does, and its message has less detail.
		if said := b.tellsWhy(b.demo, r.ID, w); !strings.Contains(said, why) && (way == built.Replace || !strings.Contains(said, "has room for this")) {
			b.t.Errorf("%s: the tenant reads %q, want a message with %q", w.name, said, why)
		}
	}
	refused("has 4 instances, 5 are requested", wish{name: "more than it holds", count: 5})
	refused("has 20 DISK_GB for each instance, the flavor needs 80", wish{name: "larger than a slice", flavor: big})
	b.cloud.Openstack(b.t, labtest.Demo, "server", "create", "--flavor", "m1.tiny", "--image", "tiny", "--nic", "none",
		"--hint", "reservation="+r.ID, "--max", "3", "--wait", "web-by-openstack")
	three := b.settled(b.named("web-by-openstack")...)
	b.runOn(hosts, three...)
	refused("has room for 1 more instances, 2 are requested", wish{name: "two for one slice", count: 2})
	fourth := b.placed(b.demo, hosts, 1, wish{name: "the last", hints: hint})
	refused("has room for 0 more instances, 1 are requested", wish{name: "one more"})
	b.heldBack(hosts)

	b.ordered(order{server: three[0], do: coldly, refused: true}) // the other host is full
	b.remove(fourth...)
	b.slicesMove(r, hosts, fourth[0].Host, three)
	fourth = b.placed(b.demo, hosts, 1, wish{name: "in the place of one that has gone", hints: hint})
	b.outlivesSlices(r, fourth[0], others(b.cloud.Hosts(b.t), hosts)[0])
}

// heldBack checks that no other server gets the rest of hosts with slices.
func (b *beside) heldBack(hosts []string) {
	b.t.Helper()
	rest := others(b.cloud.Hosts(b.t), hosts)
	var beside []server
	for half := range slices.Chunk(rest, len(rest)/2) { // no more than the candidates of nova-scheduler
		beside = append(beside, b.placed(b.demo2, rest, len(half), wish{name: "beside the slices", count: len(half), flavor: big})...)
	}
	b.unplaced(b.demo2, wish{name: "no room but on slices", flavor: big})
	b.unplaced(b.demo, wish{name: "of the owner without the hint", flavor: big})
	b.unplaced(b.admin, wish{name: "forced to slices", fields: map[string]any{"host": hosts[0]}})
	b.remove(beside...)
}

// slicesMove checks that a guest may move to a free slice, and be as large as the slice.
func (b *beside) slicesMove(r v1.Reservation, hosts []string, free string, guests []server) {
	b.t.Helper()
	full := others(hosts, []string{free})
	moved := guests[slices.IndexFunc(guests, func(g server) bool { return g.Host == full[0] })]
	moved = b.ordered(order{server: moved, do: coldly, to: []string{free}})[0]
	moved = b.ordered(order{server: moved, do: resizeTo(small), to: full})[0]
	b.ordered(order{server: moved, do: resizeTo(medium), refused: true})
	if said := (&stage{beside: b}).refusal(moved); !strings.Contains(said, "has 20 DISK_GB for each instance, the flavor needs 40") {
		b.t.Errorf("the refusal of a guest larger than its slice is %q", said)
	}
	want := map[string]int64{"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 20, ownName(r.ID): 1}
	if diff := cmp.Diff(want, b.allocated(moved)); diff != "" {
		b.t.Errorf("allocation in Placement (-want +got):\n%s", diff)
	}
}

// medium is the id of the flavor m1.medium.
const medium = "3"

// outlivesSlices checks that a guest that stays after the end may move to an open host, without
// its slice.
func (b *beside) outlivesSlices(r v1.Reservation, guest server, to string) {
	b.t.Helper()
	b.endsSoon(r.ID)
	b.becomes(r.ID, "ended")
	b.runOn([]string{guest.Host}, b.look(guest.ID))
	guest = b.ordered(order{server: guest, do: live(to), to: []string{to}})[0]
	if diff := cmp.Diff(map[string]int64{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}, b.allocated(guest)); diff != "" {
		b.t.Errorf("allocation in Placement after the end (-want +got):\n%s", diff)
	}
	b.deletesAll()
	b.traceless(r.ID)
	b.quiet()
}

// allocated returns the server's resources in Placement, by resource class.
func (b *beside) allocated(s server) map[string]int64 {
	b.t.Helper()
	var found struct {
		Allocations map[string]struct{ Resources map[string]int64 }
	}
	b.admin.Must(http.MethodGet, "placement", "/allocations/"+s.ID, nil, &found)
	held := map[string]int64{}
	for _, a := range found.Allocations {
		for class, amount := range a.Resources {
			held[class] += amount
		}
	}
	return held
}
