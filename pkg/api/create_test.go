// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestCreateAnswersWithTheReservationAndWhereItIs(t *testing.T) {
	c := start(t, setup{})
	a := c.admin.post("/v1/reservations", fmt.Sprintf(`{"name": "training", "quantity": 2, "start_time": %q, "duration": "2h30m"}`, at(3600)))
	r := want[v1.Reservation](t, a, http.StatusCreated)
	wantReservation := v1.Reservation{
		ID: r.ID, Name: "training", ProjectID: "demo", UserID: "demo-user", Kind: "host", Status: "pending",
		Start: noon.Add(3600).Time(), End: noon.Add(3600 + 9000).Time(), Quantity: 2, Policy: "first-fit",
		Hosts: []string{"A", "B"}, OnEnd: "delete", BeforeEnd: 3600, CreatedAt: noon.Time(), UpdatedAt: noon.Time(),
		Events: []v1.Event{
			{Type: "created", Time: noon.Time(), State: "done", DoneAt: new(noon.Time())},
			{Type: "start", Time: noon.Add(3600).Time(), State: "pending"},
			{Type: "before_end", Time: noon.Add(9000).Time(), State: "pending"},
			{Type: "end", Time: noon.Add(12600).Time(), State: "pending"},
		},
	}
	if diff := cmp.Diff(wantReservation, r); diff != "" {
		t.Errorf("reservation (-want +got):\n%s", diff)
	}
	if got, want := a.header.Get("Location"), "/v1/reservations/"+r.ID; got != want {
		t.Errorf("Location is %q, want %q", got, want)
	}
	shown := want[v1.Reservation](t, c.admin.get(a.header.Get("Location")), http.StatusOK)
	if diff := cmp.Diff(r, shown); diff != "" {
		t.Errorf("shown otherwise than created (-created +shown):\n%s", diff)
	}
}

func TestWhatARequestSaysIsKept(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(fmt.Sprintf(`{
		"name": "<web> & co", "kind": "instance", "quantity": 3, "resources": {"vcpus": 4, "memory_mb": 1024, "disk_gb": 10},
		"affinity": "different", "image": "debian-12", "on_end": "shelve", "before_end": "10m", "policy": "first-fit",
		"host_properties": ["or", ["=", "$name", "A"], [">=", "$vcpus", 8]], "start_time": %q, "end_time": %q}`, at(60), at(7260)))
	kept := v1.Reservation{
		Name: "<web> & co", Kind: "instance", Quantity: 3, Resources: &v1.Resources{VCPUs: 4, MemoryMB: 1024, DiskGB: 10},
		Affinity: "different", Image: "debian-12", OnEnd: "shelve", BeforeEnd: 600, Policy: "first-fit", Status: "pending",
		HostProperties: json.RawMessage(`["or",["=","$name","A"],[">=","$vcpus",8]]`),
		Start:          noon.Add(60).Time(), End: noon.Add(7260).Time(), Hosts: []string{"A", "B", "C"}, ProjectID: "demo", UserID: "demo-user",
	}
	left := cmpopts.IgnoreFields(v1.Reservation{}, "ID", "Events", "CreatedAt", "UpdatedAt")
	if diff := cmp.Diff(kept, r, left); diff != "" {
		t.Errorf("reservation (-want +got):\n%s", diff)
	}
}

func TestNullIsAsGoodAsAbsent(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(`{"name": "r", "duration": 60, "kind": null, "host_properties": null, "start_time": null, "end_time": null,
		"quantity": null, "policy": null, "resources": null, "flavor": null, "affinity": null, "image": null, "on_end": null, "before_end": null}`)
	if r.Kind != "host" || r.Quantity != 1 || r.Policy != "first-fit" || r.OnEnd != "delete" || r.BeforeEnd != 30 || r.HostProperties != nil {
		t.Errorf("got %+v, want the defaults", r)
	}
}

func TestTheConfiguredWarningComesNoEarlierThanHalfOfTheReservation(t *testing.T) {
	for body, want := range map[string]v1.Duration{
		`{"name": "r", "duration": "10m"}`:                     300,
		`{"name": "r", "duration": "10m", "before_end": "9m"}`: 540, // as requested
		`{"name": "r", "duration": "10m", "before_end": "0s"}`: 0,
		`{"name": "r", "duration": "2h"}`:                      3600,
		`{"name": "r", "duration": "3h"}`:                      3600, // as configured
		fmt.Sprintf(`{"name": "r", "end_time": %q}`, at(1200)): 600,
	} {
		c := start(t, setup{})
		r := c.admin.book(body)
		if r.BeforeEnd != want {
			t.Errorf("%s: the warning comes %d s before the end, want %d", body, r.BeforeEnd, want)
		}
		if i := slices.IndexFunc(r.Events, func(e v1.Event) bool { return e.Type == "before_end" }); (i >= 0) != (want > 0) ||
			i >= 0 && !r.Events[i].Time.Equal(r.End.Add(-time.Duration(want)*time.Second)) {
			t.Errorf("%s: events %+v", body, r.Events)
		}
	}
}

func TestADryRunIsTheBookingWithoutBooking(t *testing.T) {
	for name, who := range map[string]func(*cloud) caller{
		"admin":  func(c *cloud) caller { return c.admin },
		"tenant": func(c *cloud) caller { return c.demo },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{})
			c.other.book(`{"name": "r", "duration": 600}`)
			before := c.stored()
			body := fmt.Sprintf(`{"name": "r", "quantity": 2, "duration": 600, "end_time": %q, "host_properties": ["!=", "$name", "C"]}`, at(3600))
			offer := want[v1.OfferAnswer](t, who(c).post("/v1/reservations?dry_run=true", body), http.StatusOK).Offer
			if diff := cmp.Diff(before, c.stored()); diff != "" {
				t.Errorf("the dry run stored something:\n%s", diff)
			}
			r := who(c).book(body)
			booked := v1.Offer{Start: r.Start, End: r.End, Quantity: r.Quantity, Kind: r.Kind, Policy: r.Policy, Hosts: r.Hosts, Matched: 2}
			if diff := cmp.Diff(booked, offer); diff != "" {
				t.Errorf("offered otherwise than booked (-booked +offered):\n%s", diff)
			}
		})
	}
}

func TestADryRunIsRefusedAsTheBookingIs(t *testing.T) {
	c := start(t, setup{})
	body := `{"name": "r", "quantity": 4, "duration": 60}`
	booked := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", body), http.StatusConflict)
	offered := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations?dry_run=true", body), http.StatusConflict)
	if diff := cmp.Diff(booked.Refusal, offered.Refusal); diff != "" {
		t.Errorf("refused otherwise (-booking +dry run):\n%s", diff)
	}
}

// Check A004-7 of paper 004: B is reserved in [100,150); the request is for two hosts for 60 in
// [100,200).
func TestARequestGetsTheHostsThatAreFreeInItsWindow(t *testing.T) {
	c := start(t, setup{})
	c.other.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q, "host_properties": ["=", "$name", "B"]}`, at(100), at(150)))
	request := func(end int64) string {
		return fmt.Sprintf(`{"name": "r", "quantity": 2, "duration": 60, "start_time": %q, "end_time": %q}`, at(100), at(end))
	}
	first := c.admin.book(request(200))
	if diff := cmp.Diff([]string{"A", "C"}, first.Hosts); diff != "" || !first.Start.Equal(noon.Add(100).Time()) {
		t.Errorf("got %v from %v, want A and C from 100 on", first.Hosts, first.Start)
	}
	refused := want[v1.ErrorAnswer](t, c.admin.post("/v1/reservations", request(200)), http.StatusConflict)
	if got := refused.Refusal.EarliestStart; got == nil || !got.Equal(noon.Add(160).Time()) {
		t.Errorf("the earliest start is %v, want 160", got)
	}
	if second := c.admin.book(request(230)); !second.Start.Equal(noon.Add(160).Time()) {
		t.Errorf("with more time it starts at %v, want 160", second.Start)
	}
}

func TestARefusalSaysWhatStandsInTheWay(t *testing.T) {
	limits := planning.Limits{Duration: 86400, StartAhead: 864000, Hosts: 4, HostSeconds: 80 * 3600}
	busy := fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 3600}`, at(600))
	for name, test := range map[string]struct {
		first, body string
		want        v1.Refusal
	}{
		"more than the pool has": {
			body: `{"name": "r", "quantity": 4, "duration": 3600}`,
			want: v1.Refusal{Constraint: "pool", Matched: 3, Free: 3, LargestQuantity: 3},
		},
		"more than match": {
			body: `{"name": "r", "quantity": 2, "duration": 3600, "host_properties": ["=", "$name", "A"]}`,
			want: v1.Refusal{Constraint: "host_properties", Matched: 1, Free: 1, LargestQuantity: 1},
		},
		"a property that no host has": {
			body: `{"name": "r", "duration": 3600, "host_properties": ["=", "$gpuu", "a100"]}`,
			want: v1.Refusal{Constraint: "host_properties"},
		},
		"more than are free": {
			first: busy,
			body:  fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 3600}`, at(0)),
			want: v1.Refusal{
				Constraint: "free_hosts", Matched: 3, Free: 1, LargestQuantity: 1, EarliestStart: new(noon.Add(4200).Time()),
				BlockedBy: []v1.Block{
					{Host: "A", Start: noon.Add(600).Time(), End: noon.Add(4200).Time()},
					{Host: "B", Start: noon.Add(600).Time(), End: noon.Add(4200).Time()},
				},
			},
		},
		"longer than allowed": {
			body: `{"name": "r", "duration": "25h"}`,
			want: v1.Refusal{Constraint: "max_duration", Matched: 3, Free: 3},
		},
		"farther ahead than allowed": {
			body: fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 60}`, at(864001)),
			want: v1.Refusal{Constraint: "max_start_ahead", Matched: 3, Free: 3},
		},
		"more hosts than the project may hold": {
			first: busy,
			body:  fmt.Sprintf(`{"name": "r", "quantity": 3, "start_time": %q, "duration": 3600}`, at(3600)),
			want: v1.Refusal{
				Constraint: "max_hosts_per_project", Matched: 3, Free: 1, LargestQuantity: 1, EarliestStart: new(noon.Add(4200).Time()),
			},
		},
		"more host-hours than the project may hold": {
			first: `{"name": "r", "quantity": 2, "duration": "24h"}`,
			body:  fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": "17h"}`, at(86400)),
			want:  v1.Refusal{Constraint: "max_host_hours_per_project", Matched: 3, Free: 3, LargestQuantity: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{limits: limits})
			if test.first != "" {
				c.demo.book(test.first)
			}
			before := c.stored()
			got := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", test.body), http.StatusConflict)
			if diff := cmp.Diff(&test.want, got.Refusal, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.stored()); diff != "" {
				t.Errorf("the refused request stored something:\n%s", diff)
			}
		})
	}
}

func TestWhatARefusalAdvisesIsAcceptedAndNoMore(t *testing.T) {
	c := start(t, setup{hosts: []inventory.Host{machine("A"), machine("B"), machine("C"), machine("D")}})
	c.other.book(fmt.Sprintf(`{"name": "r", "quantity": 3, "start_time": %q, "duration": 3600}`, at(600)))
	body := func(quantity int, start string) string {
		return fmt.Sprintf(`{"name": "r", "quantity": %d, "start_time": %q, "duration": 1800}`, quantity, start)
	}
	refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations?dry_run=true", body(2, at(900))), http.StatusConflict).Refusal
	for body, status := range map[string]int{
		body(refused.LargestQuantity, at(900)):                  http.StatusOK,
		body(refused.LargestQuantity+1, at(900)):                http.StatusConflict,
		body(2, span.At(*refused.EarliestStart).String()):       http.StatusOK,
		body(2, (span.At(*refused.EarliestStart) - 1).String()): http.StatusConflict,
	} {
		if a := c.demo.post("/v1/reservations?dry_run=true", body); a.status != status {
			t.Errorf("want %d for %s, got %v", status, body, a)
		}
	}
}
