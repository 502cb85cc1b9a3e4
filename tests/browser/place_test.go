// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// rackHosts are two racks, with three hosts and with two.
const rackHosts = `hosts:
  - {name: "left-[01-03]", vcpus: 16, memory_mb: 65536, disk_gb: 500, properties: {rack: left}}
  - {name: "right-[01-02]", vcpus: 16, memory_mb: 65536, disk_gb: 500, properties: {rack: right}}
`

// A user wants hosts of one rack, gets them, and sees it on the page of the reservation. A booking that no rack has room for is
// refused with its reason, and is booked once any place will do. The next one lies apart from the first.
func TestHostsAreBookedInOneRackAndApartFromOthers(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, rackHosts)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	p.Live("Europe/Paris", "en-GB")
	p.calendarOf(5)
	p.Click("#book")
	p.Await("#offer")
	write(p, "#form-name", "solver")
	write(p, "#form-quantity", "4")
	p.Click("#form-place summary")
	p.Eventually("the properties are there", `[...document.querySelector('#form-placeBy').options].some(one => one.value === 'rack')`)
	p.Choose("#form-placeBy", "rack")
	p.says("#refusal", "rack")
	if message := labtest.Evaluate[string](p.Browser, form+`.refusal.message`); !strings.Contains(message, "left") {
		t.Errorf("the refusal does not name the rack that comes nearest: %s", message)
	}
	p.Picture("place-refused")
	write(p, "#form-quantity", "3")
	p.Await("#offer")
	p.Picture("place-offered")
	p.Click("#confirm")
	p.Eventually("the form is closed", form+` === null`)
	list := reservations(t, s)
	if len(list) != 1 || list[0].Together == nil || list[0].Together.By != "rack" || list[0].Together.Rule != "same" || !list[0].Together.Required || strings.Join(list[0].Hosts, " ") != "left-01 left-02 left-03" {
		t.Fatalf("booked is %+v", list)
	}
	first := list[0]
	p.open("reservation/"+first.ID, "#rename")
	p.says("#main", "all with one rack")

	p.open("calendar", ".picture")
	p.Eventually("the calendar shows the reservation", `almanac.calendar.state().data.hosts.get('left-01')?.claims.length === 1`)
	p.Click("#book")
	p.Await("#offer")
	write(p, "#form-name", "standby")
	p.Choose("#form-when", "at")
	write(p, "#form-quantity", "1")
	p.Click("#form-place summary")
	p.Choose("#form-placeBy", "rack")
	p.Choose("#form-placeRule", "none")
	p.says("#complaint", "lie apart from")
	p.Choose("#form-apartFrom", first.ID)
	p.Eventually("the offer is of the other rack", form+`?.offer?.hosts[0]?.startsWith('right') === true`)
	labtest.Evaluate[bool](p.Browser, `(document.querySelector('#form-place').scrollIntoView(), true)`)
	p.Picture("place-apart")
	p.Click("#confirm")
	p.Eventually("the form is closed", form+` === null`)
	for _, one := range reservations(t, s) {
		if one.Name != "standby" {
			continue
		}
		if !one.Start.After(time.Now()) || one.Together == nil || one.Together.ApartFrom[0] != first.ID {
			t.Errorf("booked is %+v", one)
		}
		p.open("reservation/"+one.ID, "#rename")
		p.says("#main", "with no rack of "+first.ID)
		p.Picture("place-of-a-reservation")
	}
	p.wellBehaved()
}
