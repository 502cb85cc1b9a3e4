// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A reservation of two hosts goes through the fates of hosts: one is disabled while the other
// sleeps, then really fails, then is deleted from the cloud.
//
//make:test-cells
func TestAHostThatFailsIsReplacedAndOneThatSleepsIsNot(t *testing.T) {
	b := besideOpenStack(t)
	all := b.cloud.Hosts(t)
	disabled, killed, spare, late := all[5], all[len(all)-1], all[0], all[1]
	b.pool(disabled)
	r := b.reserve(b.demo, v1.ReservationRequest{Name: "shop", Duration: new(v1.Duration(3600))})
	b.becomes(r.ID, "active")
	held := b.boot(b.demo, "held", r.ID, "")
	b.runOn([]string{disabled}, b.settled(held)...)
	b.pool(killed)
	b.as(labtest.Demo, "reservation", "change", "shop", "--quantity", "2")
	b.holds(r.ID, disabled, killed)
	b.pool(spare)

	b.as(labtest.Admin, "host", "set", killed, "--power", "sleeping")
	labtest.KillCompute(t, killed)
	b.cloud.Openstack(t, labtest.Admin, "compute", "service", "set", "--disable", "--disable-reason", "a new fan", disabled, "nova-compute")
	r = b.holds(r.ID, killed, spare)
	if e := lastEvent(r, "healed"); !strings.Contains(e.Detail, disabled) || strings.Contains(e.Detail, "a new fan") || !strings.Contains(e.Detail, spare) {
		t.Errorf("the log reports the healing as %q", e.Detail)
	}
	b.told(r.ID, "reservation.heal")

	b.as(labtest.Admin, "host", "set", killed, "--power", "source")
	b.await("the reservation is degraded", func() bool { return b.show(r.ID).Degraded })
	if r = b.show(r.ID); !strings.Contains(r.DegradedReason, killed) || !strings.Contains(lastEvent(r, "degraded").Detail, "accepts no instances now") {
		t.Errorf("the reservation is degraded because of %q; its log: %+v", r.DegradedReason, r.Events)
	}
	b.told(r.ID, "reservation.degrade")

	b.forget(killed)
	b.await("the doctor misses the host", func() bool {
		found, err := b.admin.almanac.Examine(t.Context())
		return err == nil && slices.ContainsFunc(found.Findings, func(f v1.Finding) bool { return f.Kind == "vanished_host" && f.Subject == killed })
	})
	b.pool(late)
	r = b.holds(r.ID, late, spare)
	if r.Degraded || !strings.Contains(lastEvent(r, "healed").Detail, late) {
		t.Errorf("with all hosts the reservation is degraded because of %q; its log: %+v", r.DegradedReason, r.Events)
	}
	b.runOn([]string{late, spare}, b.settled(b.boot(b.demo, "new", r.ID, ""))...)

	b.endsSoon(r.ID)
	b.becomes(r.ID, "ended")
	b.reach("", held) // although its host has left the reservation
	b.traceless(r.ID)
	b.quiet()
}

//make:test-cloud
func TestAnAddedHostWithAServerOfAnotherProjectIsReplaced(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t)
	all := b.cloud.Hosts(t)
	first, taken, spare := all[0], all[1], all[2]
	b.pool(first)
	r := b.reserve(b.demo, v1.ReservationRequest{Name: "shop", Duration: new(v1.Duration(3600))})
	b.becomes(r.ID, "active")
	stranger := b.boot(b.admin, "stranger", tiny, taken)
	b.runOn([]string{taken}, b.settled(stranger)...)
	b.pool(taken)
	b.as(labtest.Demo, "reservation", "change", "shop", "--quantity", "2")
	if r = b.show(r.ID); !slices.Contains(r.Hosts, taken) {
		t.Fatalf("the reservation grew onto %v, want %s", r.Hosts, taken)
	}
	b.pool(spare)
	r = b.holds(r.ID, first, spare)
	if e := lastEvent(r, "healed"); !strings.Contains(e.Detail, spare) {
		t.Errorf("the log reports the replacement as %q", e.Detail)
	}
	b.runOn([]string{first, spare}, b.settled(b.boot(b.demo, "one", r.ID, ""), b.boot(b.demo, "two", r.ID, ""))...)
	b.runOn([]string{taken}, b.settled(stranger)...)
	b.quiet()
}

// holds waits until a reservation has exactly these hosts, and its aggregates too.
func (b *beside) holds(id string, hosts ...string) (r v1.Reservation) {
	b.t.Helper()
	slices.Sort(hosts)
	b.await("the reservation has "+strings.Join(hosts, " and "), func() bool {
		r = b.show(id)
		all := b.aggregates()
		return slices.Equal(r.Hosts, hosts) && slices.Equal(all["almanac-reservation-"+id], hosts) && slices.Equal(all["almanac-fence"], hosts)
	})
	return r
}

// forget deletes a host with a dead nova-compute from Nova and Placement, and what the host itself
// keeps.
func (b *beside) forget(host string) {
	b.t.Helper()
	var services struct{ Services []struct{ ID string } }
	b.admin.Must(http.MethodGet, "compute", "/os-services?binary=nova-compute&host="+host, nil, &services)
	for _, s := range services.Services {
		b.admin.Must(http.MethodDelete, "compute", "/os-services/"+s.ID, nil, nil)
	}
	var providers struct {
		Providers []struct{ UUID string } `json:"resource_providers"`
	}
	b.admin.Must(http.MethodGet, "placement", "/resource_providers?name="+host, nil, &providers)
	for _, p := range providers.Providers {
		b.admin.Must(http.MethodDelete, "placement", "/resource_providers/"+p.UUID, nil, nil)
	}
	labtest.ForgetIdentity(b.t, host)
}
