// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/rand"
	"net/http"
	"slices"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Reservations of all kinds run at once, on separate hosts.
func TestReservationsSideBySide(t *testing.T) {
	b := besideOpenStack(t, "OS_RESERVATION__END_GRACE=1m")
	hosts := b.cloud.Hosts(t)
	b.pool("cmp-*")
	t.Run("all", func(t *testing.T) {
		t.Run("an end does with servers what on_end says", func(t *testing.T) {
			t.Parallel()
			b.with(t).endsAreAsAsked(hosts[:5])
		})
		t.Run("a reservation of instances gives as many as were promised", func(t *testing.T) {
			t.Parallel()
			b.with(t).instancesAreCounted(hosts[5])
		})
		t.Run("preemptible servers make room and normal ones make the start late", func(t *testing.T) {
			t.Parallel()
			b.with(t).roomIsMade(hosts[6:])
		})
	})
	b.quiet()
}

// endsAreAsAsked runs one reservation for each on_end, which all end in the same second, and
// one that is extended.
func (b *beside) endsAreAsAsked(hosts []string) {
	t := b.t
	rest := map[string]string{"delete": "", "stop": "SHUTOFF", "shelve": "SHELVED_OFFLOADED", "leave": "ACTIVE"}
	reservations, servers := map[string]v1.Reservation{}, map[string]string{}
	var ids []string
	for onEnd := range rest {
		r := b.reserve(b.demo, v1.ReservationRequest{Name: onEnd, OnEnd: onEnd, Duration: new(v1.Duration(3600)), BeforeEnd: new(v1.Duration(3598)), HostProperties: among(hosts...)})
		reservations[onEnd], ids = r, append(ids, r.ID)
	}
	extended := b.reserve(b.demo2, v1.ReservationRequest{Name: "extended", HostProperties: among(hosts...), Duration: new(v1.Duration(3600))})
	b.becomes(extended.ID, "active")
	b.as(labtest.Demo2, "reservation", "change", "extended", "--end", b.fromNow(10*time.Second))
	extended = b.show(extended.ID)
	b.as(labtest.Demo2, "reservation", "extend", "extended", "--by", "1h")
	for onEnd, r := range reservations {
		b.becomes(r.ID, "active")
		servers[onEnd] = b.boot(b.demo, onEnd, r.ID, "")
	}
	stays := b.boot(b.demo2, "stays", b.becomes(extended.ID, "active").ID, "")
	for onEnd, r := range reservations {
		b.runOn(b.show(r.ID).Hosts, b.settled(servers[onEnd])...)
	}

	b.endsSoon(ids...)
	for onEnd, r := range reservations {
		b.becomes(r.ID, "ended")
		b.reach(rest[onEnd], servers[onEnd])
		b.traceless(r.ID)
		b.told(r.ID, "reservation.before_end")
		b.told(r.ID, "reservation.end")
	}
	b.shutDown(servers["delete"])
	if s := b.look(servers["stop"]); s.Host == "" {
		t.Error("a server that was stopped has left its host")
	}
	if s := b.look(servers["shelve"]); s.Host != "" {
		t.Errorf("a server that was shelved is still on %s", s.Host)
	}

	b.await("the first end of the extended reservation passes", func() bool { return time.Now().After(extended.End.Add(time.Second)) })
	b.runOn(b.becomes(extended.ID, "active").Hosts, b.settled(stays)...)
	b.traceOf(extended.ID)
}

// shutDown checks that Nova got a stop of the server before its deletion.
func (b *beside) shutDown(id string) {
	b.t.Helper()
	var done struct {
		Actions []struct{ Action string } `json:"instanceActions"`
	}
	b.admin.Must(http.MethodGet, "compute", "/servers/"+id+"/os-instance-actions", nil, &done)
	if a := done.Actions; len(a) != 3 || a[1].Action != "stop" || a[0].Action != "delete" { // the last first
		b.t.Errorf("Nova got the actions %v on the server, the last first", a)
	}
}

// reserve books as the user and, like the command line, repeats the request if the service asks for it.
func (b *beside) reserve(who *tenant, wanted v1.ReservationRequest) v1.Reservation {
	b.t.Helper()
	r, err := who.almanac.CreateReservation(b.t.Context(), wanted, client.CreateOptions{IdempotencyKey: rand.Text()})
	if err != nil {
		b.t.Fatalf("reserve %s: %v", wanted.Name, err)
	}
	return r
}

// traceOf fails the test unless the cloud has the resources of an active reservation.
func (b *beside) traceOf(id string) {
	b.t.Helper()
	hosts := b.show(id).Hosts
	if there := b.aggregates()["almanac-reservation-"+id]; !slices.Equal(there, hosts) {
		b.t.Errorf("the aggregate of reservation %s has %v, want %v", id, there, hosts)
	}
	if b.admin.gone("compute", "/flavors/"+id) {
		b.t.Errorf("reservation %s has no flavor", id)
	}
}
