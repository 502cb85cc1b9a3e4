// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestEachCombinationOfTimesHasItsMeaning(t *testing.T) {
	const hour = 3600
	last := int64(span.At(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)) - noon)
	for name, test := range map[string]struct {
		body                 string
		wantStart, wantUntil int64 // seconds after noon
	}{
		"start and duration":              {fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 1800}`, at(hour)), hour, hour + 1800},
		"start and end":                   {fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q}`, at(hour), at(4*hour)), hour, 4 * hour},
		"end and duration":                {fmt.Sprintf(`{"name": "r", "end_time": %q, "duration": 1800}`, at(4*hour)), 0, 1800},
		"end alone":                       {fmt.Sprintf(`{"name": "r", "end_time": %q}`, at(4*hour)), 0, 4 * hour},
		"duration alone":                  {`{"name": "r", "duration": 1800}`, 0, 1800},
		"all three":                       {fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q, "duration": 1800}`, at(hour), at(4*hour)), hour, hour + 1800},
		"a start at this very second":     {fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 1}`, at(0)), 0, 1},
		"a window as long as the stay":    {fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q, "duration": 1800}`, at(hour), at(hour+1800)), hour, hour + 1800},
		"a zone":                          {`{"name": "r", "start_time": "2026-11-20T15:00:00+02:00", "duration": 60}`, hour, hour + 60},
		"fractions of a second":           {`{"name": "r", "start_time": "2026-11-20T13:00:00.999Z", "end_time": "2026-11-20T13:01:00.001Z"}`, hour, hour + 60},
		"a duration in words":             {`{"name": "r", "duration": "1d2h3m4s"}`, 0, 86400 + 2*hour + 184},
		"a duration as text":              {`{"name": "r", "duration": "90"}`, 0, 90},
		"a duration in weeks":             {`{"name": "r", "duration": "1w"}`, 0, 7 * 86400},
		"the policy chooses in a window":  {fmt.Sprintf(`{"name": "r", "end_time": %q, "duration": 1800, "policy": "pe-best-fit"}`, at(4*hour)), 0, 1800},
		"the last second of the calendar": {`{"name": "r", "start_time": "8999-12-31T23:59:58Z", "end_time": "9000-01-01T00:00:00Z"}`, last - 2, last},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{})
			r := c.demo.book(test.body)
			if r.Start != noon.Add(test.wantStart).Time() || r.End != noon.Add(test.wantUntil).Time() {
				t.Errorf("got [%d, %d), want [%d, %d)", span.At(r.Start)-noon, span.At(r.End)-noon, test.wantStart, test.wantUntil)
			}
			if r.DelayedByBoot {
				t.Error("no host had to boot")
			}
		})
	}
}

func TestAWindowThatIsBusyAtFirstIsUsedLater(t *testing.T) {
	c := start(t, setup{})
	c.other.book(`{"name": "r", "quantity": 2, "duration": 600}`)
	r := c.demo.book(fmt.Sprintf(`{"name": "r", "quantity": 2, "end_time": %q, "duration": 600}`, at(1200)))
	if r.Start != noon.Add(600).Time() {
		t.Errorf("it starts at %v, want when the others are gone", r.Start)
	}
}

func TestWithoutTimesOnlySleepingHostsMayDelayTheStart(t *testing.T) {
	asleep := machine("C")
	asleep.Power, asleep.BootSeconds = inventory.PowerSleeping, 300
	c := start(t, setup{hosts: []inventory.Host{machine("A"), machine("B"), asleep}})

	if r := want[v1.OfferAnswer](t, c.demo.post("/v1/reservations?dry_run=true", `{"name": "r", "quantity": 2, "duration": 60}`), http.StatusOK).Offer; r.DelayedByBoot || r.Start != noon.Time() {
		t.Errorf("two hosts are awake, but it starts at %v", r.Start)
	}
	r := c.demo.book(`{"name": "r", "quantity": 3, "duration": 60}`)
	if !r.DelayedByBoot || r.Start != noon.Add(300).Time() {
		t.Errorf("it starts at %v, delayed %v; want when C has booted", r.Start, r.DelayedByBoot)
	}
	refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", `{"name": "r", "quantity": 3, "duration": 400}`), http.StatusConflict)
	if refused.Refusal.Constraint != "free_hosts" {
		t.Errorf("a promise is no sleep: got %+v", refused.Refusal)
	}
	given := fmt.Sprintf(`{"name": "r", "quantity": 3, "start_time": %q, "duration": 60}`, at(0))
	if refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", given), http.StatusConflict).Refusal; !refused.EarliestStart.Equal(noon.Add(360).Time()) {
		t.Errorf("a request with a start can only get that start; the earliest is %v", refused.EarliestStart)
	}
}

// Clients send their present second, which is over when the request arrives, or their clock is slow. Both
// APIs then take the start as now; TestTheRequestsOfBlazarsClientsAreServed has Blazar's.
func TestAStartAtMostTwoMinutesAgoIsNow(t *testing.T) {
	c := start(t, setup{})
	c.seconds.Add(5000)
	for _, tc := range []struct {
		ago    int64
		keys   string
		length int64
	}{
		{1, `"duration": 60`, 60},
		{planning.LatestPast, `"duration": 60`, 60},
		{20, `"end_time": %q`, 180},
		{20, `"end_time": %q, "duration": 60`, 60},
		{20, `"end_time": %q, "duration": 200`, 180}, // the rest of a window that fitted
	} {
		keys := tc.keys
		if strings.Contains(keys, "%q") {
			keys = fmt.Sprintf(keys, at(5180))
		}
		body := func(ago int64) string { return fmt.Sprintf(`{"name": "r", "start_time": %q, %s}`, at(5000-ago), keys) }
		offer := want[v1.OfferAnswer](t, c.demo.post("/v1/reservations?dry_run=true", body(tc.ago)), http.StatusOK).Offer
		if begin, end := span.At(offer.Start), span.At(offer.End); begin != c.now() || int64(end-begin) != tc.length {
			t.Errorf("%s: from %v to %v, want %d s from %v", body(tc.ago), begin, end, tc.length, c.now())
		}
		if e := wantError(t, c.demo.post("/v1/reservations?dry_run=true", body(planning.LatestPast+1)), http.StatusBadRequest); e.Field != "start_time" {
			t.Errorf("%s: the error is %+v", body(planning.LatestPast+1), e)
		}
	}
	windows := want[v1.Availability](t, c.demo.get("/v1/availability?duration=60&start="+at(5000-planning.LatestPast)), http.StatusOK).Windows
	if span.At(windows[0].Start) != c.now() {
		t.Errorf("the windows are %+v", windows)
	}
	later := c.demo.bookAt("later", 9000)
	moved := want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+later.ID, fmt.Sprintf(`{"start_time": %q}`, at(4990))), http.StatusOK)
	if span.At(moved.Start) != c.now() {
		t.Errorf("the start is moved to %v", moved.Start)
	}
}

func TestTheFirstInstantOfTheClockIsAnInstantLikeOthers(t *testing.T) {
	c := start(t, setup{})
	answer := want[v1.Calendar](t, c.demo.get("/v1/calendar?start=1970-01-01T00:00:00Z&end=1970-01-02T00:00:00Z"), http.StatusOK)
	if span.At(answer.Start) != 0 || span.At(answer.End) != 86400 {
		t.Errorf("the calendar is from %v to %v", answer.Start, answer.End)
	}
	if e := wantError(t, c.demo.get("/v1/calendar?filter=[]"), http.StatusBadRequest); e.Field != "filter" || strings.Contains(e.Message, "host_properties") {
		t.Errorf("an empty filter: %+v", e)
	}
}
