// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// askForOffers opens the form and asks for two to six hosts for two to eight hours in the time that it proposes.
func (p *page) askForOffers() {
	p.t.Helper()
	p.Click("#book")
	p.Choose("#form-when", "offers")
	p.Await("#form-quantityTo")
	for _, one := range [][2]string{{"quantity", "2"}, {"quantityTo", "6"}, {"lasts", "2h"}, {"lastsTo", "8h"}} {
		write(p, "#form-"+one[0], one[1])
	}
	p.Press(labtest.Enter)
	p.Await(".offers li button")
}

// A user who can do with less compares offers, in the zone of the page, and books one with the keyboard.
func TestOffersAreComparedAndOneIsBookedWithOnePress(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, gpuHosts)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	p.Live("Asia/Kathmandu", "en-GB")
	bookHosts(t, s, "in the way", time.Now().Add(4*time.Hour), 9*time.Hour, `["in", "$name", "gpu-01", "gpu-02"]`)
	p.calendarOf(6)
	p.askForOffers()
	p.Eventually("the keyboard is at the offers", `document.activeElement.id === 'offers-head'`)
	offers := labtest.Evaluate[[]string](p.Browser, `[...document.querySelectorAll('.offers li')].map(one => one.innerText.replaceAll('\n', ' | '))`)
	if len(offers) < 3 || len(offers) > 6 {
		t.Errorf("the offers are %q", offers)
	}
	for _, one := range offers {
		if !strings.Contains(one, "fewer") && !strings.Contains(one, "shorter") && !strings.Contains(one, "later") && !strings.Contains(one, "all that you asked for") {
			t.Errorf("%q does not tell what it has less", one)
		}
	}
	if head := p.Text("#offers-head"); !strings.Contains(head, "Kathmandu") && !strings.Contains(head, "Katmandu") {
		t.Errorf("the head of the offers is %q", head)
	}
	for _, width := range []int{390, 1440} {
		p.Look(width, 844, false)
		labtest.Evaluate[bool](p.Browser, `(document.querySelector('#offers-head').scrollIntoView(), true)`)
		if wide := labtest.Evaluate[int](p.Browser, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d pixels the page is %d wide", width, wide)
		}
		p.Picture(fmt.Sprintf("offers-%d", width))
	}

	first := instantOf(p, form+`.offers[0].start`)
	until := instantOf(p, form+`.offers[0].end`)
	quantity := labtest.Evaluate[int](p.Browser, form+`.offers[0].quantity`)
	labtest.Evaluate[bool](p.Browser, `(document.querySelector('#offers-head').focus(), true)`)
	p.Press(labtest.Tab)
	p.Press(labtest.Enter)
	p.Eventually("the form is closed", form+` === null`)
	list := reservations(t, s)
	got := list[0]
	if got.Name == "in the way" {
		got = list[1]
	}
	if !got.Start.Equal(first) || !got.End.Equal(until) || got.Quantity != quantity || !strings.HasPrefix(got.Name, "reservation ") {
		t.Errorf("booked is %+v, not %d hosts from %s until %s", got, quantity, first, until)
	}
	p.wellBehaved()
}

// A user who has to ask somebody first holds an offer, and confirms it on the page of the reservation.
func TestAnOfferIsHeldAndConfirmed(t *testing.T) {
	p, s := startPage(t)
	everything := 10
	until := book(t, s, v1.ReservationRequest{Name: "before", Quantity: &everything}, time.Minute, time.Hour).End
	p.calendarOf(10)
	p.askForOffers()
	p.Click(".offers li button:nth-of-type(2)")
	p.Eventually("the form is closed", form+` === null`)
	p.Picture("offer-held")
	var held v1.Reservation
	for _, r := range reservations(t, s) {
		if r.Name != "before" {
			held = r
		}
	}
	if held.HeldUntil == nil || held.HeldUntil.Sub(held.CreatedAt) != 15*time.Minute || held.Start.Before(until) {
		t.Fatalf("held is %+v", held)
	}
	p.open("reservation/"+held.ID, "#confirm-hold")
	if text := p.Text("#reservation-head"); !strings.Contains(text, "held until") {
		t.Errorf("the head is %q", text)
	}
	p.Picture("reservation-held")
	p.Click("#confirm-hold")
	p.Await("#rename")
	if focused := labtest.Evaluate[string](p.Browser, `document.activeElement.id`); focused != "reservation-head" {
		t.Errorf("after the confirmation the keyboard is on %q", focused)
	}
	if text := p.Text("#reservation-head"); strings.Contains(text, "held") {
		t.Errorf("the head is %q", text)
	}
	p.wellBehaved()
}

// An offer holds nothing by itself. One that somebody else has taken is refused, and the next press asks again.
func TestAnOfferThatSomebodyElseHasTakenIsRefusedAndOffersAreAskedForAgain(t *testing.T) {
	p, s := startPage(t)
	p.calendarOf(10)
	p.askForOffers()
	quantity := 10
	book(t, s, v1.ReservationRequest{Name: "quicker", Quantity: &quantity}, time.Until(instantOf(p, form+`.offers[0].start`)), 10*time.Hour)
	p.says("#offers-said", "out of date")
	p.Click(".offers li button")
	p.Await("#refusal")
	if focused := labtest.Evaluate[string](p.Browser, `document.activeElement.id`); focused != "confirm" {
		t.Errorf("after the refusal the keyboard is on %q", focused)
	}
	p.Picture("offers-refused")
	p.Press(labtest.Enter)
	p.Await(".offers li button")
	p.Click(".offers li button")
	p.Eventually("the form is closed", form+` === null`)
	if list := reservations(t, s); len(list) != 2 {
		t.Errorf("there are %d reservations", len(list))
	}
	p.wellBehaved()
}

// The script of the offers comes when somebody wants them. Without the service the form says so, and stays over the loading
// of the page once the service is back.
func TestTheFormStaysWhileTheScriptOfOffersIsMissing(t *testing.T) {
	browser := startBrowser(t)
	folder, port := built.NewFolder(t, built.TenHosts), fmt.Sprintf("OS_API__PORT=%d", built.UnusedPort(t))
	s := built.Start(t, folder, port)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	p.calendarOf(10)
	p.Click("#book")
	p.Await("#offer")
	write(p, "#form-name", "kept")
	if got := labtest.Evaluate[int](p.Browser, `performance.getEntriesByType('resource').filter(one => /offers-/.test(one.name)).length`); got != 0 {
		t.Errorf("the form loads %d scripts of offers", got)
	}
	s.Stop(t)
	p.Choose("#form-when", "offers")
	p.Await("#try-again")
	p.says("#form-answer", "cannot be loaded")
	built.Start(t, folder, port)
	p.Click("#try-again")
	p.Await("#form-quantityTo")
	if name := labtest.Evaluate[string](p.Browser, `document.querySelector('#form-name').value`); name != "kept" {
		t.Errorf("the name is %q", name)
	}
}
