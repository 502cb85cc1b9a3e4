// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

var withoutReservations = regexp.MustCompile(`(?s)"reservations": \[.*\]`)

// datedLease is a body for a lease of one host for an hour.
func datedLease(name string, begin span.Instant) string {
	const form = "2006-01-02 15:04"
	start, end := begin.Time(), begin.Time().Add(time.Hour)
	return strings.NewReplacer("2026-11-20 from", start.Format(form), "2026-11-20 to", end.Format(form)).Replace(hostLease(name, "from", "to", 1))
}

// The list keeps the JSON of leases. Whatever happens to them, by requests and by the clock, it has
// all of them, in order, as each lease shows by itself, and so has that of another replica.
func TestTheListHasEachLeaseAsItIs(t *testing.T) {
	var second api.Options
	c := start(t, setup{adjust: func(o *api.Options) {
		second = *o
		second.Registry = prometheus.NewRegistry()
	}})
	replica := httptest.NewServer(api.New(second))
	t.Cleanup(replica.Close)
	chance := rand.New(rand.NewPCG(3, 7))
	var ids []string // of the leases that are not deleted
	for step := range 60 {
		switch at := chance.IntN(max(len(ids), 1)); {
		case len(ids) < 3 || chance.IntN(4) == 0:
			body := datedLease(fmt.Sprint("l", step), noon.Add(int64(step*600+60+chance.IntN(20)*600)))
			switch chance.IntN(4) {
			case 0:
				body = withoutReservations.ReplaceAllString(body, `"reservations": []`)
			case 1:
				body = withoutReservations.ReplaceAllStringFunc(body, func(one string) string {
					member := strings.TrimSuffix(strings.TrimPrefix(one, `"reservations": [`), "]")
					return `"reservations": [` + member + ", " + member + "]"
				})
			}
			if a := c.demo.post("/v1/leases", body); a.status == http.StatusCreated {
				ids = append(ids, leaseIn(t, a, http.StatusCreated).ID)
			}
		case chance.IntN(3) == 0:
			c.demo.send(http.MethodPut, "/v1/leases/"+ids[at], fmt.Sprintf(`{"name": "renamed %d"}`, step))
		case chance.IntN(5) == 0:
			if a := c.demo.send(http.MethodDelete, "/v1/leases/"+ids[at], ""); a.status == http.StatusNoContent {
				ids = slices.Delete(ids, at, at+1)
			}
		default:
			c.wait(600)
		}
		a := c.demo.get("/v1/leases")
		list := want[struct{ Leases []map[string]any }](t, a, http.StatusOK).Leases
		var each []map[string]any
		for _, id := range ids {
			each = append(each, alone(t, c, id))
		}
		slices.SortFunc(each, func(a, b map[string]any) int {
			return cmp.Or(strings.Compare(a["start_date"].(string), b["start_date"].(string)), strings.Compare(a["id"].(string), b["id"].(string)))
		})
		if diff := gocmp.Diff(each, list, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("after %d steps, the list differs from the leases (-leases +list):\n%s", step+1, diff)
		}
		there := c.demo
		there.cloud = &cloud{t: t, url: replica.URL}
		if _, b := there.exchange(http.MethodGet, "/v1/leases", ""); !bytes.Equal(b.body, a.body) {
			t.Fatalf("after %d steps, the other replica lists\n%s\nwant\n%s", step+1, b.body, a.body)
		}
	}
	if len(ids) < 10 {
		t.Errorf("only %d leases are left", len(ids))
	}
}

// alone returns a lease as it shows by itself.
func alone(t *testing.T, c *cloud, id string) map[string]any {
	t.Helper()
	return want[struct{ Lease map[string]any }](t, c.demo.get("/v1/leases/"+id), http.StatusOK).Lease
}

// countedLeases counts what is read of leases.
type countedLeases struct {
	reservation.LeaseReader
	states, whole, calls int
}

func (r *countedLeases) LeaseStates(ctx context.Context, q reservation.LeaseQuery) ([]reservation.LeaseState, error) {
	states, err := r.LeaseReader.LeaseStates(ctx, q)
	r.states, r.calls = r.states+len(states), r.calls+1
	return states, err
}

func (r *countedLeases) LeasesOf(ctx context.Context, ids []string) ([]reservation.LeaseRecord, error) {
	r.whole += len(ids)
	return r.LeaseReader.LeasesOf(ctx, ids)
}

func TestAListReadsOnlyWhatItShowsAndWhatChanged(t *testing.T) {
	var reads *countedLeases
	c := start(t, setup{adjust: func(o *api.Options) {
		reads = &countedLeases{LeaseReader: o.Leases}
		o.Leases = reads
	}})
	var ids []string
	for hour := range 30 {
		ids = append(ids, c.demo.lease(datedLease(fmt.Sprint("l", hour%10), noon.Add(int64(3600*(hour+1))))).ID)
	}
	foreign := c.other.lease(datedLease("l1", noon.Add(200*3600))).ID
	for _, step := range []struct {
		what          string
		query         string
		before        func()
		states, whole int
	}{
		{what: "the first list", states: 30, whole: 30},
		{what: "the next one", states: 30},
		{what: "a change of one", before: func() { c.demo.send(http.MethodPut, "/v1/leases/"+ids[4], `{"name": "renamed"}`) }, states: 30, whole: 1},
		{what: "a change of the times", before: func() {
			c.demo.send(http.MethodPut, "/v1/leases/"+ids[29], `{"end_date": "2026-11-22 12:00"}`)
		}, states: 30, whole: 1},
		{what: "a new one", before: func() { c.demo.lease(datedLease("new", noon.Add(100*3600))) }, states: 31, whole: 1},
		{what: "a deleted one", before: func() { c.demo.send(http.MethodDelete, "/v1/leases/"+ids[0], "") }, states: 30},
		{what: "another project's change", before: func() { c.other.send(http.MethodPut, "/v1/leases/"+foreign, `{"name": "x"}`) }, states: 30},
		{what: "a name", query: "?lease_name=l3", states: 3},
		{what: "an id", query: "?lease_id=" + ids[7], states: 1},
		{what: "an unknown name", query: "?lease_name=l33"},
		{what: "a page", query: "?limit=4", states: 5},
		{what: "a page of a name", query: "?lease_name=l3&limit=1", states: 2},
		{what: "a status", query: "?status=PENDING", states: 30},
	} {
		if step.before != nil {
			step.before()
		}
		reads.states, reads.whole, reads.calls = 0, 0, 0
		c.demo.leases(step.query)
		if reads.states != step.states || reads.whole != step.whole || reads.calls != 1 {
			t.Errorf("%s reads %d states in %d calls and %d leases, want %d, 1 and %d", step.what, reads.states, reads.calls, reads.whole, step.states, step.whole)
		}
	}
}

// vanishing deletes a lease after its state was read.
type vanishing struct {
	reservation.LeaseReader
	id string
}

func (r *vanishing) LeasesOf(ctx context.Context, ids []string) ([]reservation.LeaseRecord, error) {
	return r.LeaseReader.LeasesOf(ctx, slices.DeleteFunc(ids, func(id string) bool { return id == r.id }))
}

func TestAPageWithALeaseThatIsDeletedMeanwhileLeadsToTheNext(t *testing.T) {
	var gone *vanishing
	c := start(t, setup{adjust: func(o *api.Options) {
		gone = &vanishing{LeaseReader: o.Leases}
		o.Leases = gone
	}})
	var ids []string
	for hour := range 4 {
		ids = append(ids, c.demo.lease(datedLease("l", noon.Add(int64(3600*(hour+1))))).ID)
	}
	gone.id = ids[1]
	page := want[struct {
		Leases []blazarLease
		Links  []struct{ Href string } `json:"leases_links"`
	}](t, c.demo.get("/v1/leases?limit=2"), http.StatusOK)
	if len(page.Leases) != 1 || page.Leases[0].ID != ids[0] || len(page.Links) != 1 || !strings.Contains(page.Links[0].Href, "marker="+ids[1]) {
		t.Errorf("got %+v, want the first lease and a link to the third", page)
	}
}

// BenchmarkListLeases lists 3,000 leases on 1,000 hosts again and again, also as the first list of a
// replica, and makes one.
func BenchmarkListLeases(b *testing.B) {
	var hosts []inventory.Host
	for i := range 1000 {
		hosts = append(hosts, machine(fmt.Sprintf("host-%04d", i)))
	}
	var options api.Options
	c := start(b, setup{hosts: hosts, adjust: func(o *api.Options) { options = *o }})
	book := func(minute int) {
		if _, a := c.demo.exchange(http.MethodPost, "/v1/leases", datedLease("bench", noon.Add(int64(600+60*minute)))); a.status != http.StatusCreated {
			b.Fatal(a)
		}
	}
	for minute := range 3000 {
		book(minute)
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			c.demo.exchange(http.MethodGet, "/v1/leases", "")
		}
		var answer struct{ Leases []json.RawMessage }
		_, a := c.demo.exchange(http.MethodGet, "/v1/leases", "")
		if err := json.Unmarshal(a.body, &answer); err != nil || len(answer.Leases) < 3000 {
			b.Fatalf("%d leases, %v", len(answer.Leases), err)
		}
		b.ReportMetric(float64(len(a.body))/float64(len(answer.Leases)), "B/lease")
	})
	b.Run("first list", func(b *testing.B) {
		for b.Loop() {
			options.Registry = prometheus.NewRegistry()
			replica := httptest.NewServer(api.New(options))
			there := c.demo
			there.cloud = &cloud{t: b, url: replica.URL}
			there.exchange(http.MethodGet, "/v1/leases", "")
			replica.Close()
		}
	})
	b.Run("create", func(b *testing.B) {
		for minute := 0; b.Loop(); minute++ {
			book(minute % 3000)
		}
	})
}

func TestAListOfLeasesKnowsTheStatusesOfBlazar(t *testing.T) {
	c := start(t, setup{})
	c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	for status, count := range map[string]int{"PENDING": 1, "pending": 1, "Active": 0, "CREATING": 0, "": 1} {
		if found := c.demo.leases("?status=" + status); len(found) != count {
			t.Errorf("%q: there are %d leases, want %d", status, len(found), count)
		}
	}
	wantFault(t, c.demo.get("/v1/leases?status=pendin"), http.StatusBadRequest, `Malformed parameter status (there is no status "PENDIN"; did you mean "PENDING"?)`)
}
