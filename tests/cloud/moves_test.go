// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"net/http"
	"slices"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Nova moves servers that were admitted by their hint, at the request of an admin who does not
// consider reservations.
//
//make:test-cloud test-cells
func TestGuestsByTheHintAreMovedInsideTheirReservationAndAfterItAnywhere(t *testing.T) {
	labtest.Long(t)
	for _, way := range []string{built.Interpose, built.Replace} {
		t.Run(way, func(t *testing.T) {
			b := placing(t, way, "OS_RESERVATION__ENDED_INSTANCES=wait")
			hosts := b.cloud.Hosts(t)
			b.pool("cmp-*")
			t.Run("of instances", func(t *testing.T) { b.with(t).instancesByTheHint(way, hosts[:2]) })
			t.Run("of hosts", func(t *testing.T) { b.with(t).guestsAreMoved(way, hosts[len(hosts)-3:]) })
		})
	}
}

// guestsAreMoved reserves three hosts of one cell; the last one may be killed. Admins name hosts of this
// cell only: Nova itself refuses others.
func (b *beside) guestsAreMoved(way string, reserved []string) {
	b.t.Helper()
	free := others(b.cloud.CellOf(b.t, reserved[0]), reserved)
	r := b.reserve(b.demo, v1.ReservationRequest{
		Name: "render", HostProperties: among(reserved...), Quantity: new(3), Duration: new(v1.Duration(3600)), OnEnd: "leave",
	})
	b.becomes(r.ID, "active")
	guests := b.placed(b.demo, reserved, 0, wish{name: "guest", count: 4, hints: map[string]any{"reservation": r.ID}})

	moved := b.ordered(
		order{server: guests[0], do: coldly, to: reserved},
		order{server: guests[1], do: live(nil), to: reserved},
		order{server: guests[2], do: shelve, becomes: "SHELVED_OFFLOADED"},
		order{server: guests[3], do: shelve, becomes: "SHELVED_OFFLOADED"},
	)
	moved[2] = b.ordered(
		order{server: moved[2], do: restore, to: reserved},
		order{server: moved[0], do: migrateTo(free[0]), refused: true},
		order{server: moved[1], do: live(free[0]), refused: true},
	)[0]
	if len(free) > 1 { // in a lab of two cells, a server of others has no second host
		stranger := b.placed(b.demo2, free, 1, wish{name: "stranger"})[0]
		stranger = b.ordered(order{server: stranger, do: coldly, to: free})[0]
		b.ordered(order{server: stranger, do: live(reserved[0]), refused: true})
	}
	if way == built.Interpose { // TestOperationsEndAsUnderNovaScheduler does it for replace
		moved[1] = b.evacuated(moved[1], reserved)
	}
	b.outlivesItsHosts(r, reserved, moved[:4])
}

// evacuated evacuates a guest from the last of the hosts.
func (b *beside) evacuated(guest server, reserved []string) server {
	b.t.Helper()
	last := len(reserved) - 1
	if guest.Host != reserved[last] {
		guest = b.ordered(order{server: guest, do: live(reserved[last]), to: reserved[last:]})[0]
	}
	labtest.KillCompute(b.t, reserved[last])
	guest = b.ordered(order{server: guest, do: rescue, to: reserved[:last]})[0]
	labtest.ReviveCompute(b.t, reserved[last])
	b.await("Almanac sees host "+reserved[last]+" again", func() bool {
		host, err := b.admin.almanac.Host(b.t.Context(), reserved[last])
		return err == nil && host.Problem == ""
	})
	return guest
}

// outlivesItsHosts checks that guests that stay after the end may move like other servers, the
// last of them after a shelve, and no longer belong to a reservation. At that time the hosts are
// promised to the next reservation.
func (b *beside) outlivesItsHosts(r v1.Reservation, reserved []string, guests []server) {
	b.t.Helper()
	b.endsSoon(r.ID)
	next := b.reserve(b.demo2, v1.ReservationRequest{
		Name: "next", HostProperties: among(reserved...), Quantity: new(len(reserved)), StartTime: new(b.soon(3600)), Duration: new(v1.Duration(3600)),
	})
	b.becomes(r.ID, "ended")
	b.traceless(r.ID)
	b.prepared(next)
	b.runOn(reserved, b.settled(guests[0].ID, guests[1].ID, guests[2].ID)...)
	free := others(b.cloud.Hosts(b.t), reserved)
	moved := b.ordered(
		order{server: guests[0], do: coldly, to: free},
		order{server: guests[1], do: live(nil), to: free},
		order{server: guests[2], do: resizeTo(small), to: free},
		order{server: guests[3], do: restore, to: free},
	)
	for _, s := range moved {
		b.await("server "+s.Name+" is no longer a guest", func() bool { return b.guestOf(s) == "" })
	}
	if err := b.demo2.almanac.DeleteReservation(b.t.Context(), next.ID); err != nil {
		b.t.Error(err)
	}
	b.deletesAll()
	b.quiet()
}

// order is an action of Nova on a server, and where the server is afterwards: not on its earlier
// host.
type order struct {
	server  server
	do      map[string]any // the action
	to      []string       // one of these hosts; empty if the server has no host
	becomes string         // empty stands for ACTIVE
	refused bool           // the server stays unchanged
}

// ordered sends all orders at once as an admin, confirms what needs a confirmation, and returns
// the servers when Nova is done.
func (b *beside) ordered(orders ...order) (list []server) {
	b.t.Helper()
	act := func(s server, do map[string]any) int {
		return b.admin.Do(http.MethodPost, "compute", "/servers/"+s.ID+"/action", do, nil)
	}
	for _, o := range orders {
		if status := act(o.server, o.do); status >= http.StatusBadRequest {
			b.t.Fatalf("Nova refuses to %v server %s: status %d", o.do, o.server.Name, status)
		}
	}
	for _, o := range orders {
		var s server
		failed := false
		b.await("Nova is done with server "+o.server.Name, func() bool {
			s = b.look(o.server.ID)
			if s.Task == "" && s.Status == "VERIFY_RESIZE" {
				act(s, confirm) // Nova may be busy with it
			}
			failed = b.failed(s)
			return s.Task == "" && (failed || s.Status == cmp.Or(o.becomes, "ACTIVE") && s.Host != o.server.Host)
		})
		// Nova deletes the allocation on the earlier host after the server is ACTIVE again.
		b.await("server "+s.Name+" has left its earlier host in Placement", func() bool {
			return !slices.ContainsFunc(b.movesOf(s.ID), func(move string) bool { return len(b.allocated(server{ID: move})) > 0 })
		})
		stays := s.Host == o.server.Host && s.Status == o.server.Status
		if failed != o.refused || o.refused && !stays || !o.refused && s.Host != "" && !slices.Contains(o.to, s.Host) {
			b.t.Errorf("%v of server %s, which was on %q: the server is %s on %q, failed: %t; want it on one of %v, refused: %t",
				o.do, s.Name, o.server.Host, s.Status, s.Host, failed, o.to, o.refused)
		}
		list = append(list, s)
	}
	return list
}

// movesOf returns the ids of the migrations of a server, which are consumers in Placement.
func (b *beside) movesOf(id string) (moves []string) {
	b.t.Helper()
	var found struct{ Migrations []struct{ UUID string } }
	b.admin.Must(http.MethodGet, "compute", "/os-migrations?instance_uuid="+id, nil, &found)
	for _, one := range found.Migrations {
		moves = append(moves, one.UUID)
	}
	return moves
}

// failed reports whether Nova's last action on the server failed.
func (b *beside) failed(s server) bool {
	b.t.Helper()
	var done struct {
		Actions []struct{ Message string } `json:"instanceActions"` // the last first
	}
	b.admin.Must(http.MethodGet, "compute", "/servers/"+s.ID+"/os-instance-actions", nil, &done)
	return len(done.Actions) > 0 && done.Actions[0].Message == "Error"
}

// unseen is in the place of the reservation of a server that Almanac does not know on its host yet.
const unseen = "not seen yet"

// guestOf returns the reservation of a server, as Almanac reports it on its host; or unseen.
func (b *beside) guestOf(s server) (reservation string) {
	b.t.Helper()
	host, err := b.admin.almanac.Host(b.t.Context(), s.Host)
	if err != nil {
		b.t.Fatal(err)
	}
	i := slices.IndexFunc(host.Instances, func(i v1.Instance) bool { return i.ID == s.ID })
	if i < 0 {
		return unseen
	}
	return host.Instances[i].ReservationID
}
