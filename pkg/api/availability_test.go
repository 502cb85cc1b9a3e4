// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const week = 7 * 24 * 3600

func window(start, latest, end int64, free int) v1.Window {
	return v1.Window{Start: noon.Add(start).Time(), LatestStart: noon.Add(latest).Time(), End: noon.Add(end).Time(), Free: free}
}

func TestAvailabilityIsTheWindowsWithEnoughHosts(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 3600}`, at(3600))) // A and B
	c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600}`, at(7200)))                // A
	for query, answer := range map[string]v1.Availability{
		"duration=600": {Matched: 3, Windows: []v1.Window{window(0, week-600, week, 3)}},
		"duration=10m&quantity=2": {Matched: 3, Windows: []v1.Window{
			window(0, 3000, 3600, 3), window(7200, week-600, week, 2),
		}},
		"duration=600&quantity=3&end=" + at(20000): {Matched: 3, Windows: []v1.Window{
			window(0, 3000, 3600, 3), window(10800, 19400, 20000, 3),
		}},
		"duration=600&quantity=3&start=" + at(3001) + "&end=" + at(11401): {Matched: 3, Windows: []v1.Window{window(10800, 10801, 11401, 3)}},
		"duration=600&quantity=4":         {Matched: 3, Windows: []v1.Window{}},
		"duration=3600&end=" + at(3600):   {Matched: 3, Windows: []v1.Window{window(0, 0, 3600, 3)}},
		"duration=2w":                     {Matched: 3, Windows: []v1.Window{window(0, 0, 2*week, 1)}}, // C
		"duration=600&start=" + at(20000): {Matched: 3, Windows: []v1.Window{window(20000, 20000+week-600, 20000+week, 3)}},
		"duration=600&end=" + at(600) + `&host_properties=` + url.QueryEscape(`["in", "$name", "A", "B"]`): {
			Matched: 2, Windows: []v1.Window{window(0, 0, 600, 2)},
		},
		"duration=600&host_properties=" + url.QueryEscape(`["=", "$gpuu", 1]`): {
			Windows: []v1.Window{}, UnknownProperties: []string{"gpuu"},
		},
	} {
		got := want[v1.Availability](t, c.demo.get("/v1/availability?"+query), http.StatusOK)
		if diff := cmp.Diff(answer, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestAQuestionThatNoBookingMayAskIsRefusedAsTheBookingWouldBe(t *testing.T) {
	c := start(t, setup{limits: planning.Limits{Duration: 600, StartAhead: 7200, Hosts: 2}})
	for query, constraint := range map[string]string{
		"duration=601": "max_duration", "duration=600&start=" + at(7201): "max_start_ahead",
		"duration=600&quantity=3": "max_hosts_per_project",
	} {
		a := c.demo.get("/v1/availability?" + query)
		wantError(t, a, http.StatusConflict)
		if !strings.Contains(string(a.body), constraint) {
			t.Errorf("%s: %s, want %s", query, a.body, constraint)
		}
	}
	got := want[v1.Availability](t, c.demo.get("/v1/availability?duration=600"), http.StatusOK)
	if diff := cmp.Diff([]v1.Window{window(0, 7200, 7800, 3)}, got.Windows); diff != "" {
		t.Errorf("windows up to the last start (-want +got):\n%s", diff)
	}
}

func TestAWindowOfTheAvailabilityCanBeBooked(t *testing.T) {
	c := start(t, setup{})
	c.other.book(fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 3600}`, at(3600)))
	got := want[v1.Availability](t, c.demo.get("/v1/availability?duration=30m&quantity=2&end="+at(10000)), http.StatusOK)
	if len(got.Windows) != 2 {
		t.Fatalf("got %+v, want one before and one after", got)
	}
	before, after := got.Windows[0], got.Windows[1]
	for start, status := range map[span.Instant]int{
		span.At(before.Start): http.StatusOK, span.At(before.LatestStart): http.StatusOK, span.At(before.LatestStart) + 1: http.StatusConflict,
		span.At(after.Start) - 1: http.StatusConflict, span.At(after.Start): http.StatusOK, span.At(after.LatestStart): http.StatusOK,
	} {
		body := fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 1800}`, start)
		if a := c.demo.post("/v1/reservations?dry_run=true", body); a.status != status {
			t.Errorf("from %v: want %d, got %v", start, status, a)
		}
	}
}

// The service looks when other decisions are made, which is later than the request.
func TestAvailabilityForAWeekCountsFromTheInstantAtWhichTheServiceLooks(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		now := o.Now
		o.Now = func() span.Instant { return now() - 1 }
	}})
	got := want[v1.Availability](t, c.demo.get("/v1/availability?duration=168h"), http.StatusOK)
	if diff := cmp.Diff([]v1.Window{window(0, 0, week, 3)}, got.Windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

func TestASleepingHostIsAvailableWhenItHasBooted(t *testing.T) {
	asleep, broken := machine("A"), machine("B")
	asleep.Power, asleep.BootSeconds = inventory.PowerSleeping, 300
	broken.Power = inventory.PowerFailed
	c := start(t, setup{hosts: []inventory.Host{asleep, broken}})
	got := want[v1.Availability](t, c.demo.get("/v1/availability?duration=60&end="+at(1000)), http.StatusOK)
	if diff := cmp.Diff(v1.Availability{Matched: 2, Windows: []v1.Window{window(300, 940, 1000, 1)}}, got); diff != "" {
		t.Errorf("availability (-want +got):\n%s", diff)
	}
}

func TestTheCalendarHasTheClaimsOfEachHostInTheTimeAskedFor(t *testing.T) {
	c := start(t, setup{})
	first := c.demo.book(fmt.Sprintf(`{"name": "first", "quantity": 2, "start_time": %q, "duration": 600}`, at(3600)))
	second := c.demo.book(fmt.Sprintf(`{"name": "second", "start_time": %q, "duration": 600}`, at(600)))
	vms := c.demo.book(fmt.Sprintf(
		`{"name": "vms", "kind": "instance", "quantity": 3, "resources": {"vcpus": 2}, "start_time": %q, "duration": 600, "host_properties": ["=", "$name", "C"]}`, at(1000)))
	claim := func(r v1.Reservation, instances int) v1.Claim {
		share := 1.0
		if instances > 0 {
			share = float64(2*instances) / 8 // vCPUs
		}
		return v1.Claim{
			Start: r.Start, End: r.End, Kind: r.Kind, Instances: instances, Share: share, Mine: true, Status: "pending", OnEnd: "delete",
			ReservationID: r.ID, Name: r.Name, ProjectID: "demo",
		}
	}
	none := []v1.Claim{}
	for query, hosts := range map[string][]v1.HostCalendar{
		"": {
			{Host: "A", Claims: []v1.Claim{claim(second, 0), claim(first, 0)}},
			{Host: "B", Claims: []v1.Claim{claim(first, 0)}}, {Host: "C", Claims: []v1.Claim{claim(vms, 3)}},
		},
		"?host=B,C":       {{Host: "B", Claims: []v1.Claim{claim(first, 0)}}, {Host: "C", Claims: []v1.Claim{claim(vms, 3)}}},
		"?host=B&host=B":  {{Host: "B", Claims: []v1.Claim{claim(first, 0)}}},
		"?end=" + at(600): {{Host: "A", Claims: none}, {Host: "B", Claims: none}, {Host: "C", Claims: none}},
		"?start=" + at(1199) + "&end=" + at(1200) + "&host=A": {{Host: "A", Claims: []v1.Claim{claim(second, 0)}}},
		"?start=" + at(1200) + "&end=" + at(3600) + "&host=A": {{Host: "A", Claims: none}},
	} {
		got := want[v1.Calendar](t, c.admin.get("/v1/calendar"+query), http.StatusOK)
		if diff := cmp.Diff(hosts, got.Hosts); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	week := want[v1.Calendar](t, c.admin.get("/v1/calendar?start="+at(60)), http.StatusOK)
	if week.Start != noon.Add(60).Time() || week.End != noon.Add(60+7*24*3600).Time() {
		t.Errorf("without an end it shows [%v, %v), want a week", week.Start, week.End)
	}
}
