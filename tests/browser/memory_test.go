// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"cmp"
	"os"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Ten changes a second, each of them an event, leave what the calendar holds as it was. ALMANAC_PAGE_LASTS is how long
// they come.
//
//make:test-page
func TestTheCalendarHoldsNoMoreAfterManyEvents(t *testing.T) {
	labtest.Long(t)
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("ALMANAC_PAGE_LASTS"), "30m"))
	if err != nil {
		t.Fatal(err)
	}
	p, s := startPage(t)
	p.calendarOf(10)
	api := s.Client(t)
	tick := time.NewTicker(200 * time.Millisecond) // a booking and its cancellation
	defer tick.Stop()
	var warm labtest.Held // when every place has had a booking and the browser has compiled the page
	begun, changes, parts := time.Now(), 0, 0
	for ; time.Since(begun) < lasts; <-tick.C {
		begin, length := time.Now().Add(time.Duration(1+changes%160)*time.Hour), v1.Duration(3600)
		made, err := api.CreateReservation(t.Context(), v1.ReservationRequest{Name: "short", StartTime: &begin, Duration: &length}, client.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := api.DeleteReservation(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		changes += 2
		if part := int(10 * time.Since(begun) / lasts); part > parts {
			parts = part
			held := p.Held()
			t.Logf("after %v and %d changes: %+v", time.Since(begun).Round(time.Second), changes, held)
			if changes > 600 {
				warm = cmp.Or(warm, held)
			}
		}
	}
	if warm == (labtest.Held{}) {
		t.Fatalf("%v are too short to compare anything: set ALMANAC_PAGE_LASTS to 2m or more", lasts)
	}
	p.claims(0)
	held := p.Held()
	t.Logf("after %d changes: %+v", changes, held)
	if held.Megabytes > 1.15*warm.Megabytes || held.Nodes > warm.Nodes+warm.Nodes/20 || held.Listeners > warm.Listeners {
		t.Errorf("the page holds %+v, and held %+v", held, warm)
	}
	p.wellBehaved()
}
