// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"strings"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// roomIsMade reserves two hosts on which servers run: a preemptible one on the first, a normal
// one on the second.
func (b *beside) roomIsMade(hosts []string) {
	t := b.t
	cheap := b.boot(b.admin, "cheap", b.flavor(map[string]string{"almanac:preemptible": "true"}), hosts[0])
	normal := b.boot(b.admin, "normal", tiny, hosts[1])
	b.runOn(hosts, b.settled(cheap, normal)...)
	r := b.reserve(b.demo, v1.ReservationRequest{Name: "both", HostProperties: among(hosts...), StartTime: new(b.soon(5)), Duration: new(v1.Duration(3600)), Quantity: new(2)})

	b.reach("", cheap)
	sentence := b.putOff(r.ID, "start")
	if want := "a host is occupied by an instance (ACTIVE) of another project; the start waits until it is gone"; sentence != want {
		t.Errorf("the start waits because of %q, want %q", sentence, want)
	}
	if s := b.settled(b.boot(b.demo, "early", r.ID, ""))[0]; s.Status != "ERROR" {
		t.Errorf("a server that the owner requests before the start is %s on %s", s.Status, s.Host)
	}
	b.runOn(hosts[1:], b.settled(normal)...)
	b.admin.Must(http.MethodDelete, "compute", "/servers/"+normal, nil, nil)
	r = b.becomes(r.ID, "active")
	if e := lastEvent(r, "start"); !strings.HasSuffix(e.Detail, "after its time") {
		t.Errorf("the start is %+v, want its delay in the log", e)
	}
	b.runOn(hosts, b.settled(b.boot(b.demo, "own", r.ID, ""), b.boot(b.demo, "own", r.ID, ""))...)
}

// flavor creates a flavor as small as m1.tiny with the extra specs, until the test ends.
func (b *beside) flavor(specs map[string]string) (id string) {
	b.t.Helper()
	var made struct{ Flavor struct{ ID string } }
	b.admin.Must(http.MethodPost, "compute", "/flavors", map[string]any{"flavor": map[string]any{
		"name": b.t.Name(), "vcpus": 1, "ram": 512, "disk": 1}}, &made)
	b.t.Cleanup(func() { b.admin.Must(http.MethodDelete, "compute", "/flavors/"+made.Flavor.ID, nil, nil) })
	b.admin.Must(http.MethodPost, "compute", "/flavors/"+made.Flavor.ID+"/os-extra_specs", map[string]any{"extra_specs": specs}, nil)
	return made.Flavor.ID
}
