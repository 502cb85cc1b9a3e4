// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// keepsReservedHosts checks that half of the hosts are only for the owner's hint before and
// during a reservation and until its end, for servers of any flavor.
func (b *beside) keepsReservedHosts() {
	b.t.Helper()
	hosts := b.cloud.Hosts(b.t)
	reserved, others := hosts[:4], hosts[4:]
	b.pool("cmp-*")
	r := b.reserve(b.demo, v1.ReservationRequest{
		Name: "render", HostProperties: among(reserved...), Quantity: new(len(reserved)),
		StartTime: new(b.soon(3600)), Duration: new(v1.Duration(3600)),
	})
	b.prepared(r)
	hint := map[string]any{"reservation": r.ID}

	b.tellsWhy(b.demo, r.ID, wish{name: "too early", hints: hint})
	b.placed(b.demo2, others, 0, wish{name: "five at once", count: 5})
	b.keptOff(reserved, others)
	b.startsNow(r)
	b.usedByOwner(r, reserved)
	b.keptOff(reserved, others)
	b.wrongHints(r)
	b.privateHints(r, reserved)

	b.endsWithItsGuests(r, reserved)
	b.traceless(r.ID)
	b.tellsWhy(b.demo, r.ID, wish{name: "too late", hints: hint})
	for i := range reserved[:2] {
		b.placed(b.admin, reserved[i:i+1], 1, wish{name: "forced", fields: map[string]any{"host": reserved[i]}})
	}
	b.deletesAll()
	b.quiet()
}

// startsNow makes a later reservation start now.
func (b *beside) startsNow(r v1.Reservation) {
	b.t.Helper()
	if _, err := b.admin.almanac.ChangeReservation(b.t.Context(), r.ID, v1.ReservationChange{StartTime: new(b.soon(3))}); err != nil {
		b.t.Fatalf("let reservation %s begin: %v", r.ID, err)
	}
	b.becomes(r.ID, "active")
}

// keptOff checks that without the hint no server is placed on promised hosts, neither of their
// owner nor at an admin's request, and that all other hosts can be filled.
func (b *beside) keptOff(reserved, others []string) {
	b.t.Helper()
	b.placed(b.demo2, others, len(others), wish{name: "beside the reservation", count: len(others), flavor: big})
	b.unplaced(b.demo, wish{name: "no room but on promised hosts", flavor: big})
	b.unplaced(b.demo, wish{name: "nor with a private hint", flavor: big, hints: map[string]any{"_nova_note": "x"}})
	b.unplaced(b.admin, wish{name: "forced to a promised host", fields: map[string]any{"host": reserved[0]}})
	b.unplaced(b.admin, wish{name: "forced in a zone to a promised host", fields: map[string]any{"availability_zone": "nova:" + reserved[1]}})
	b.deletesAll()
}

// usedByOwner checks that with the hint the owner's servers get all of the hosts, and no others.
func (b *beside) usedByOwner(r v1.Reservation, reserved []string) {
	b.t.Helper()
	b.cloud.Openstack(b.t, labtest.Demo, "server", "create", "--flavor", "m1.tiny", "--image", "tiny", "--nic", "none",
		"--hint", "reservation="+r.ID, "--max", "5", "--wait", "render-by-openstack")
	ids := b.named("render-by-openstack")
	if len(ids) != 5 {
		b.t.Errorf("openstack created %d servers, want 5", len(ids))
	}
	b.runOn(reserved, b.settled(ids...)...)

	hint := func(more ...string) map[string]any {
		hints := map[string]any{"reservation": r.ID}
		for i := 0; i < len(more); i += 2 {
			hints[more[i]] = more[i+1]
		}
		return hints
	}
	all := len(reserved)
	b.placed(b.demo, reserved, all-1, wish{name: "one on each but one", count: all - 1, flavor: big, hints: hint()})
	b.tellsWhy(b.demo, "", wish{name: "two for one host", count: 2, flavor: big, hints: hint()})
	b.placed(b.demo, reserved, 1, wish{name: "one for one host", flavor: big, hints: hint()})
	b.deletesAll()

	private := wish{name: "a private hint", count: all, flavor: big, hints: hint("_nova_note", "x")}
	b.placed(b.demo, reserved, all, private)
	b.tellsWhy(b.demo, "", wish{name: "a private hint without room", flavor: big, hints: private.hints})
	b.deletesAll()

	together, apart := b.group(b.demo, "affinity"), b.group(b.demo, "anti-affinity")
	b.placed(b.demo, reserved, 1, wish{name: "together", count: 2, fields: map[string]any{"availability_zone": "nova"}, hints: hint("group", together)})
	b.placed(b.demo, reserved, 2, wish{name: "apart", count: 2, hints: hint("group", apart)})
	b.deletesAll()
}

// endsWithItsGuests checks that a server admitted by its hint is known as the reservation's, and
// is deleted at its end. Nova in this lab does not report hints.
func (b *beside) endsWithItsGuests(r v1.Reservation, reserved []string) {
	b.t.Helper()
	guest := b.placed(b.demo, reserved, 1, wish{name: "until the end", hints: map[string]any{"reservation": r.ID, "preemptible": "true"}})[0]
	b.await("the server is known as the reservation's", func() bool {
		host, err := b.admin.almanac.Host(b.t.Context(), guest.Host)
		return err == nil && slices.ContainsFunc(host.Instances, func(i v1.Instance) bool {
			return i.ID == guest.ID && i.ReservationID == r.ID && i.Preemptible
		})
	})
	b.quiet()
	b.endsSoon(r.ID)
	b.becomes(r.ID, "ended")
	b.reach("", guest.ID)
}

// wrongHints checks that a tenant cannot find out whether another project's reservation exists.
func (b *beside) wrongHints(r v1.Reservation) {
	b.t.Helper()
	unknown := uuid.NewString()
	first := b.tellsWhy(b.demo2, unknown, wish{name: "unknown", hints: map[string]any{"reservation": unknown}})
	foreign := b.tellsWhy(b.demo2, r.ID, wish{name: "foreign", hints: map[string]any{"reservation": r.ID}})
	if strings.ReplaceAll(foreign, r.ID, unknown) != first {
		b.t.Errorf("for a foreign reservation the tenant reads %q, and for an unknown one %q", foreign, first)
	}
	b.tellsWhy(b.demo, "", wish{name: "a name", hints: map[string]any{"reservation": r.Name}})
}

// privateHints sends requests with a hint whose name is one of Nova's own, as a conductor sends them if
// Nova's API lets tenants set it. Almanac places and claims them like any other request: inside
// the reservation, and nowhere when each of its hosts has one.
func (b *beside) privateHints(r v1.Reservation, reserved []string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), built.Patience)
	defer cancel()
	conductor := labtest.NewConductor(b.t, labtest.NovaTransport(b.t))
	spec := labtest.RequestSpec{
		ProjectID: r.ProjectID, UserID: r.UserID, MemoryMB: 8192, // a host has room for one
		Hints: map[string][]string{"reservation": {r.ID}, "_nova_note": {"x"}},
	}
	var asked []string
	defer func() {
		for _, id := range asked {
			b.admin.Do(http.MethodDelete, "placement", "/allocations/"+id, nil, nil)
		}
	}()
	ask := func() (id string, chosen [][]labtest.Selection, err error) {
		id = uuid.NewString()
		asked = append(asked, id)
		chosen, err = conductor.SelectDestinations(ctx, spec, []string{id}, true, false)
		return id, chosen, err
	}
	var used []string
	for range reserved {
		id, chosen, err := ask()
		if err != nil || len(chosen) != 1 || len(chosen[0]) == 0 {
			b.t.Fatalf("a request with a private hint gets %v, %v", chosen, err)
		}
		if !b.hasSomething(id) {
			b.t.Error("a request with a private hint has no allocation")
		}
		used = append(used, chosen[0][0].Host)
	}
	if slices.Sort(used); !slices.Equal(used, reserved) {
		b.t.Errorf("requests with a private hint get %v, want each of %v once", used, reserved)
	}
	_, chosen, err := ask()
	if remote, is := errors.AsType[*oslo.RemoteError](err); !is || remote.Class != "NoValidHost" {
		b.t.Errorf("in a full reservation, a request with a private hint gets %v, %v; want NoValidHost", chosen, err)
	}
}

// tellsWhy lets Nova find no host for servers with a hint. It checks that the tenant's message
// names the reservation as the reason, by its id unless id is empty.
func (b *beside) tellsWhy(who *tenant, id string, w wish) (sentence string) {
	b.t.Helper()
	begun := time.Now()
	sentence = b.unplaced(who, w)
	if !strings.Contains(strings.ToLower(sentence), "reservation") || !strings.Contains(sentence, id) {
		b.t.Errorf("%s: the tenant reads %q, want a sentence about reservation %s", w.name, sentence, id)
	}
	for _, secret := range []string{"rabbit://", "mysql", "Traceback", "{"} {
		if strings.Contains(sentence, secret) {
			b.t.Errorf("%s: the tenant reads %q", w.name, sentence)
		}
	}
	if took := time.Since(begun); took > built.Patience {
		b.t.Errorf("%s: the refusal came after %v", w.name, took)
	}
	return sentence
}
