package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// reservedHosts are how many of the lab's hosts are reserved.
const reservedHosts = 4

// TestReservedHostsAreForTheHintOfTheirOwner asks for servers with any flavor before,
// during and after a reservation. Nova takes no more candidates from Placement than half
// of the hosts, and keeps nobody off by itself: what is not narrowed is not found.
func TestReservedHostsAreForTheHintOfTheirOwner(t *testing.T) {
	for _, way := range []string{interpose, replace} {
		t.Run(way, func(t *testing.T) {
			b := placing(t, way, []string{"scheduler.max_placement_results=4", "scheduler.enable_isolated_aggregate_filtering=false"},
				"OS_RESERVATION__LEAD_TIME=2h")
			hosts := b.cloud.Hosts(t)
			reserved, others := hosts[:reservedHosts], hosts[reservedHosts:]
			b.pool("cmp-*")
			r := b.reserve(b.demo, v1.ReservationRequest{
				Name: "render", HostProperties: among(reserved...), Quantity: new(reservedHosts),
				StartTime: new(b.soon(3600)), Duration: new(v1.Duration(3600)),
			})
			b.prepared(r)
			hint := map[string]any{"reservation": r.ID}

			b.tellsWhy(b.demo, r.ID, wish{name: "too early", hints: hint})
			b.keptOff(reserved, others)
			b.startsNow(r)
			b.usedByOwner(r, reserved)
			b.keptOff(reserved, others)
			b.wrongHints(r)
			b.unleaked()

			b.endsSoon(r.ID)
			b.becomes(r.ID, "ended")
			b.traceless(r.ID)
			b.tellsWhy(b.demo, r.ID, wish{name: "too late", hints: hint})
			for i := range reserved {
				b.placed(b.admin, reserved[i:i+1], 1, wish{name: "forced", fields: map[string]any{"host": reserved[i]}})
			}
			b.deletesAll()
			b.quiet()
		})
	}
}

// startsNow begins a reservation that was to begin later.
func (b *beside) startsNow(r v1.Reservation) {
	b.t.Helper()
	if _, err := b.admin.almanac.ChangeReservation(b.t.Context(), r.ID, v1.ReservationChange{StartTime: new(b.soon(3))}); err != nil {
		b.t.Fatalf("let reservation %s begin: %v", r.ID, err)
	}
	b.becomes(r.ID, "active")
}

// keptOff: without the hint nobody gets onto promised hosts, not even their owner or
// where an admin asks for one; all other hosts can be filled.
func (b *beside) keptOff(reserved, others []string) {
	b.t.Helper()
	half := len(others) / 2
	b.placed(b.demo, others, half, wish{name: "beside the reservation", count: half, flavor: big})
	b.placed(b.demo2, others, len(others)-half, wish{name: "beside it too", count: len(others) - half, flavor: big})
	for _, who := range []*tenant{b.demo, b.demo2} {
		b.unplaced(who, wish{name: "no room but on promised hosts", flavor: big})
	}
	b.unplaced(b.admin, wish{name: "forced to a promised host", fields: map[string]any{"host": reserved[0]}})
	b.unplaced(b.admin, wish{name: "forced in a zone to a promised host", fields: map[string]any{"availability_zone": "nova:" + reserved[1]}})
	b.deletesAll()
}

// usedByOwner: with the hint the owner gets all of the hosts, and no others.
func (b *beside) usedByOwner(r v1.Reservation, reserved []string) {
	b.t.Helper()
	b.cloud.Openstack(b.t, labtest.Demo, "server", "create", "--flavor", "m1.tiny", "--image", "tiny", "--nic", "none",
		"--hint", "reservation="+r.ID, "--max", "5", "--wait", "render-by-openstack")
	ids := b.named("render-by-openstack")
	if len(ids) != 5 {
		b.t.Errorf("openstack has made %d servers, want 5", len(ids))
	}
	b.runOn(reserved, b.settled(ids...)...)

	hint := func(more ...string) map[string]any {
		hints := map[string]any{"reservation": r.ID}
		for i := 0; i < len(more); i += 2 {
			hints[more[i]] = more[i+1]
		}
		return hints
	}
	own := b.placed(b.demo, reserved, len(reserved), wish{name: "one on each", count: len(reserved), flavor: big, hints: hint()})
	b.tellsWhy(b.demo, "", wish{name: "one too many", flavor: big, hints: hint()})
	b.remove(own[0])
	b.tellsWhy(b.demo, "", wish{name: "two for one host", count: 2, flavor: big, hints: hint()})
	b.placed(b.demo, []string{own[0].Host}, 1, wish{name: "one for one host", flavor: big, hints: hint()})
	b.deletesAll()

	together, apart := b.group(b.demo, "affinity"), b.group(b.demo, "anti-affinity")
	b.placed(b.demo, reserved, 1, wish{name: "together", count: 2, hints: hint("group", together)})
	b.placed(b.demo, reserved, len(reserved), wish{name: "apart", count: len(reserved), hints: hint("group", apart)})
	b.tellsWhy(b.demo, "", wish{name: "one too many to be apart", hints: hint("group", apart)})
	b.placed(b.demo, reserved, 1, wish{name: "in the zone", fields: map[string]any{"availability_zone": "nova"}, hints: hint()})
	b.deletesAll()
}

// wrongHints: nobody learns of a reservation of others whether it is there.
func (b *beside) wrongHints(r v1.Reservation) {
	b.t.Helper()
	unknown := uuid.NewString()
	first := b.tellsWhy(b.demo2, unknown, wish{name: "unknown", hints: map[string]any{"reservation": unknown}})
	foreign := b.tellsWhy(b.demo2, r.ID, wish{name: "foreign", hints: map[string]any{"reservation": r.ID}})
	if strings.ReplaceAll(foreign, r.ID, unknown) != first {
		b.t.Errorf("of a foreign reservation one is told %q, and of one that is not there %q", foreign, first)
	}
	for name, hint := range map[string]any{
		"a name": "render", "empty": "", "several": []string{r.ID, unknown}, "long": strings.Repeat("7", 255),
	} {
		b.tellsWhy(b.demo, "", wish{name: name, hints: map[string]any{"reservation": hint}})
	}
}

// tellsWhy has Nova find no host for servers with a hint. The tenant is told that it is
// because of the reservation, by its id where that is not empty.
func (b *beside) tellsWhy(who *tenant, id string, w wish) (sentence string) {
	b.t.Helper()
	begun := time.Now()
	sentence = b.unplaced(who, w)
	if !strings.Contains(strings.ToLower(sentence), "reservation") || !strings.Contains(sentence, id) {
		b.t.Errorf("%s: the tenant is told %q, want a sentence about reservation %s", w.name, sentence, id)
	}
	for _, secret := range []string{"rabbit://", "mysql", "Traceback", "{"} {
		if strings.Contains(sentence, secret) {
			b.t.Errorf("%s: the tenant is told %q", w.name, sentence)
		}
	}
	if took := time.Since(begun); took > patience {
		b.t.Errorf("%s: the refusal came after %v", w.name, took)
	}
	return sentence
}
