package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

var withoutReservations = regexp.MustCompile(`(?s)"reservations": \[.*\]`)

// datedLease is a body for a lease of one host for an hour.
func datedLease(name string, begin span.Instant) string {
	const form = "2006-01-02 15:04"
	start, end := begin.Time(), begin.Time().Add(time.Hour)
	return strings.NewReplacer("2026-11-20 from", start.Format(form), "2026-11-20 to", end.Format(form)).Replace(hostLease(name, "from", "to", 1))
}

// The list keeps the JSON of leases. Whatever happens to them, by requests and by the clock, it has
// what each lease shows by itself.
func TestTheListHasEachLeaseAsItIs(t *testing.T) {
	c := start(t, setup{})
	chance := rand.New(rand.NewPCG(3, 7))
	var ids []string
	for step := range 60 {
		switch id := func() string { return ids[chance.IntN(len(ids))] }; {
		case len(ids) < 3 || chance.IntN(4) == 0:
			body := datedLease(fmt.Sprint("l", step), noon.Add(int64(step*600+60+chance.IntN(20)*600)))
			if chance.IntN(4) == 0 {
				body = withoutReservations.ReplaceAllString(body, `"reservations": []`)
			}
			a := c.demo.post("/v1/leases", body)
			if a.status == http.StatusCreated {
				ids = append(ids, leaseIn(t, a, http.StatusCreated).ID)
			}
		case chance.IntN(3) == 0:
			c.demo.send(http.MethodPut, "/v1/leases/"+id(), fmt.Sprintf(`{"name": "renamed %d"}`, step))
		case chance.IntN(5) == 0:
			c.demo.send(http.MethodDelete, "/v1/leases/"+id(), "")
		default:
			c.wait(600)
		}
		list := want[struct{ Leases []map[string]any }](t, c.demo.get("/v1/leases"), http.StatusOK).Leases
		for _, l := range list {
			alone := want[struct{ Lease map[string]any }](t, c.demo.get("/v1/leases/"+l["id"].(string)), http.StatusOK).Lease
			if diff := cmp.Diff(alone, l); diff != "" {
				t.Fatalf("after %d steps, the list differs from the lease (-lease +list):\n%s", step+1, diff)
			}
		}
	}
	if len(ids) < 10 {
		t.Errorf("only %d leases were made", len(ids))
	}
}

// BenchmarkListLeases lists 3,000 leases on 1,000 hosts again and again, and makes one.
func BenchmarkListLeases(b *testing.B) {
	var hosts []inventory.Host
	for i := range 1000 {
		hosts = append(hosts, machine(fmt.Sprintf("host-%04d", i)))
	}
	c := start(b, setup{hosts: hosts})
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
	b.Run("create", func(b *testing.B) {
		for minute := 0; b.Loop(); minute++ {
			book(minute % 3000)
		}
	})
}
