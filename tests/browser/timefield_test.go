// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// shownStart lets the form of a booking begin at an instant.
const shownStart = `almanac.calendar.send({type: 'form.edit', field: 'when', value: 'at'});
	almanac.calendar.send({type: 'form.edit', field: 'start', value: {at: Date.parse(%q) / 1000, text: null}})`

// showField shows the field for the start of a booking with an instant, to a user in Paris whose language has AM and PM.
func showField(p *page, at string) {
	p.t.Helper()
	p.Visit("about:blank")
	p.Live("Europe/Paris", "en-US")
	p.open("calendar", ".picture")
	p.Click("#book")
	p.Await("#form-when")
	labtest.Evaluate[bool](p.Browser, fmt.Sprintf(`(() => { %s; return true })()`, fmt.Sprintf(shownStart, at)))
	p.Await("#form-start-clock")
}

// instant returns the time of the field.
func instant(p *page) string {
	p.t.Helper()
	return labtest.Evaluate[string](p.Browser, `(at => at === null || Number.isNaN(at) ? 'none' : new Date(at * 1000).toISOString())(almanac.calendar.state().form.fields.start.at)`)
}

// write replaces the text of an input by keys.
func write(p *page, input, keys string) {
	p.t.Helper()
	p.Click(input)
	labtest.Evaluate[bool](p.Browser, fmt.Sprintf(`(document.querySelector(%q).select(), true)`, input))
	p.Press(keys)
}

func TestAFieldForATimeHasNoHalvesOfTheDayAndBothHalvesOfTheNight(t *testing.T) {
	p, _ := startPage(t)
	showField(p, "2027-10-31T18:30:07Z")
	value := `document.querySelector('#form-start-clock').value`
	if shown := labtest.Evaluate[string](p.Browser, value); shown != "19:30:07" {
		t.Errorf("the field shows %s", shown)
	}

	// The hour of the night that comes twice.
	write(p, "#form-start-clock", "230")
	if got := instant(p); got != "2027-10-31T00:30:00.000Z" {
		t.Errorf("half past two is %s", got)
	}
	p.Picture("twice")
	p.Click(".twice .check:last-child input")
	if got := instant(p); got != "2027-10-31T01:30:00.000Z" {
		t.Errorf("half past two, the second time, is %s", got)
	}
	write(p, "#form-start-clock", "2:45")
	if got := instant(p); got != "2027-10-31T01:45:00.000Z" {
		t.Errorf("a quarter of an hour after that is %s", got)
	}

	// A wrong time is explained when the user leaves, and the field keeps it.
	write(p, "#form-start-clock", "25")
	p.Press("\t")
	p.Await("#form-start-complaint")
	if shown, got := labtest.Evaluate[string](p.Browser, value), instant(p); shown != "25" || got != "none" {
		t.Errorf("the field shows %s and means %s", shown, got)
	}
	p.Picture("wrong")

	// A time that spring leaves out, with a day that is typed key by key.
	write(p, "#form-start-clock", "2:30")
	labtest.Evaluate[bool](p.Browser, `(document.querySelector('#form-start').focus(), true)`)
	p.Press("03282027")
	if got := instant(p); got != "2027-03-28T01:30:00.000Z" {
		t.Errorf("half past two, which spring leaves out, is %s", got)
	}
	p.Await("#form-start-moved")
	p.Picture("moved")
	p.wellBehaved()
}
