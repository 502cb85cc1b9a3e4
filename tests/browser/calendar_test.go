// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// manyHosts are more hosts than a screen, or a sheet of paper, has room for.
const manyHosts = `hosts: [{name: "node-[001-120]", vcpus: 16, memory_mb: 65536, disk_gb: 500, zone: az1}]
`

func TestTheCalendarIsPrintedWithAllItsHosts(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, manyHosts)
	bookHosts(t, s, "on paper", time.Now().Add(24*time.Hour), 12*time.Hour, `["=", "$name", "node-120"]`)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, true)
	p.calendarOf(120)
	p.claims(1)
	if sheets := bytes.Count(p.Printed(), []byte("/Type /Page\n")); sheets < 3 {
		t.Errorf("120 hosts are printed on %d sheets", sheets)
	}
	p.OnPaper()
	labtest.Evaluate[bool](p.Browser, `dispatchEvent(new Event('beforeprint'))`)
	p.Await(".print-only table")
	text := p.Text("body")
	for _, want := range []string{"node-001", "node-120", "on paper", "Free hosts over time", "119 of 120 hosts free"} {
		if !strings.Contains(text, want) {
			t.Errorf("the paper does not have %q:\n%.2000s", want, text)
		}
	}
	if shown := labtest.Evaluate[[]string](p.Browser, `['.top', '.tools', '.filter-box', '.stage', '.legend', '.live'].filter(one => document.querySelector(one)?.checkVisibility())`); len(shown) > 0 {
		t.Errorf("the paper has %v", shown)
	}
	const looks = `(() => {
		const of = name => getComputedStyle(document.querySelector(name));
		document.documentElement.dataset.theme = '%s';
		return [of('.print-only thead').display, of('.print-only .scroll').overflow, of('body').overflow, of('body').color]
	})()`
	for _, theme := range []string{"system", "dark"} {
		if got, want := labtest.Evaluate[[]string](p.Browser, fmt.Sprintf(looks, theme)), []string{"table-header-group", "visible", "visible", "rgb(26, 34, 48)"}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the looks are %v, not %v: the head on each sheet, nothing cut off, and dark on light", got, want)
		}
	}
	labtest.Evaluate[bool](p.Browser, `dispatchEvent(new Event('afterprint'))`)
	p.Eventually("the screen has no paper", `!document.querySelector('.print-only')`)
	p.wellBehaved()
}

// colorAt returns the color of the picture at a place of the page, as the browser writes it.
func (p *page) colorAt(x, y float64) string {
	p.t.Helper()
	return labtest.Evaluate[string](p.Browser, fmt.Sprintf(`(async () => {
		for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame); // the picture follows the state in the next frame
		const canvas = document.querySelector('canvas'), frame = canvas.getBoundingClientRect(), ratio = canvas.width / frame.width;
		const [r, g, b] = canvas.getContext('2d').getImageData(Math.round((%g - frame.left) * ratio), Math.round((%g - frame.top) * ratio), 1, 1).data;
		return 'rgb(' + [r, g, b].join(', ') + ')'
	})()`, x, y))
}

func TestThePictureHasTheColorsThatAUserForces(t *testing.T) {
	p, s := startPage(t)
	bookHosts(t, s, "mine", time.Now().Add(24*time.Hour), 48*time.Hour, `["=", "$name", "host-02"]`)
	p.WithForcedColors()
	p.calendarOf(10)
	p.claims(1)
	// The colors of a system may let the ground through.
	const system = `(() => {
		const probe = document.body.appendChild(document.createElement('i')), c = document.createElement('canvas').getContext('2d');
		probe.style.forcedColorAdjust = 'none';
		const colors = ['Canvas', 'Highlight', 'CanvasText'].map(name => (probe.style.color = name, getComputedStyle(probe).color));
		return colors.map(color => {
			for (c.fillStyle of [colors[0], color]) c.fillRect(0, 0, 1, 1);
			return 'rgb(' + [...c.getImageData(0, 0, 1, 1).data].slice(0, 3).join(', ') + ')'
		})
	})()`
	colors := labtest.Evaluate[[]string](p.Browser, system)
	x, y := p.point("host-02", 70)
	p.Eventually("the picture is drawn", `almanac.calendar.state().rows.length === 10`)
	if got := p.colorAt(x, y); got != colors[1] {
		t.Errorf("a reservation of the user has the color %s, not Highlight, which is %s", got, colors[1])
	}
	x, y = p.point("host-05", 70)
	if got := p.colorAt(x+3, y); got != colors[0] {
		t.Errorf("free time has the color %s, not Canvas, which is %s", got, colors[0])
	}
	// What is on is told from what is off by its fill.
	p.Click("#table-switch")
	p.Await(".table-view")
	const fills = `['[data-range=week]', '#table-switch', '[data-range=day]'].map(one => getComputedStyle(document.querySelector(one))).map(one => one.backgroundColor + ' ' + one.forcedColorAdjust)
		.concat(getComputedStyle(document.querySelector('.live.on'), '::before').backgroundColor)`
	if got, on := labtest.Evaluate[[]string](p.Browser, fills), colors[2]+" none"; got[0] != on || got[1] != on || got[2] == on || got[3] != colors[2] {
		t.Errorf("the fills of the pressed range, of the pressed table, of another range, and of Live are %v", got)
	}
	p.wellBehaved()
}

// seen is a script that reports whether the row of a host is in view, in the picture and in its state.
const seen = `(name => {
	const {view, rows} = almanac.calendar.state(), row = rows.find(one => one.host?.name === name), picture = document.querySelector('.picture');
	return Math.abs(picture.scrollTop - view.scroll) <= 1 && row.y >= picture.scrollTop && 82 + row.y + row.height <= picture.scrollTop + picture.clientHeight
})`

func TestAnOfferFarBelowIsScrolledToAndItsRowAloneIsShown(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, manyHosts)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	p.calendarOf(120)
	p.Eventually("the first host is in view", seen+`('node-001')`)
	p.Click("#book")
	labtest.Evaluate[bool](p.Browser, `(almanac.calendar.send({type: 'form.edit', field: 'filter', value: '["=", "$name", "node-117"]'}), true)`)
	p.Eventually("the offer is on the host of the filter", form+`.offer?.hosts[0] === 'node-117'`)
	p.Eventually("the row of the offer is in view", seen+`('node-117')`)
	p.Click("#fold-rows")
	p.Eventually("its row is the only one", `almanac.calendar.state().rows.length === 1`)
	p.Click("#fold-rows")
	p.Eventually("all rows are back, and that of the offer is in view", `almanac.calendar.state().rows.length === 120 && `+seen+`('node-117')`)
	p.wellBehaved()
}

func TestTheFormOpensBesideThePictureAndMovesNothing(t *testing.T) {
	p, _ := startPage(t)
	for _, width := range []int{1440, 1024} {
		p.Look(width, 768, false)
		p.calendarOf(10)
		const place = `(() => {
			const frame = document.querySelector('.picture').getBoundingClientRect(), {start, scale, scroll} = almanac.calendar.state().view;
			return [frame.left, frame.top, frame.width, frame.height, start, scale, scroll].map(one => Math.round(one * 1e6) / 1e6)
		})()`
		before := labtest.Evaluate[[]float64](p.Browser, place)
		p.Click("#book")
		p.Await("#offer")
		if after := labtest.Evaluate[[]float64](p.Browser, place); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("at %d pixels the picture was at %v, and with the form it is at %v", width, before, after)
		}
		p.Click("#close-form")
	}
	p.wellBehaved()
}

// A tap of a finger ends with events that a mouse has when it leaves.
func TestOnAPhoneTheToolsAreSmallAndATapShowsFacts(t *testing.T) {
	p, _ := startPage(t)
	p.Look(360, 740, false)
	p.calendarOf(10)
	const heights = `['.tools', '.filter-box'].map(one => document.querySelector(one).getBoundingClientRect().height).reduce((a, b) => a + b)`
	if taken := labtest.Evaluate[float64](p.Browser, heights); taken > 190 {
		t.Errorf("the tools take %g of 740 pixels", taken)
	}
	x, y := p.point("host-02", 60)
	labtest.Evaluate[bool](p.Browser, fmt.Sprintf(`['pointerdown', 'pointerup', 'pointerout', 'pointerleave'].every(type =>
		document.querySelector('.picture').dispatchEvent(new PointerEvent(type, {pointerType: 'touch', pointerId: 7, clientX: %g, clientY: %g, bubbles: type !== 'pointerleave'})))`, x, y))
	p.Await(".tip")
	if text := p.Text(".tip"); !strings.Contains(text, "host-02") {
		t.Errorf("after a tap the facts are %q", text)
	}
	p.tools(360)
	p.Await(".zoom")
	const cut = `[...document.querySelectorAll('.tools select, .tools button')].filter(one => one.checkVisibility() && (one.getBoundingClientRect().right > 360 || one.scrollWidth > one.clientWidth + 1)).map(one => one.textContent)`
	if parts := labtest.Evaluate[[]string](p.Browser, cut); len(parts) > 0 {
		t.Errorf("the tools %v are cut off", parts)
	}
	p.wellBehaved()
}

func TestBackLeadsToThePlaceInTheCalendarBeforeAMove(t *testing.T) {
	p, _ := startPage(t)
	p.calendarOf(10)
	p.Eventually("the address has the time", `location.hash.includes('start=')`)
	const start = `Math.round(almanac.calendar.state().view.start)`
	first := labtest.Evaluate[int](p.Browser, start)
	p.Click(`.tools [aria-label="Later"]`)
	p.Eventually("the address has the later time", fmt.Sprintf(`location.hash.includes('start=' + %s) && %s > %d`, start, start, first))
	labtest.Evaluate[bool](p.Browser, `(history.back(), true)`)
	p.Eventually("the calendar shows the time before", fmt.Sprintf(`%s === %d && document.querySelector('.picture')`, start, first))
	p.wellBehaved()
}

func TestTheKeyboardReachesThePictureAndTheFormAtOnce(t *testing.T) {
	p, s := startPage(t)
	p.calendarOf(10)
	skip := func(tabs int) {
		t.Helper()
		labtest.Evaluate[bool](p.Browser, `(document.querySelector('a, button').focus(), true)`)
		for range tabs - 1 {
			p.Press(labtest.Tab)
		}
		p.Press(labtest.Enter)
	}
	skip(2)
	p.Eventually("the picture has the focus", `document.activeElement.className.startsWith('picture')`)
	p.Press("c")
	p.Await("#offer")
	skip(3)
	p.Eventually("the form has the focus", `document.activeElement.matches('.panel h2')`)
	p.Press(labtest.Tab)
	p.Press(labtest.Tab)
	if id := labtest.Evaluate[string](p.Browser, `document.activeElement.id`); id != "form-words" {
		t.Errorf("the field after the head of the form is %q", id)
	}
	if got := reservations(t, s); len(got) > 0 {
		t.Errorf("the way to the form has booked %s", got[0].Name)
	}
	p.wellBehaved()
}

func TestThePageWorksInABrowserThatKeepsNothing(t *testing.T) {
	p, s := startPage(t)
	p.Before(`for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, {get() { throw new DOMException('denied', 'SecurityError') }})`)
	p.calendarOf(10)
	p.Choose("#zone", "utc")
	p.Choose("#second-zone", "Asia/Tokyo")
	p.Click("#theme")
	p.drawn("host-02", 24, 48)
	p.Click("#confirm")
	p.claims(1)
	if got := len(reservations(t, s)); got != 1 {
		t.Errorf("there are %d reservations", got)
	}
	p.wellBehaved()
	p.open("reservations", "tbody a")
	p.open("calendar", ".picture")
	p.wellBehaved()
}

func TestADamagedLinkShowsThePage(t *testing.T) {
	p, _ := startPage(t)
	for _, address := range []string{"calendar?start=1e20", "calendar?start=-1e20&width=1e20", "calendar?start=x&width=0", "calendar?width=NaN&group=%zz"} {
		p.open(address, ".picture")
		p.hosts(10)
		p.Eventually("the calendar has a time", `/\d/.test(document.querySelector('.range').textContent) && !/unknown|NaN|Invalid/.test(document.querySelector('.range').textContent)`)
		p.wellBehaved()
	}
	p.open("reservation/%", ".box.bad")
	if text := p.Text(".box.bad"); !strings.Contains(text, "no reservation %") {
		t.Errorf("a link to a reservation with a damaged name shows %q", text)
	}
	p.wellBehaved()
}
