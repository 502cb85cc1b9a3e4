// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// quarter is the step of time of a history: everything happens at a multiple of it.
const quarter = 900

// history is a drawn history of a cloud, and what the log of changes told of it. From that log alone it
// recomputes what was held: at each quarter of an hour, the claims that were stored last hold.
type history struct {
	*cloud
	t      *testing.T
	chance *mathrand.Rand
	trails map[string][]reservation.Change // also of purged reservations
	purged map[string]bool
	did    map[string]int // how often each step was done
}

func (h *history) pick(list ...string) string { return list[h.chance.IntN(len(list))] }

// between draws a number of quarters, in seconds.
func (h *history) between(least, most int64) int64 {
	return quarter * (least + h.chance.Int64N(most-least+1))
}

// step does something, which may be refused.
func (h *history) step() {
	live := h.bookings.Live(span.Always)
	what := h.pick("book", "book", "book", "maintain", "resize", "resize", "retime", "retime", "move", "cancel", "heal", "heal", "wait", "wait", "wait", "purge")
	begin := int64(h.now()-noon) + h.between(0, 12)
	switch what {
	case "book":
		kind := h.pick(`"kind": "host"`, `"kind": "instance", "resources": {"vcpus": 2}`)
		h.done(what, caller{h.cloud, h.pick("demo", "other") + "/member"}.post("/v1/reservations", fmt.Sprintf(
			`{"name": "r", %s, "quantity": %d, "start_time": %q, "duration": %d}`, kind, 1+h.chance.IntN(3), at(begin), h.between(1, 150))))
		return
	case "maintain":
		h.done(what, h.admin.post("/v1/reservations", maintain(begin, h.between(1, 30), fmt.Sprintf("%q", h.pick("A", "B", "C")))))
		return
	case "wait":
		h.wait(h.between(1, 40))
		h.did[what]++
		return
	case "purge":
		h.readTrails()
		_, err := h.store.Purge(h.t.Context(), job.Lease{}, h.now().Add(-h.between(0, 100)), false, 1+h.chance.IntN(3), nil)
		must(h.t, err)
		h.readTrails()
		return
	}
	if len(live) == 0 {
		return
	}
	r := live[h.chance.IntN(len(live))]
	path := "/v1/reservations/" + r.ID
	switch what {
	case "resize":
		h.done(what, h.admin.patch(path, fmt.Sprintf(`{"quantity": %d}`, 1+h.chance.IntN(4))))
	case "retime":
		h.done(what, h.admin.patch(path, fmt.Sprintf(`{"end_time": %q}`, h.now().Add(h.between(1, 100)))))
	case "move":
		h.done(what, h.admin.patch(path, fmt.Sprintf(`{"start_time": %q}`, at(begin))))
	case "cancel":
		h.done(what, h.admin.delete(path))
	case "heal":
		bad := h.pick("A", "B", "C", "D")
		_, changed, err := h.bookings.Heal(h.t.Context(), r.ID, func(host string) (string, bool) { return "it burns", host == bad })
		must(h.t, err)
		if changed {
			h.did[what]++
		}
	}
}

func (h *history) done(what string, a answer) {
	if a.status < 300 {
		h.did[what]++
	}
}

// readTrails reads the log of changes of all reservations that are stored.
func (h *history) readTrails() {
	stored := make(map[string]bool)
	for _, r := range h.stored() {
		stored[r.ID] = true
		trail, err := h.store.Trail(h.t.Context(), r.ID, 0)
		must(h.t, err)
		h.trails[r.ID] = trail
	}
	for id := range h.trails {
		if !stored[id] && !h.purged[id] {
			h.purged[id] = true
			h.did["purge"]++
		}
	}
}

// piece is a quarter of an hour for which a reservation holds something.
type piece struct {
	id, host string
	at       span.Instant
	count    int // instances; 0 means the whole host
}

// holding returns the pieces that a reservation holds: at each time, those of the change before it.
func (h *history) holding(id string) map[piece]bool {
	counts, trail := make(map[piece]int), h.trails[id]
	for i, change := range trail {
		to := span.Forever
		if i+1 < len(trail) {
			to = trail[i+1].At
		}
		for _, c := range change.Reservation.Claims {
			for at := max(c.Span.Start, change.At); at < min(c.Span.End, to); at += quarter {
				counts[piece{id, c.Host, at, 0}] += c.Slices
			}
		}
	}
	pieces := make(map[piece]bool)
	for p, count := range counts {
		p.count = count
		pieces[p] = true
	}
	return pieces
}

// began returns when the owner could use a reservation; forever if never.
func (h *history) began(id string) span.Instant {
	for _, c := range h.trails[id] {
		if c.Action == reservation.ActionStart {
			return c.At
		}
	}
	return span.Forever
}

// share returns how much of a host of eight vCPUs so many instances of two take; none are the whole host.
func share(instances int) float64 {
	if instances == 0 {
		return 1
	}
	return float64(instances) / 4
}

type amounts struct{ reserved, used, maintenance float64 }

// check compares the report and the calendar of a drawn span with the log.
func (h *history) check() {
	h.readTrails()
	begin := h.between(-10, int64(h.now()-noon)/quarter+20)
	w := span.New(noon.Add(begin), h.between(1, 200))
	projects, hosts, seen := make(map[string]amounts), make(map[string]amounts), make(map[piece]bool)
	past, kept := make(map[string]float64), span.Instant(0)
	for id, trail := range h.trails {
		r, began := trail[len(trail)-1].Reservation, h.began(id)
		for p := range h.holding(id) {
			part := 0.0
			if h.purged[id] {
				kept = max(kept, p.at+quarter)
				day := p.at / 86400 * 86400
				part = max(float64(min(w.End, day+86400)-max(w.Start, day))/86400, 0)
			} else if w.Contains(p.at) {
				part = 1
				seen[p] = true
			}
			amount := part / 4 * share(p.count) // in hours, of eight vCPUs
			a, b := projects[r.ProjectID], hosts[p.host]
			switch {
			case r.Maintenance:
				b.maintenance += amount
			case p.at >= began && p.at < h.now():
				a.used, b.used = a.used+amount, b.used+amount
				fallthrough
			default:
				a.reserved, b.reserved = a.reserved+amount, b.reserved+amount
			}
			projects[r.ProjectID], hosts[p.host] = a, b
			if p.at < h.now() {
				past[p.host] += amount
			}
		}
	}
	query := "start=" + w.Start.String() + "&end=" + w.End.String()
	byProject := want[v1.Usage](h.t, h.admin.get("/v1/usage?"+query), http.StatusOK)
	byHost := want[v1.Usage](h.t, h.admin.get("/v1/usage?by=host&"+query), http.StatusOK)
	for _, row := range byProject.Rows {
		h.near(w, row.ProjectID, []float64{projects[row.ProjectID].reserved, projects[row.ProjectID].used}, row.Reserved, row.Used)
		delete(projects, row.ProjectID)
	}
	for id, a := range projects {
		h.near(w, "missing "+id, []float64{0, 0}, a.reserved, a.used)
	}
	elapsed := float64(max(min(w.End, h.now())-w.Start, 0)) / 3600
	for _, row := range byHost.Rows {
		a := hosts[row.Host]
		idle := max(elapsed-past[row.Host], 0)
		h.near(w, row.Host, []float64{a.reserved, a.used, a.maintenance, idle}, row.Reserved, row.Used, *row.Maintenance, *row.Idle)
	}
	h.checkCalendar(w, seen, kept, query)
	if got := byProject.KeptFrom; (w.Start < kept) != (got != nil) || got != nil && span.At(*got) != kept {
		h.t.Fatalf("the report of %v has kept_from %v, and claims were purged until %v", w, got, kept)
	}
}

func (h *history) checkCalendar(w span.Span, seen map[piece]bool, kept span.Instant, query string) {
	got := make(map[piece]bool)
	marker := ""
	for {
		page := want[v1.Calendar](h.t, h.admin.get("/v1/calendar?limit=2&"+query+marker), http.StatusOK)
		for _, host := range page.Hosts {
			sum := make(map[piece]int)
			for _, c := range host.Claims {
				for at := max(span.At(c.Start), w.Start); at < min(span.At(c.End), w.End); at += quarter {
					sum[piece{c.ReservationID, host.Host, at, 0}] += c.Instances
				}
			}
			for p, count := range sum {
				p.count = count
				got[p] = true
			}
		}
		if (w.Start < kept && w.Start < h.now()) != (page.KeptFrom != nil) {
			h.t.Fatalf("the calendar of %v has kept_from %v, and claims were purged until %v", w, page.KeptFrom, kept)
		}
		if page.Next == "" {
			break
		}
		marker = "&marker=" + string(page.Next)
	}
	if !maps.Equal(seen, got) {
		for p := range seen {
			if !got[p] {
				h.t.Errorf("the calendar of %v lacks %+v", w, p)
			}
		}
		for p := range got {
			if !seen[p] {
				h.t.Errorf("the calendar of %v has %+v", w, p)
			}
		}
		h.t.FailNow()
	}
}

// near fails unless the amounts are those that are wanted, as far as they are rounded.
func (h *history) near(w span.Span, of string, want []float64, got ...float64) {
	h.t.Helper()
	for i := range want {
		if math.Abs(want[i]-got[i]) > 2e-4 {
			h.t.Fatalf("%s in %v, at %v: got %v, want %v", of, w, h.now(), got, want)
		}
	}
}

// The oracle of TestUsageIsThatOfTheLogOfChanges shares no code with the accounting.
//
//make:test-drawn
func TestUsageIsThatOfTheLogOfChanges(t *testing.T) {
	count := 12
	if number, err := strconv.Atoi(os.Getenv("HISTORIES")); err == nil {
		count = number
	}
	for name, database := range map[string]func(t *testing.T) string{
		"SQLite":  func(*testing.T) string { return "" },
		"MariaDB": func(t *testing.T) string { return labtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			database(t) // skips the test without a lab
			did := make(map[string]int)
			for seed := range count {
				t.Run(fmt.Sprint("history ", seed), func(t *testing.T) {
					h := history{
						cloud: start(t, setup{connection: database(t)}), t: t, chance: mathrand.New(mathrand.NewPCG(uint64(seed), 41)),
						trails: make(map[string][]reservation.Change), purged: make(map[string]bool), did: did,
					}
					for range 60 {
						if h.step(); h.chance.IntN(4) == 0 {
							h.check()
							did["report"]++
						}
					}
				})
			}
			t.Logf("%v", did)
			for _, what := range []string{"book", "maintain", "resize", "retime", "move", "cancel", "heal", "wait", "purge"} {
				if did[what] == 0 && count >= 12 {
					t.Errorf("no history has %q: %v", what, slices.Sorted(maps.Keys(did)))
				}
			}
		})
	}
}

// server are the options of a store on a database server.
func server(connection string) store.Options {
	return store.Options{Connection: connection, Patience: 30 * time.Second, Retries: -1, LongestWait: time.Second, NewToken: rand.Text}
}

// What happens at other times, or to nobody's claims, changes the versions but not the answer.
func TestAnAnswerThatStaysTheSameKeepsItsTag(t *testing.T) {
	c := start(t, setup{})
	for name, path := range map[string]string{
		"later": "/v1/calendar?start=" + at(86400) + "&end=" + at(90000), "past": "/v1/calendar?start=" + at(-7200) + "&end=" + at(-3600),
		"another host": "/v1/calendar?host=C&start=" + at(-3600) + "&end=" + at(7200),
	} {
		changed := c.demo.again(path, func() {
			r := c.demo.book(`{"name": "r", "duration": 600, "host_properties": ["=", "$name", "A"]}`)
			c.wait(60)
			c.demo.delete("/v1/reservations/" + r.ID)
		})
		if changed {
			t.Errorf("%s: the answer counts as changed", name)
		}
	}
}

// Three hosts were held for an hour of a day. A report over a part of that day has that part of them.
func TestAPurgeKeepsTheSumsOfDaysAndTells(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "r", "quantity": 3, "duration": 3600}`)
	c.wait(0)
	c.wait(3600)
	c.wait(2 * 86400)
	report := func(from, to int64) v1.Usage {
		return want[v1.Usage](t, c.admin.get("/v1/usage?start="+at(from)+"&end="+at(to)), http.StatusOK)
	}
	const midnight, day = -12 * 3600, 86400
	before := report(midnight, midnight+day)
	path := "/v1/calendar?start=" + at(midnight) + "&end=" + at(midnight+day)
	purge := func() {
		if n, err := c.store.Purge(t.Context(), job.Lease{}, c.now(), false, 10, nil); n != 1 || err != nil {
			t.Fatalf("purged %d: %v", n, err)
		}
	}
	if !c.demo.again(path, purge) {
		t.Error("the calendar has the tag from before the purge")
	}
	calendar := want[v1.Calendar](t, c.demo.get(path), http.StatusOK)
	if calendar.KeptFrom == nil || !calendar.KeptFrom.Equal(noon.Add(3600).Time()) {
		t.Errorf("the calendar is kept from %v on", calendar.KeptFrom)
	}
	after := report(midnight, midnight+day)
	if after.KeptFrom == nil || !after.KeptFrom.Equal(*calendar.KeptFrom) {
		t.Errorf("usage has sums until %v", after.KeptFrom)
	}
	after.KeptFrom = nil
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("usage of the day (-before +after the purge):\n%s", diff)
	}
	for _, part := range []struct {
		from, to int64
		reserved float64
	}{{midnight, 0, 1.5}, {0, midnight + day, 1.5}, {3600, 3 * 3600, 0.25}, {midnight - day, midnight, 0}, {midnight + day, 2 * day, 0}} {
		if got := report(part.from, part.to).Total.Reserved; got != part.reserved {
			t.Errorf("from %s to %s %v host-hours are reserved, want %v", at(part.from), at(part.to), got, part.reserved)
		}
	}
}
