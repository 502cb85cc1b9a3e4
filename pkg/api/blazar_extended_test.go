// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// newer sends a request of microversion 1.1.
func (p caller) newer(method, path, body string) answer {
	p.cloud.t.Helper()
	return p.send(method, path, body, "OpenStack-API-Version", "reservation 1.1")
}

// leaseOffer is an offer as clients read it.
type leaseOffer struct {
	Start        string `json:"start_date"`
	End          string `json:"end_date"`
	Reservations []struct {
		ID           string
		ResourceType string `json:"resource_type"`
		Quantity     int
		Hosts        []string
	}
}

func offerIn(t reporter, a answer) leaseOffer {
	t.Helper()
	return want[struct{ Offer leaseOffer }](t, a, http.StatusOK).Offer
}

// newerLease is a body for a lease of hosts from 12:10, with the keys of microversion 1.1.
func newerLease(most int, keys string) string {
	return fmt.Sprintf(`{"name": "l", "start_date": "2026-11-20 12:10", %s,
		"reservations": [{"resource_type": "physical:host", "min": 1, "max": %d, "hypervisor_properties": "", "resource_properties": ""}]}`, keys, most)
}

// onDay is a time of Blazar's answers on the day of the tests.
func onDay(hhmm string) string { return "2026-11-20T" + hhmm + ":00.000000" }

func TestALeaseHasADurationOrADeadline(t *testing.T) {
	c := start(t, setup{})
	c.other.lease(hostLease("theirs", "12:10", "13:00", 3))
	for _, tc := range []struct{ keys, start, end string }{
		{`"duration": 3600, "deadline": "2026-11-20 18:00"`, "13:00", "14:00"},
		{`"duration": "2h", "deadline": "2026-11-20T18:00:00Z"`, "13:00", "15:00"},
		{`"duration": "5400", "deadline": "2026-11-20 14:30"`, "13:00", "14:30"},
	} {
		if l := leaseIn(t, c.demo.newer("POST", "/v1/leases", newerLease(1, tc.keys)), http.StatusCreated); l.StartDate != onDay(tc.start) || l.EndDate != onDay(tc.end) {
			t.Errorf("%s: from %s to %s", tc.keys, l.StartDate, l.EndDate)
		}
	}
	fixed := strings.Replace(newerLease(3, `"duration": "30m"`), "12:10", "16:00", 1)
	if l := leaseIn(t, c.demo.newer("POST", "/v1/leases", fixed), http.StatusCreated); l.StartDate != onDay("16:00") || l.EndDate != onDay("16:30") {
		t.Errorf("with a duration only: from %s to %s", l.StartDate, l.EndDate)
	}
	if warned := leaseIn(t, c.demo.newer("POST", "/v1/leases", newerLease(1, `"duration": "3h", "deadline": "2026-11-21 12:00"`)), http.StatusCreated); *warned.Events[1].Time == "" ||
		warned.Events[1].Type != "before_end_lease" {
		t.Errorf("there is no warning: %+v", warned.Events)
	}
}

func TestALeaseWithoutRoomBeforeItsDeadlineIsRefusedWithWhatWouldBePossible(t *testing.T) {
	c := start(t, setup{})
	c.other.lease(hostLease("theirs", "12:00", "15:00", 2))
	f := wantFault(t, c.demo.newer("POST", "/v1/leases", strings.Replace(newerLease(2, `"duration": "1h", "deadline": "2026-11-20 15:30"`), `"min": 1`, `"min": 2`, 1)),
		http.StatusConflict, "Not enough hosts available: no start between")
	if f.Refusal["constraint"] != "free_hosts" || f.Refusal["earliest_start"] != "2026-11-20T15:00:00Z" || f.Refusal["largest_quantity"] != 1.0 {
		t.Errorf("the refusal is %v", f.Refusal)
	}
}

func TestMicroversion11IsChecked(t *testing.T) {
	c := start(t, setup{})
	for keys, says := range map[string]string{
		`"deadline": "2026-11-20 18:00"`: "Missing parameter duration",
		`"duration": 0`:                  "Malformed parameter duration",
		`"duration": "soon"`:             "Malformed parameter duration",
		`"duration": -5`:                 "Malformed parameter duration",
		`"duration": 1.5`:                "Malformed parameter duration",
		`"duration": [1]`:                "Malformed parameter duration",
		`"duration": "1h", "end_date": "2026-11-20 18:00"`:                                           "Malformed parameter end_date",
		`"duration": "1h", "deadline": "soon"`:                                                       "soon is an invalid date",
		`"duration": "1h", "deadline": "2026-11-20 13:00"`:                                           "is less than 1h0m0s after",
		`"duration": "1h", "deadline": "2026-11-20 12:00"`:                                           "End date must be later than start date.",
		`"duration": "1h", "deadline": "2026-11-20 18:00", "before_end_date": "2026-11-20 13:00"`:    "Malformed parameter before_end_date",
		`"end_date": "2026-11-20 18:00", "on_end": "explode"`:                                        "Malformed parameter on_end (must be delete, stop, shelve, leave)",
		`"end_date": "2026-11-20 18:00", "on_end": 5`:                                                "Malformed parameter on_end",
		`"end_date": "2026-11-20 18:00", "dry_run": "perhaps"`:                                       "Malformed parameter dry_run",
		`"duration": "1h", "dry_run": true, "before_end_date": "2026-11-20 19:00"`:                   "Datetime is out of lease limits",
		`"duration": null, "deadline": null, "on_end": null, "dry_run": null, "policy": "first-fit"`: "Missing parameter end_date",
	} {
		status := http.StatusBadRequest
		if strings.HasPrefix(says, "Datetime") {
			status = http.StatusForbidden
		}
		wantFault(t, c.demo.newer("POST", "/v1/leases", newerLease(1, keys)), status, says)
	}
	if left := c.stored(); len(left) > 0 {
		t.Errorf("something is booked: %v", left)
	}
}

// newerKeys returns the keys of a schema that the document describes as from microversion 1.1, and the others, sorted. It
// goes into lists and alternatives.
func newerKeys(s *openapi3.SchemaRef) (newer, older []string) {
	for _, key := range slices.Sorted(maps.Keys(s.Value.Properties)) {
		inner := s.Value.Properties[key]
		if strings.HasPrefix(inner.Value.Description, "From microversion 1.1") {
			newer = append(newer, key)
			continue
		}
		older = append(older, key)
		n, o := newerKeys(inner)
		newer, older = append(newer, n...), append(older, o...)
	}
	for _, inner := range slices.Concat(s.Value.OneOf, openapi3.SchemaRefs{s.Value.Items}) {
		if inner != nil {
			n, o := newerKeys(inner)
			newer, older = append(newer, n...), append(older, o...)
		}
	}
	return unique(newer), unique(older)
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// keysIn returns the keys of all objects of an answer, sorted.
func keysIn(value any) (keys []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			keys = append(append(keys, key), keysIn(inner)...)
		}
	case []any:
		for _, inner := range value {
			keys = append(keys, keysIn(inner)...)
		}
	}
	return unique(keys)
}

// An object is no value of any key of a lease, so a key that is read refuses it.
func TestMicroversion10TakesNoKeyOfTheNewerOne(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	for call, path := range map[string]string{"POST /v1/leases": "/v1/leases", "PUT /v1/leases/{id}": "/v1/leases/" + l.ID, "PATCH /v1/leases/{id}": "/v1/leases/" + l.ID} {
		method, _, _ := strings.Cut(call, " ")
		accepted := func(version, key string) bool {
			body := map[string]any{"name": "m", "start_date": "2026-11-20 12:10", "end_date": "2026-11-20 13:00", "reservations": []any{}, key: map[string]any{"no": "value"}}
			a := c.demo.send(method, path, encode(t, body), "OpenStack-API-Version", version)
			return a.status < 300
		}
		schema := *openContract(t).bodyOf(call).Value
		newer, older := newerKeys(&openapi3.SchemaRef{Value: &openapi3.Schema{Properties: schema.Properties}})
		older = slices.DeleteFunc(older, func(key string) bool { return schema.Properties[key] == nil }) // of a reservation
		if len(newer) == 0 || len(older) == 0 {
			t.Fatalf("%s: newer are %v, older %v", call, newer, older)
		}
		for _, key := range newer {
			if !accepted("reservation 1.0", key) || accepted("reservation 1.1", key) {
				t.Errorf("%s: microversion 1.0 must ignore %s, and 1.1 must read it", call, key)
			}
		}
		for _, key := range older {
			if accepted("reservation 1.0", key) {
				t.Errorf("%s: microversion 1.0 ignores %s; describe it as from microversion 1.1", call, key)
			}
		}
	}
}

func TestMicroversion10ShowsNoKeyOfTheNewerOne(t *testing.T) {
	c := start(t, setup{})
	enrolled(c, "198.51.100.20")
	lease := hostLease("l", "12:10", "13:00", 1)
	const more = `, {"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "amount": 1, "affinity": null, "resource_properties": ""},
		{"resource_type": "virtual:floatingip", "network_id": "outside", "amount": 1}]}`
	l := c.demo.lease(strings.TrimSuffix(lease, "]}") + more)
	newer, older := newerKeys(openContract(t).blazar.Components.Schemas["Lease"])
	for _, path := range []string{"/v1/leases", "/v1/leases/" + l.ID} {
		before, now := keysIn(decode[any](t, c.demo.get(path))), keysIn(decode[any](t, c.demo.newer("GET", path, "")))
		before = slices.DeleteFunc(before, func(key string) bool { return key == "lease" || key == "leases" })
		if diff := cmp.Diff(older, before); diff != "" {
			t.Errorf("GET %s at 1.0 (-document +answer):\n%s", path, diff)
		}
		added := slices.DeleteFunc(now, func(key string) bool { return slices.Contains(older, key) || key == "lease" || key == "leases" })
		if diff := cmp.Diff(newer, added); diff != "" {
			t.Errorf("GET %s: what 1.1 adds (-document +answer):\n%s", path, diff)
		}
	}
}

func TestUnderMicroversion10TheNewKeysAreUnknown(t *testing.T) {
	c := start(t, setup{})
	const all = `"duration": 5, "deadline": "soon", "on_end": "explode", "dry_run": true`
	l := leaseIn(t, c.demo.post("/v1/leases", newerLease(1, `"end_date": "2026-11-20 13:00", `+all)), http.StatusCreated)
	if l.EndDate != onDay("13:00") {
		t.Errorf("it ends at %s", l.EndDate)
	}
	path := "/v1/leases/" + l.ID
	if now := leaseIn(t, c.demo.put(path, `{"name": "renamed", `+all+`}`), http.StatusOK); now.Name != "renamed" || now.EndDate != l.EndDate {
		t.Errorf("after a change, it is %+v", now)
	}
	wantFault(t, c.demo.post("/v1/leases", newerLease(1, `"duration": 3600`)), http.StatusBadRequest, "Missing parameter end_date")
	for _, get := range []string{path, "/v1/leases"} {
		older, newer := c.demo.get(get), c.demo.newer("GET", get, "")
		if has := strings.Contains(older.String(), "on_end"); has {
			t.Errorf("%s of 1.0 has on_end: %v", get, older)
		}
		if reduced := strings.ReplaceAll(string(newer.body), `"on_end":"delete",`, ""); reduced != string(older.body) || reduced == string(newer.body) {
			t.Errorf("%s: 1.1 answers %s\n1.0 answers %s", get, newer.body, older.body)
		}
	}
}

func TestTheOwnerChoosesWhatHappensAtTheEndOfALease(t *testing.T) {
	c := start(t, setup{})
	onEnd := func(a answer, status int) any {
		return leaseIn(t, a, status).Reservations[0]["on_end"]
	}
	made := c.demo.newer("POST", "/v1/leases", newerLease(1, `"end_date": "2026-11-20 13:00", "on_end": "shelve"`))
	path := "/v1/leases/" + leaseIn(t, made, http.StatusCreated).ID
	if got := onEnd(made, http.StatusCreated); got != "shelve" {
		t.Errorf("a new lease has on_end %v", got)
	}
	if got := onEnd(c.demo.newer("PUT", path, `{"on_end": "leave"}`), http.StatusOK); got != "leave" {
		t.Errorf("a changed lease has on_end %v", got)
	}
	if stored := c.stored(); stored[0].OnEnd != "leave" {
		t.Errorf("stored is %q", stored[0].OnEnd)
	}
	wantFault(t, c.demo.newer("PUT", path, `{"on_end": "explode"}`), http.StatusBadRequest, "Malformed parameter on_end")
}

func TestADryRunOffersALeaseAndBooksNothing(t *testing.T) {
	c, _ := startWithNova(t, 0) // which refuses to create a server group
	body := strings.Replace(newerLease(2, `"duration": "1h", "deadline": "2026-11-20 18:00", "dry_run": true`), `"reservations": [`,
		`"reservations": [{"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "amount": 3, "affinity": true}, `, 1)
	for _, by := range []struct {
		caller
		hosts [2][]string
	}{{c.demo, [2][]string{{}, {}}}, {c.admin, [2][]string{{"A"}, {"B", "C"}}}} {
		o := offerIn(t, by.newer("POST", "/v1/leases", body))
		if o.Start != onDay("12:10") || o.End != onDay("13:10") || len(o.Reservations) != 2 {
			t.Fatalf("%s is offered %+v", by.token, o)
		}
		for i, r := range o.Reservations {
			if r.ID != "" || r.Quantity != []int{3, 2}[i] || r.ResourceType != []string{"virtual:instance", "physical:host"}[i] || !slices.Equal(r.Hosts, by.hosts[i]) {
				t.Errorf("%s is offered %+v", by.token, r)
			}
		}
	}
	if left := c.stored(); len(left) > 0 {
		t.Errorf("something is booked: %v", left)
	}
	wantFault(t, c.reader.newer("POST", "/v1/leases", body), http.StatusForbidden, "blazar:leases:post")
	wantFault(t, c.demo.newer("POST", "/v1/leases", strings.Replace(body, `"min": 1, "max": 2`, `"min": 4, "max": 4`, 1)), http.StatusConflict, "Not enough hosts available")
}

func TestADryRunOfAChangeChangesNothing(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	native := c.demo.book(`{"name": "native", "quantity": 1, "start_time": "2026-11-20T12:10:00Z", "duration": 3000}`)
	c.other.lease(hostLease("theirs", "13:00", "14:00", 3))
	for _, id := range []string{l.ID, native.ID} {
		path := "/v1/leases/" + id
		before, stored := string(c.admin.get(path).body), c.stored()
		o := offerIn(t, c.admin.newer("PUT", path, `{"deadline": "2026-11-20 18:00", "duration": "1h", "dry_run": true}`))
		if o.Start != onDay("14:00") || o.End != onDay("15:00") || len(o.Reservations) != 1 || o.Reservations[0].ID == "" || len(o.Reservations[0].Hosts) != 1 {
			t.Errorf("the offer is %+v", o)
		}
		if after := string(c.admin.get(path).body); after != before {
			t.Errorf("the lease is %s, was %s", after, before)
		}
		if diff := cmp.Diff(stored, c.stored()); diff != "" {
			t.Errorf("stored (-before +after):\n%s", diff)
		}
		if now := leaseIn(t, c.demo.newer("PUT", path, `{"deadline": "2026-11-20 18:00", "duration": "1h"}`), http.StatusOK); now.StartDate != o.Start || now.EndDate != o.End {
			t.Errorf("it lasts from %s to %s, was offered %+v", now.StartDate, now.EndDate, o)
		}
	}
	wantFault(t, c.other.newer("PUT", "/v1/leases/"+l.ID, `{"dry_run": true}`), http.StatusForbidden, "blazar:leases:put")
}

// It has not begun at its end: its start waits to be carried out.
func TestTheOfferToEndAReservationThatHasNotBegunHasNothingOfIt(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "duration": 600}`)
	offer := offerIn(t, c.demo.newer("PUT", "/v1/leases/"+r.ID, `{"end_date": "2026-11-20 12:00", "dry_run": true}`))
	if len(offer.Reservations) != 1 || offer.Reservations[0].Quantity != 0 {
		t.Errorf("the offer is %+v, want a quantity of 0", offer)
	}
	leaseIn(t, c.demo.newer("PUT", "/v1/leases/"+r.ID, `{"end_date": "2026-11-20 12:00"}`), http.StatusOK)
	if r := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+r.ID), http.StatusOK); r.Status != "canceled" {
		t.Errorf("it is %s", r.Status)
	}
}
