// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// inRacks writes down in which rack each host is, as an operator does.
func inRacks(g *built.Guarded) map[string]string {
	g.T.Helper()
	in := map[string]string{
		"host-01": "r1", "host-02": "r1", "host-03": "r1", "host-04": "r1", "host-05": "r2", "host-06": "r2", "host-07": "r2", "host-08": "r3", "host-09": "r3", "host-10": "r3",
	}
	for host, rack := range in {
		_, stderr, exit := g.As(labtest.Admin, "host", "set", host, "--property", "rack="+rack)
		built.WantExit(g.T, "the rack of "+host, stderr, exit, 0)
	}
	return in
}

// An operator writes the racks down; a tenant reserves hosts in one, over several, and is told what does not fit.
func TestHostsAreReservedInOneRackOverSeveralOrRefused(t *testing.T) {
	g := built.StartGuarded(t)
	in := inRacks(g)
	create := func(what string, want int, says []string, arguments ...string) {
		t.Helper()
		_, stderr, exit := g.As(labtest.Demo, append([]string{"reservation", "create"}, arguments...)...)
		built.WantExit(t, what, stderr, exit, want, says...)
	}
	racks := func(name string) (made v1.Reservation, racks []string) {
		t.Helper()
		r := g.Send(g.Token(labtest.Admin), http.MethodGet, "/v1/reservations?all_projects=true&name="+name, "")
		var list v1.Reservations
		if err := json.Unmarshal([]byte(r.Text), &list); err != nil || len(list.Reservations) != 1 {
			t.Fatalf("%s: %v", r.Text, err)
		}
		for _, host := range list.Reservations[0].Hosts {
			racks = append(racks, in[host])
		}
		slices.Sort(racks)
		return list.Reservations[0], slices.Compact(racks)
	}

	create("one host of the first rack", 0, nil, "first", "--start", "+1d", "--duration", "2h", "--properties", `["=", "$name", "host-01"]`)
	create("four hosts in one rack meanwhile", 5, []string{`no room for 4 hosts on one value of rack: "r1" comes nearest, with room for 3`, "earliest start", "largest quantity: 3"},
		"solver", "--quantity", "4", "--start", "+1d", "--duration", "2h", "--together", "rack")
	create("four hosts in one rack within three days", 0, nil, "solver", "--quantity", "4", "--start", "+1d", "--end", "+4d", "--duration", "2h", "--together", "rack")
	first, _ := racks("first")
	solver, its := racks("solver")
	if !slices.Equal(its, []string{"r1"}) || !solver.Start.Equal(first.End) || solver.Together == nil || !solver.Together.Kept || !solver.Together.Required {
		t.Errorf("solver is %+v in %v; the first ends at %v", solver, its, first.End)
	}
	create("five hosts in one rack", 5, []string{`"r1" comes nearest`, "for 4 if nothing is promised"}, "more", "--quantity", "5", "--start", "+1d", "--duration", "2h", "--together", "rack")
	create("five hosts in one rack if possible", 0, nil, "more", "--quantity", "5", "--start", "+7d", "--duration", "2h", "--together", "rack", "--together-preferred")
	if more, its := racks("more"); len(its) != 2 || more.Together == nil || more.Together.Kept || more.Together.Required {
		t.Errorf("more is %+v in %v", more, its)
	}
	create("replicas over three racks", 0, nil, "replicas", "--quantity", "3", "--start", "+9d", "--duration", "2h", "--together", "rack", "--together-rule", "spread", "--together-values", "3")
	if replicas, its := racks("replicas"); len(its) != 3 || !replicas.Together.Kept {
		t.Errorf("the replicas are %+v in %v", replicas, its)
	}
	create("replicas over four racks", 5, []string{"no room for 4 hosts on 4 values of rack: 3 values have room"},
		"none", "--quantity", "4", "--start", "+11d", "--duration", "2h", "--together", "rack", "--together-rule", "spread", "--together-values", "4")
	create("apart from the solver in one rack", 0, nil, "standby", "--quantity", "3", "--start", "+1d", "--end", "+4d", "--duration", "2h",
		"--together", "rack", "--together-rule", "same", "--apart-from", "solver")
	if standby, its := racks("standby"); !slices.Equal(its, []string{"r2"}) || !slices.Equal(standby.Together.ApartFrom, []string{solver.ID}) || !standby.Together.Kept {
		t.Errorf("standby is %+v in %v", standby, its)
	}
	create("seven hosts apart from the solver", 5, []string{"there is room for 6 of 7 hosts on other values of rack than those of reservation " + solver.ID, "largest quantity: 6"},
		"none", "--quantity", "7", "--start", "+13d", "--duration", "2h", "--together", "rack", "--apart-from", "solver")
	_, stderr, exit := g.As(labtest.Demo, "reservation", "change", "standby", "--quantity", "5")
	built.WantExit(t, "two more hosts in the rack", stderr, exit, 5, `"r2" comes nearest`)
	_, stderr, exit = g.As(labtest.Demo, "reservation", "delete", "first", "--yes")
	built.WantExit(t, "cancel the first", stderr, exit, 0)
	create("apart from what is over", 2, []string{"together.apart_from", `the project has no reservation "` + first.ID + `" that is pending or has begun`},
		"none", "--start", "+11d", "--duration", "2h", "--together", "rack", "--apart-from", first.ID)
	create("an unknown property", 2, []string{`no host has a property "rak"`}, "none", "--start", "+11d", "--duration", "2h", "--together", "rak")
	_, stderr, exit = g.As(labtest.Demo, "reservation", "change", "solver", "--quantity", "5")
	built.WantExit(t, "a fifth host in the rack", stderr, exit, 5, `"r1" comes nearest`)
	shown, stderr, exit := g.As(labtest.Demo, "reservation", "show", "more", "-f", "value", "-c", "Together")
	built.WantExit(t, "what is shown", stderr, exit, 0)
	if shown != "same rack, preferred, not kept\n" {
		t.Errorf("shown is %q", shown)
	}
}

// Clients book in one rack, over three racks and anywhere at two replicas, which are killed again and again. The hosts lie as asked,
// each acknowledged booking is there once, and no host is promised twice.
func TestHostsLieAsAskedWhenReplicasAreKilled(t *testing.T) {
	var in map[string]string
	b := startRetried(t, func(g *built.Guarded) { in = inRacks(g) })
	begin := time.Now().Add(24 * time.Hour).Truncate(time.Hour)
	work := func(_ context.Context, i int, random *rand.Rand) {
		hosts, lasts := 1+random.IntN(4), v1.Duration(3600*(1+random.IntN(3)))
		start := begin.Add(time.Duration(random.IntN(300)) * time.Hour)
		request := v1.ReservationRequest{Name: "anywhere", StartTime: &start, Duration: &lasts, Quantity: &hosts}
		switch random.IntN(3) {
		case 0:
			request.Name, request.Together = "same", &v1.TogetherWish{By: "rack", Rule: "same"}
		case 1:
			request.Name, request.Together = "spread", &v1.TogetherWish{By: "rack", Rule: "spread", Values: 3}
			request.Quantity = new(3 + random.IntN(3))
		}
		b.book(i, request)
	}
	underKills(t, b.r, b.sent.Load, work, func(quiet bool) {
		b.checker.Check(16)
		b.inTheirRacks(in)
		if quiet {
			b.nothingLostOrDoubled()
		}
	})
	b.sentOnceMore()
}

// inTheirRacks reads the reservations without Almanac's code: each lies on racks as its name tells.
func (b *retried) inTheirRacks(in map[string]string) {
	b.t.Helper()
	names, racks := make(map[string]string), make(map[string][]string)
	b.checker.Each("SELECT r.id, r.name, c.host FROM reservations r JOIN claims c ON c.reservation_id = r.id", func(rows *sql.Rows) error {
		var id, name, host string
		if err := rows.Scan(&id, &name, &host); err != nil {
			return err
		}
		names[id] = name
		if !slices.Contains(racks[id], in[host]) {
			racks[id] = append(racks[id], in[host])
		}
		return nil
	})
	want := map[string]int{"same": 1, "spread": 3}
	for id, name := range names {
		if n := want[name]; n != 0 && len(racks[id]) != n {
			b.t.Errorf("%s, %s, has hosts in %v, want %d racks", id, name, racks[id], n)
		}
	}
}
