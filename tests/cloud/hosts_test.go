// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"net/http"
	"slices"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// This is the guide's example of a cloud with a new Almanac: one project uses hosts at once,
// another a while later.
//
//make:test-cells
func TestTwoProjectsReserveHostsOfARealCloud(t *testing.T) {
	b := besideOpenStack(t, "OS_RESERVATION__LEAD_TIME=2h")
	b.pool("cmp-*")
	b.healthy()
	render := b.book(labtest.Demo, "render", "--quantity", "2", "--duration", "3h", "--wait")
	training := b.book(labtest.Demo2, "training", "--quantity", "3", "--start", "+1h", "--duration", "1h")
	training.Hosts = b.prepared(training)
	b.seenByOpenstack(render, training)

	early := b.boot(b.demo2, "early", training.ID, "")
	own := b.createdByOpenstack(render)
	third := b.boot(b.demo, "third", render.ID, "")
	var normal []string
	for _, who := range []*tenant{b.demo, b.demo, b.demo2, b.demo2} {
		normal = append(normal, b.boot(who, "normal", tiny, ""))
	}
	b.runOn(render.Hosts, own...)
	for _, s := range b.settled(third, early) {
		if s.Status != "ERROR" {
			t.Errorf("server %s must find no host, but is %s on %s", s.Name, s.Status, s.Host)
		}
	}
	free := slices.DeleteFunc(b.cloud.Hosts(t), func(host string) bool {
		return slices.Contains(render.Hosts, host) || slices.Contains(training.Hosts, host)
	})
	there := b.settled(normal...)
	b.runOn(free, there...)
	b.haveBeenRead(there)

	b.as(labtest.Demo, "reservation", "change", "render", "--quantity", "3")
	b.as(labtest.Demo2, "reservation", "change", "training", "--start", b.fromNow(3*time.Second))
	grown := b.grown(render)
	training = b.becomes(training.ID, "active")
	b.told(training.ID, "reservation.start")
	if _, status := b.ask(b.demo, "intruder", training.ID, ""); status != http.StatusBadRequest {
		t.Errorf("another project requests a server of the reservation: status %d", status)
	}
	var theirs []string
	for range 4 {
		theirs = append(theirs, b.boot(b.demo2, "theirs", training.ID, ""))
	}
	placed := b.settled(theirs...)
	b.threeOfFour(training.Hosts, placed) // while demo's host is empty
	theirs = nil
	for _, s := range placed {
		if s.Status == "ACTIVE" {
			theirs = append(theirs, s.ID)
		}
	}
	own = append(own, b.settled(b.boot(b.demo, "fourth", render.ID, ""))...)
	b.runOn([]string{grown}, own[len(own)-1])
	b.healthy()

	b.as(labtest.Demo, "reservation", "change", "render", "--end", b.fromNow(10*time.Second))
	b.foretold(training.ID, theirs)
	b.as(labtest.Demo2, "reservation", "delete", "training", "--yes")
	b.becomes(render.ID, "ended")
	for _, s := range own {
		b.reach("", s.ID)
	}
	b.traceless(render.ID)
	b.reach("", theirs...)
	b.traceless(training.ID)
	b.told(render.ID, "reservation.end")
	b.told(training.ID, "reservation.cancel")
	b.runOn(free, b.settled(normal...)...)
	b.quiet()
	left := b.aggregates()
	if fenced := left["almanac-fence"]; len(fenced) > 0 || len(left) > 1 {
		t.Errorf("aggregates are left: %v", left)
	}
}

// haveBeenRead waits until Almanac knows servers on their hosts. A reservation that grows then gets a
// host without servers of others.
func (b *beside) haveBeenRead(servers []server) {
	b.t.Helper()
	b.await("Almanac knows the servers", func() bool {
		return !slices.ContainsFunc(servers, func(s server) bool { return b.guestOf(s) == unseen })
	})
}

// fromNow returns a time for the command line that is at least this far ahead, and further if one
// command takes long on this machine.
func (b *beside) fromNow(least time.Duration) string {
	b.t.Helper()
	begun := time.Now()
	b.as(labtest.Demo, "reservation", "list")
	return "+" + span.FormatDuration(int64((least+5*time.Since(begun)+time.Second-1)/time.Second))
}

// prepared waits until a reservation that has not started has its aggregate, and returns its
// hosts.
func (b *beside) prepared(r v1.Reservation) []string {
	b.t.Helper()
	promised := b.show(r.ID).Hosts
	b.await("the aggregate of "+r.Name+" has its hosts", func() bool {
		return slices.Equal(b.aggregates()["almanac-reservation-"+r.ID], promised)
	})
	return promised
}

// grown waits until the reservation has one more host, and returns it.
func (b *beside) grown(r v1.Reservation) string {
	b.t.Helper()
	now := b.show(r.ID).Hosts
	added := slices.DeleteFunc(slices.Clone(now), func(host string) bool { return slices.Contains(r.Hosts, host) })
	if len(added) != 1 || len(now) != len(r.Hosts)+1 {
		b.t.Fatalf("the reservation has %v, earlier it had %v", now, r.Hosts)
	}
	b.await("the aggregates have the new host", func() bool {
		all := b.aggregates()
		return slices.Equal(all["almanac-reservation-"+r.ID], now) && slices.Contains(all["almanac-fence"], added[0])
	})
	return added[0]
}

// seenByOpenstack checks that an admin sees the hosts of an active and of a prepared
// reservation in aggregates, and that each project sees its own flavor.
func (b *beside) seenByOpenstack(active, prepared v1.Reservation) {
	b.t.Helper()
	var aggregates []struct {
		Name       string
		Properties map[string]string
		Hosts      []string
	}
	var flavors, own, others []struct{ ID, Name string }
	b.cloud.OpenstackAll(b.t, labtest.Admin, []string{"aggregate list --long", "flavor list --all"}, &aggregates, &flavors)
	b.cloud.OpenstackAll(b.t, labtest.Demo, []string{"flavor list"}, &own)
	b.cloud.OpenstackAll(b.t, labtest.Demo2, []string{"flavor list"}, &others)
	seen := map[string]int{}
	for _, a := range aggregates {
		seen[a.Name] = len(a.Hosts)
		if a.Name == "almanac-fence" && a.Properties["trait:CUSTOM_ALMANAC_RESERVED"] != "required" {
			b.t.Errorf("the fence has the metadata %v", a.Properties)
		}
	}
	for name, hosts := range map[string]int{
		"almanac-fence": 5, "almanac-reservation-" + active.ID: len(active.Hosts), "almanac-reservation-" + prepared.ID: len(prepared.Hosts),
	} {
		if seen[name] != hosts || hosts == 0 {
			b.t.Errorf("aggregate %s has %d hosts, want %d", name, seen[name], hosts)
		}
	}
	sees := func(list []struct{ ID, Name string }, r v1.Reservation) bool {
		return slices.Contains(list, struct{ ID, Name string }{r.ID, "reservation:" + r.ID})
	}
	if !sees(flavors, active) || !sees(flavors, prepared) {
		b.t.Errorf("the flavors are %v", flavors)
	}
	if !sees(own, active) || sees(own, prepared) || sees(others, active) || !sees(others, prepared) {
		b.t.Errorf("demo sees the flavors %v, demo2 %v, want each its own", own, others)
	}
}

// createdByOpenstack creates as many servers as the reservation has hosts, with the owner's
// command.
func (b *beside) createdByOpenstack(r v1.Reservation) []server {
	b.t.Helper()
	b.cloud.Openstack(b.t, labtest.Demo, "server", "create", "--flavor", "reservation:"+r.ID, "--image", "tiny", "--nic", "none",
		"--min", "2", "--max", "2", "--wait", r.Name)
	var list struct{ Servers []struct{ ID, Name string } }
	b.demo.Must(http.MethodGet, "compute", "/servers?name="+r.Name, nil, &list)
	if len(list.Servers) != len(r.Hosts) {
		b.t.Fatalf("the servers of the reservation are %v", list.Servers)
	}
	return b.settled(list.Servers[0].ID, list.Servers[1].ID)
}

// threeOfFour checks that three servers run on the hosts and that Nova finds no host for the fourth.
func (b *beside) threeOfFour(hosts []string, servers []server) {
	b.t.Helper()
	slices.SortFunc(servers, func(a, c server) int { return len(a.Status) - len(c.Status) })
	if s := servers[0]; s.Status != "ERROR" {
		b.t.Errorf("server %s of a full reservation is %s on %s", s.Name, s.Status, s.Host)
	}
	b.runOn(hosts, servers[1:]...)
}

// foretold checks that a dry run of the deletion names the servers that it would delete, and
// does not delete them.
func (b *beside) foretold(id string, servers []string) {
	b.t.Helper()
	foreseen, err := b.demo2.almanac.OfferDeletion(b.t.Context(), id)
	if err != nil {
		b.t.Fatalf("dry run of a deletion: %v", err)
	}
	deleted := map[string]bool{}
	for _, s := range foreseen.Servers {
		deleted[s.ID] = s.Becomes == "deleted"
	}
	for _, server := range servers {
		if !deleted[server] || b.look(server).Status != "ACTIVE" {
			b.t.Errorf("server %s: to be deleted %v, status %s", server, deleted[server], b.look(server).Status)
		}
	}
}
