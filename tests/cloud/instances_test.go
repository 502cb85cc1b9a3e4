// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// instancesAreCounted lets instances of two projects share one host of 10 VCPU.
func (b *beside) instancesAreCounted(host string) {
	t, hosts := b.t, []string{host}
	size := []string{"--kind", "instance", "--vcpus", "2", "--memory-mb", "512", "--disk-gb", "1", "--duration", "1h", "--properties", string(among(host))}
	three := b.book(labtest.Demo, append(size, "--quantity", "3", "web")...)
	two := b.book(labtest.Demo2, append(size, "--quantity", "2", "batch")...)
	_, stderr, exit := built.Almanac(t, b.Folder, append(b.cloud.Environment(labtest.Demo), "ALMANAC_URL="+b.URL),
		append([]string{"reservation", "create", "more"}, size...)...)
	built.WantExit(t, "a sixth instance", stderr, exit, 5)

	b.becomes(three.ID, "active")
	b.becomes(two.ID, "active")
	var web, batch []string
	for range 3 {
		web = append(web, b.boot(b.demo, "web", three.ID, ""))
	}
	b.runOn(hosts, b.settled(web...)...)
	if s := b.settled(b.boot(b.demo, "web", three.ID, ""))[0]; s.Status != "ERROR" {
		t.Errorf("a fourth server of a reservation for three is %s on %s, in another project's room", s.Status, s.Host)
	}
	for range 2 {
		batch = append(batch, b.boot(b.demo2, "batch", two.ID, ""))
	}
	b.runOn(hosts, b.settled(batch...)...)
	if s := b.settled(b.boot(b.admin, "normal", tiny, host))[0]; s.Status != "ERROR" {
		t.Errorf("a normal server, forced to a reserved host by an admin, is %s on %s", s.Status, s.Host)
	}

	b.endsSoon(three.ID)
	b.becomes(three.ID, "ended")
	b.reach("", web...)
	b.traceless(three.ID)
	b.runOn(hosts, b.settled(batch...)...)
	if _, err := b.demo2.almanac.ChangeReservation(t.Context(), two.ID, v1.ReservationChange{Quantity: new(5)}); err != nil {
		t.Fatalf("after the end of the other reservation, the whole host must be available: %v", err)
	}
	b.await("there is room for a third", func() bool {
		id := b.boot(b.demo2, "batch", two.ID, "")
		return b.settled(id)[0].Status == "ACTIVE"
	})
}
