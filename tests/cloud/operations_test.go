// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// The same script of operations runs under nova-scheduler and under Almanac in its place. Each
// scene must be the same: the status and host of a server, and the allocations of the server
// and its migrations. Only one possible host is left for each choice.
//
//make:test-cloud
func TestOperationsEndAsUnderNovaScheduler(t *testing.T) {
	labtest.Long(t)
	for _, way := range []string{stock, built.Replace} {
		t.Run(way, func(t *testing.T) {
			b := placing(t, way)
			hosts := b.cloud.Hosts(t)
			last := len(hosts) - 1
			b.pool(hosts[0], hosts[1], hosts[5], hosts[last])
			t.Run("all", func(t *testing.T) {
				t.Run("to another size or host", func(t *testing.T) {
					t.Parallel()
					s := b.stage(t, way, "sizes", hosts[0], hosts[1])
					s.resizes()
					s.movesSlices()
				})
				t.Run("alive, rebuilt, shelved and evacuated", func(t *testing.T) {
					t.Parallel()
					s := b.stage(t, way, "lives", hosts[2], hosts[3])
					s.livesOn()
					s.isShelved(b.stage(t, way, "spare", hosts[4]))
					s.isEvacuated()
				})
				t.Run("in and beside a reservation", func(t *testing.T) {
					t.Parallel()
					b.stage(t, way, "held", hosts[last], hosts[5], hosts[6]).staysInside()
				})
			})
			b.unleaked()
		})
	}
}

// small is the id of the flavor m1.small.
const small = "2"

var (
	confirm = map[string]any{"confirmResize": nil}
	revert  = map[string]any{"revertResize": nil}
	coldly  = map[string]any{"migrate": nil}
	shelve  = map[string]any{"shelve": nil}
	restore = map[string]any{"unshelve": nil}
	rescue  = map[string]any{"evacuate": map[string]any{}}
)

func resizeTo(flavor string) map[string]any {
	return map[string]any{"resize": map[string]any{"flavorRef": flavor}}
}

func migrateTo(host string) map[string]any {
	return map[string]any{"migrate": map[string]any{"host": host}}
}

// live returns a live migration to a host; nil stands for any host.
func live(host any) map[string]any {
	return map[string]any{"os-migrateLive": map[string]any{"host": host, "block_migration": "auto"}}
}

func rescueTo(host string) map[string]any {
	return map[string]any{"evacuate": map[string]any{"host": host}}
}

func rebuildFrom(image string) map[string]any {
	return map[string]any{"rebuild": map[string]any{"imageRef": image}}
}

// resizes checks that a move holds both hosts until it is confirmed or reverted, the source for
// its migration. The host that it leaves is free at once.
func (s *stage) resizes() {
	a, b := s.hosts[0], s.hosts[1]
	one := s.makes(s.admin, tiny, map[string]any{"availability_zone": s.zone + ":" + a}, nil)
	s.plays(one,
		operation{what: "resize", do: resizeTo(small), ends: "VERIFY_RESIZE small on b; server small of b; migration tiny of a"},
		operation{what: "confirm the resize", do: confirm, ends: "ACTIVE small on b; server small of b"},
		operation{what: "resize again", do: resizeTo(tiny), ends: "VERIFY_RESIZE tiny on a; server tiny of a; migration small of b"},
		operation{what: "revert the resize", do: revert, ends: "ACTIVE small on b; server small of b"},
		operation{what: "migrate", do: coldly, ends: "VERIFY_RESIZE small on a; server small of a; migration small of b"},
		operation{what: "revert the migration", do: revert, ends: "ACTIVE small on b; server small of b"},
		operation{what: "migrate to a host", do: migrateTo(a), ends: "VERIFY_RESIZE small on a; server small of a; migration small of b"},
	)
	s.leaves(s.finds(s.makes(s.admin, s.whole(), nil, nil), "ERROR whole"))
	s.plays(one, operation{what: "confirm the migration", do: confirm, ends: "ACTIVE small on a; server small of a"})
	full := s.finds(s.makes(s.admin, s.whole(), nil, nil), "ACTIVE whole on b; server whole of b")
	s.plays(one,
		operation{what: "migrate where all is full", do: coldly, ends: "ACTIVE small on a; server small of a", why: "CapacityFilter"},
		operation{what: "migrate to a full host", do: migrateTo(b), ends: "ACTIVE small on a; server small of a", why: "DISK_GB are free"},
		operation{what: "resize where all is full", do: resizeTo(big), ends: "ACTIVE small on a; server small of a", why: "CapacityFilter"},
	)
	s.leaves(one, full)
}

// movesSlices checks that an instance of a reservation with one slice on each of two hosts takes
// its slice along, and does not move if the other slice is taken.
func (s *stage) movesSlices() {
	r := s.reserve(s.demo, v1.ReservationRequest{
		Name: "slices", Kind: "instance", Quantity: new(2), HostProperties: among(s.hosts...), Duration: new(v1.Duration(3600)),
		Resources: &v1.Resources{VCPUs: 6, MemoryMB: 512, DiskGB: 1},
	})
	s.becomes(r.ID, "active")
	s.learnSizes()
	one := s.comesHome(s.makes(s.demo, r.ID, nil, nil))
	s.plays(one,
		operation{
			what: "migrate a slice", do: coldly,
			ends: "VERIFY_RESIZE reserved on b; server 1 slice of b; server reserved of b; migration 1 slice of a; migration reserved of a",
		},
		operation{what: "confirm", do: confirm, ends: "ACTIVE reserved on b; server 1 slice of b; server reserved of b"},
		operation{what: "migrate a slice alive", do: live(nil), ends: "ACTIVE reserved on a; server 1 slice of a; server reserved of a"},
	)
	two := s.finds(s.makes(s.demo, r.ID, nil, nil), "ACTIVE reserved on b; server 1 slice of b; server reserved of b")
	s.plays(one, operation{
		what: "migrate where no slice is free", do: coldly, ends: "ACTIVE reserved on a; server 1 slice of a; server reserved of a", why: "ReservationFilter",
	})
	s.leaves(one, two)
}

// livesOn migrates a server live and rebuilds it, also from an image that only its host can run.
func (s *stage) livesOn() {
	a, b := s.hosts[0], s.hosts[1]
	one := s.makes(s.admin, tiny, s.pinned(a), nil)
	other, foreign := s.otherImage(nil), s.otherImage(map[string]any{"hw_architecture": "aarch64"})
	s.plays(one,
		operation{what: "migrate alive", do: live(nil), ends: "ACTIVE tiny on b; server tiny of b"},
		operation{what: "migrate alive to a host", do: live(a), ends: "ACTIVE tiny on a; server tiny of a"},
		operation{what: "rebuild", do: rebuildFrom(s.image()), ends: "ACTIVE tiny on a; server tiny of a"},
		operation{what: "rebuild from another image", do: rebuildFrom(other), ends: "ACTIVE tiny on a; server tiny of a"},
	)
	s.runsFrom(one, other)
	full := s.finds(s.makes(s.admin, s.whole(), s.pinned(b), nil), "ACTIVE whole on b; server whole of b")
	s.plays(full, operation{what: "rebuild on a full host", do: rebuildFrom(other), ends: "ACTIVE whole on b; server whole of b"})
	s.plays(one,
		operation{what: "migrate alive where all is full", do: live(nil), ends: "ACTIVE tiny on a; server tiny of a", why: "CapacityFilter"},
		operation{what: "rebuild from an image for other hosts", do: rebuildFrom(foreign), ends: "ERROR tiny on a; server tiny of a"},
	)
	s.leaves(one, full)
}

// runsFrom checks that the server runs from the image.
func (s *stage) runsFrom(of server, image string) {
	s.t.Helper()
	var found struct {
		Server struct{ Image struct{ ID string } }
	}
	s.admin.Must(http.MethodGet, "compute", "/servers/"+of.ID, nil, &found)
	if found.Server.Image.ID != image {
		s.t.Errorf("the server runs from image %s, want %s", found.Server.Image.ID, image)
	}
}

// isShelved checks that a shelved server holds no allocation and returns where there is room, to
// another zone, or to a host.
func (s *stage) isShelved(spare *stage) {
	a := s.hosts[0]
	one := s.makes(s.admin, tiny, s.pinned(a), nil)
	s.plays(one, operation{what: "shelve", do: shelve, ends: "SHELVED_OFFLOADED tiny"})
	full := s.finds(s.makes(s.admin, s.whole(), s.pinned(a), nil), "ACTIVE whole on a; server whole of a")
	s.plays(one,
		operation{what: "unshelve", do: restore, ends: "ACTIVE tiny on b; server tiny of b"},
		operation{what: "shelve", do: shelve, ends: "SHELVED_OFFLOADED tiny"},
	)
	s.leaves(full)
	spare.plays(one,
		operation{what: "unshelve in a zone", do: map[string]any{"unshelve": map[string]any{"availability_zone": spare.zone}}, ends: "ACTIVE tiny on a; server tiny of a"},
		operation{what: "shelve", do: shelve, ends: "SHELVED_OFFLOADED tiny"},
	)
	s.actsAt("2.91", one, map[string]any{"unshelve": map[string]any{"availability_zone": s.zone, "host": a}})
	s.shows(one, "unshelve on a host", "ACTIVE tiny on a; server tiny of a")
	s.leaves(one)
}

// isEvacuated checks that an evacuated server also holds its allocation on the failed host until
// the nova-compute there returns, which does not happen here.
func (s *stage) isEvacuated() {
	a, b := s.hosts[0], s.hosts[1]
	one, two := s.makes(s.admin, tiny, s.pinned(a), nil), s.makes(s.admin, small, s.pinned(a), nil)
	s.forcesDown(a, true)
	s.plays(one, operation{what: "evacuate", do: rescue, ends: "ACTIVE tiny on b; server tiny of a; server tiny of b"})
	s.plays(two, operation{what: "evacuate to a host", do: rescueTo(b), ends: "ACTIVE small on b; server small of a; server small of b"})
	s.leaves(one, two)
	s.forcesDown(a, false)
}

// staysInside reserves the first two hosts. No server of the reservation leaves them, and no
// other server moves there.
func (s *stage) staysInside() {
	r := s.reserve(s.demo, v1.ReservationRequest{
		Name: "held", HostProperties: among(s.hosts[:2]...), Quantity: new(2), Duration: new(v1.Duration(3600)),
	})
	s.becomes(r.ID, "active")
	s.learnSizes()
	s.strangerStaysOutside()
	s.hostComesBack(s.guestMoves("reserved", r.ID, r.ID, nil))
	if s.way == stock { // nova-scheduler ignores the hint
		return
	}
	one := s.guestMoves("tiny", tiny, s.whole(), map[string]any{"reservation": r.ID})
	s.plays(one,
		operation{what: "resize a guest", do: resizeTo(small), ends: "VERIFY_RESIZE small on b; server small of b; migration tiny of a"},
		operation{what: "confirm", do: confirm, ends: "ACTIVE small on b; server small of b"},
	)
	s.leaves(one)
}

// guestMoves checks that an instance of the reservation moves between its two hosts, but not to
// c, which is in no reservation. If an instance of the filling flavor takes the other host, it
// does not move. Scenes know the flavor by name. The instance ends on a.
func (s *stage) guestMoves(name, flavor, filling string, hints map[string]any) server {
	c := s.hosts[2]
	const outside = "not one of reservation"
	on := func(host string) string { return fmt.Sprintf("ACTIVE %s on %s; server %[1]s of %[2]s", name, host) }
	moved := func(from, to string) string {
		return fmt.Sprintf("VERIFY_RESIZE %s on %s; server %[1]s of %[2]s; migration %[1]s of %[3]s", name, to, from)
	}
	one := s.comesHome(s.makes(s.demo, flavor, nil, hints))
	s.plays(one,
		operation{what: "migrate a guest", do: coldly, ends: moved("a", "b")},
		operation{what: "confirm", do: confirm, ends: on("b")},
		operation{what: "migrate a guest alive", do: live(nil), ends: on("a")},
		operation{what: "migrate a guest out of its reservation", do: migrateTo(c), ends: on("a"), why: outside},
		operation{what: "migrate a guest alive out of its reservation", do: live(c), ends: on("a"), why: outside},
		operation{what: "rebuild a guest", do: rebuildFrom(s.otherImage(nil)), ends: on("a")},
		operation{what: "shelve a guest", do: shelve, ends: "SHELVED_OFFLOADED " + name},
	)
	s.plays(one, operation{what: "unshelve a guest", do: restore})
	s.comesHome(one)
	two := s.makes(s.demo, filling, nil, hints)
	s.runOn(s.hosts[1:2], two)
	s.plays(one, operation{what: "migrate a guest where its reservation is full", do: coldly, ends: on("a"), why: "DISK_GB are free"})
	s.leaves(two)
	return one
}

// comesHome moves a server of the reservation to host a if it is on b.
func (s *stage) comesHome(of server) server {
	s.t.Helper()
	placed := s.settled(of.ID)[0]
	s.runOn(s.hosts[:2], placed)
	if placed.Host == s.hosts[0] {
		return of
	}
	s.plays(of, operation{what: "come to host a", do: migrateTo(s.hosts[0])})
	s.reach("VERIFY_RESIZE", of.ID)
	s.plays(of, operation{what: "confirm", do: confirm})
	s.await("the server has all on host a, and nothing on b", func() bool {
		scene := s.scene(of.ID)
		return strings.HasPrefix(scene, "ACTIVE ") && !strings.Contains(scene, " of b")
	})
	return of
}

// hostComesBack checks that an evacuated server keeps its allocation on the failed host, a, until
// the nova-compute there is back. Then it is evacuated to that host.
func (s *stage) hostComesBack(one server) {
	a, b := s.hosts[0], s.hosts[1]
	labtest.KillCompute(s.t, a)
	s.plays(one, operation{what: "evacuate a guest", do: rescue, ends: "ACTIVE reserved on b; server reserved of a; server reserved of b"})
	labtest.ReviveCompute(s.t, a)
	s.shows(one, "the host of an evacuated guest is back", "ACTIVE reserved on b; server reserved of b")
	s.await("Almanac sees the host back", func() bool { // no notification reports it
		host, err := s.admin.almanac.Host(s.t.Context(), a)
		// Without casts, the removed allocation counts until the next full reading.
		return err == nil && host.Problem == "" && (s.way == stock || host.Used.VCPUs == 0)
	})
	s.forcesDown(b, true)
	s.plays(one, operation{what: "evacuate a guest to a host", do: rescueTo(a), ends: "ACTIVE reserved on a; server reserved of a; server reserved of b"})
	s.leaves(one)
	s.forcesDown(b, false)
}

// strangerStaysOutside checks that a stranger stays on c, the only unreserved host of the zone.
func (s *stage) strangerStaysOutside() {
	a, c := s.hosts[0], s.hosts[2]
	const (
		stays   = "ACTIVE tiny on c; server tiny of c"
		outside = "not enough hosts" // its zone has no other unreserved host
		barred  = "The host is reserved until"
	)
	one := s.makes(s.admin, tiny, s.pinned(c), nil)
	s.plays(one,
		operation{what: "migrate a stranger", do: coldly, ends: stays, why: outside},
		operation{what: "migrate a stranger to a promised host", do: migrateTo(a), ends: stays, why: barred},
		operation{what: "resize a stranger", do: resizeTo(small), ends: stays, why: outside},
		operation{what: "migrate a stranger alive", do: live(nil), ends: stays, why: outside},
		operation{what: "migrate a stranger alive to a promised host", do: live(a), ends: stays, why: barred},
		operation{what: "rebuild a stranger", do: rebuildFrom(s.otherImage(nil)), ends: stays},
		operation{what: "shelve a stranger", do: shelve, ends: "SHELVED_OFFLOADED tiny"},
	)
	full := s.finds(s.makes(s.admin, s.whole(), s.pinned(c), nil), "ACTIVE whole on c; server whole of c")
	s.plays(one, operation{what: "unshelve a stranger", do: restore, ends: "SHELVED_OFFLOADED tiny", why: outside})
	s.leaves(full)
	s.plays(one, operation{what: "unshelve a stranger where there is room", do: restore, ends: stays})
	s.forcesDown(c, true)
	s.plays(one, operation{what: "evacuate a stranger", do: rescue, ends: "ERROR tiny on c; server tiny of c", why: outside})
	s.leaves(one)
	s.forcesDown(c, false)
}
