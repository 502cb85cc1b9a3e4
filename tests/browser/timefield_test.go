// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// field shows a field for a time alone on the page. Its value is almanacField.
const field = `(async () => {
	const folder = document.querySelector('script[type=module]').src.replace(/[^/]*$/, '');
	const of = name => import(folder + name);
	const [{timeField}, {render}, {exact}] = await Promise.all(['timefield.js', 'preact.js', 'timevalue.js'].map(of));
	const place = document.createElement('main');
	document.body.replaceChildren(place);
	const show = value => {
		window.almanacField = value;
		render(timeField({label: 'Starts', id: 'starts', value, change: show}), place);
	};
	show(exact(Date.parse(%q) / 1000));
	return true;
})()`

// showField shows the field with an instant, to a user in Paris whose language has AM and PM.
func showField(p *page, at string) {
	p.t.Helper()
	p.Visit("about:blank")
	p.Live("Europe/Paris", "en-US")
	p.open("calendar", ".picture")
	labtest.Evaluate[bool](p.Browser, fmt.Sprintf(field, at))
	p.Await("#starts-clock")
}

// instant returns the time of the field.
func instant(p *page) string {
	p.t.Helper()
	return labtest.Evaluate[string](p.Browser, `Number.isNaN(almanacField.at) ? 'none' : new Date(almanacField.at * 1000).toISOString()`)
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
	value := `document.querySelector('#starts-clock').value`
	if shown := labtest.Evaluate[string](p.Browser, value); shown != "19:30:07" {
		t.Errorf("the field shows %s", shown)
	}

	// The hour of the night that comes twice.
	write(p, "#starts-clock", "230")
	if got := instant(p); got != "2027-10-31T00:30:00.000Z" {
		t.Errorf("half past two is %s", got)
	}
	p.Picture("twice")
	p.Click(".twice .check:last-child input")
	if got := instant(p); got != "2027-10-31T01:30:00.000Z" {
		t.Errorf("half past two, the second time, is %s", got)
	}
	write(p, "#starts-clock", "2:45")
	if got := instant(p); got != "2027-10-31T01:45:00.000Z" {
		t.Errorf("a quarter of an hour after that is %s", got)
	}

	// A wrong time is explained when the user leaves, and the field keeps it.
	write(p, "#starts-clock", "25")
	p.Press("\t")
	p.Await("#starts-complaint")
	if shown, got := labtest.Evaluate[string](p.Browser, value), instant(p); shown != "25" || got != "none" {
		t.Errorf("the field shows %s and means %s", shown, got)
	}
	p.Picture("wrong")

	// A time that spring leaves out, with a day that is typed key by key.
	write(p, "#starts-clock", "2:30")
	p.Click("#starts")
	labtest.Evaluate[bool](p.Browser, `(document.querySelector('#starts').focus(), true)`)
	p.Press("03282027")
	if got := instant(p); got != "2027-03-28T01:30:00.000Z" {
		t.Errorf("half past two, which spring leaves out, is %s", got)
	}
	p.Await("#starts-moved")
	p.Picture("moved")
	p.wellBehaved()
}
