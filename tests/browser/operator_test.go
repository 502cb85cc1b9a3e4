// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// startOperator starts a browser and a simulated cloud, whose hosts have power agents.
func startOperator(t *testing.T) *page {
	t.Helper()
	browser := startBrowser(t)
	p := &page{Browser: browser, t: t, url: built.StartDemo(t, nil)}
	p.Look(1440, 900, false)
	return p
}

// ageOf is the age of the page in seconds.
const ageOf = `Number(/As of (\d+) s ago/.exec(document.querySelector('#age').textContent)?.[1] || 0)`

// Nobody touches the page: its age grows, and falls when it reads again.
func TestOperatorsPagesReadThemselvesAgain(t *testing.T) {
	p := startOperator(t)
	p.open("operator/energy", ".modes")
	p.Eventually("the age falls by itself", fmt.Sprintf(`(() => { const age = %s; window.oldest = Math.max(window.oldest || 0, age); return window.oldest >= 4 && age <= 1 })()`, ageOf))
	p.wellBehaved()
}

// cut makes the calls of the API fail until whole is true.
const cut = `(() => { const real = fetch; window.whole = false;
	window.fetch = (...call) => !window.whole && String(call[0]).includes('v1/') ? Promise.reject(new TypeError('cut off')) : real(...call); return true })()`

// Without the service the page keeps what it has read, says how old it is, and goes on by itself when the service is back.
func TestOperatorsPagesGoOnAfterAFailure(t *testing.T) {
	p := startOperator(t)
	p.open("operator/hosts", "tbody th")
	labtest.Evaluate[bool](p.Browser, cut)
	p.Click("#read-again")
	p.Await("#try-again")
	p.Eventually("the page says when it asks again", `document.querySelector('.box.bad').textContent.includes('The next attempt is in')`)
	if text := p.Text("main"); !strings.Contains(text, "node-01") || !strings.Contains(text, "out of date") {
		t.Errorf("after a failure the page is\n%s", text)
	}
	labtest.Evaluate[bool](p.Browser, `(window.whole = true)`)
	p.Eventually("the page recovers by itself", `!document.querySelector('#try-again') && !document.querySelector('.outdated')`)
	p.wellBehaved()
}

// A reading changes neither what has the focus nor what is typed.
func TestFocusAndWhatIsTypedStayOverAReading(t *testing.T) {
	p := startOperator(t)
	p.open("operator/hosts", "tbody th")
	p.Fill("#hosts-search", "gpu")
	labtest.Evaluate[bool](p.Browser, `(document.querySelector('#hosts-search').dispatchEvent(new Event('input', {bubbles: true})), document.querySelector('#hosts-search').focus(), window.field = document.activeElement, window.before = almanac.operator.state().answers.hosts, true)`)
	p.Eventually("only the found hosts are there", `document.querySelectorAll('tbody th').length === 2`)
	labtest.Evaluate[bool](p.Browser, `(almanac.operator.send({type: 'reread'}), true)`)
	p.Eventually("the hosts are read again", `almanac.operator.state().answers.hosts !== window.before`)
	if got := labtest.Evaluate[string](p.Browser, `document.activeElement.id + ' ' + document.activeElement.value + ' ' + (document.activeElement === window.field)`); got != "hosts-search gpu true" {
		t.Errorf("after a reading the focus is on %q", got)
	}
	p.wellBehaved()
}

// From the plan of the energy a host leads to its row in the calendar, and from its page an operator marks it as out of order,
// after a question.
func TestAnOperatorFollowsAHostAndMarksItAsOutOfOrder(t *testing.T) {
	p := startOperator(t)
	p.open("operator/energy", ".modes")
	p.Click(`a[href="#/calendar?host=node-03"]`)
	p.Await(".picture")
	p.open("operator/hosts/node-03", "#out-of-order")
	p.Click("#out-of-order")
	p.Await("#confirm-order")
	p.Click("#confirm-order")
	p.Eventually("the host is out of order", `document.querySelector('#host-name') && document.querySelector('.facts .badge.failed') && !document.querySelector('dialog')`)
	p.Click("#out-of-order")
	p.Click("#confirm-order")
	p.Await(".facts .badge.active")
	p.Click("#power-off")
	p.Await("#outcome")
	if text := p.Text("#outcome"); !strings.Contains(text, "switched off once it is empty") {
		t.Errorf("before an order the page says %q", text)
	}
	p.Click("#keep")
	p.Eventually("the question is closed", `!document.querySelector('dialog')`)
	p.wellBehaved()
}

// From the calendar an operator follows a host to its page, which names the next maintenance, however far ahead it is.
func TestAnOperatorFindsTheNextMaintenanceOnThePageOfAHost(t *testing.T) {
	p, s := startPage(t)
	begin, duration := time.Now().Add(100*24*time.Hour), v1.Duration(4*3600)
	planned, err := s.Client(t).CreateReservation(t.Context(), v1.ReservationRequest{
		Name: "new memory", Maintenance: true, Hosts: []string{"host-03"}, StartTime: &begin, Duration: &duration,
	}, client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.open("operator/hosts", "tbody th")
	p.Click(`a[href="#/operator/hosts/host-03"]`)
	p.Await("#maintenance-next")
	if text := p.Text("#maintenance-next"); !strings.Contains(text, "(in 100d)") || !strings.Contains(text, "new memory") {
		t.Errorf("the next maintenance is %q", text)
	}
	const tight = `(() => { const one = document.querySelector('#maintenance-next'); return one.getBoundingClientRect().height > 50 || getComputedStyle(one.parentElement).display !== 'block' })()`
	if labtest.Evaluate[bool](p.Browser, tight) {
		t.Error("the next maintenance has not the width of the facts")
	}
	p.Click(fmt.Sprintf(`a[href="#/reservation/%s"]`, planned.ID))
	p.Await("#cancel")
	if text := p.Text("#cancel"); text != "Cancel the maintenance" {
		t.Errorf("the page of maintenance offers %q", text)
	}
	p.wellBehaved()
}

// The pages are accessible with what a simulated cloud shows, in light and dark, wide and narrow; and no page is wider than
// the window.
func TestOperatorsPagesAreAccessible(t *testing.T) {
	p := startOperator(t)
	axe := labtest.Axe(t)
	for _, look := range []struct {
		width int
		dark  bool
	}{{1440, false}, {360, true}} {
		p.Look(look.width, 800, look.dark)
		for _, one := range append(operatorPages, struct{ name, element string }{"hosts/node-01", "#power-off"}) {
			p.open("operator/"+one.name, one.element)
			for _, found := range p.Examine(axe) {
				t.Errorf("%s, %d wide: %v", one.name, look.width, found)
			}
			if wide := labtest.Evaluate[int](p.Browser, `document.documentElement.scrollWidth`); wide > look.width {
				t.Errorf("at %d pixels the page %s is %d wide", look.width, one.name, wide)
			}
		}
		p.Click("#power-off")
		p.Await("#outcome")
		for _, found := range p.Examine(axe) {
			t.Errorf("the question, %d wide: %v", look.width, found)
		}
		p.wellBehaved()
	}
}

// On paper there are the tables, whole and dark on light, and no tools.
func TestOperatorsPagesArePrintedWithoutTools(t *testing.T) {
	p := startOperator(t)
	p.Look(760, 1000, true)
	for _, one := range []struct{ page, element string }{{"operator/energy", ".modes"}, {"operator/hosts/node-01", "#pool"}, {"reservations", "table"}} {
		p.open(one.page, one.element)
		p.OnPaper()
		const tools = `[...document.querySelectorAll('header.top, nav, button:not(.head), input, select, .toasts')].filter(one => one.checkVisibility()).map(one => one.outerHTML)`
		if seen := labtest.Evaluate[[]string](p.Browser, tools); len(seen) > 0 {
			t.Errorf("on paper the page %s has %q", one.page, seen)
		}
		const heads = `[...document.querySelectorAll('.page thead')].every(one => getComputedStyle(one).display === 'table-header-group') && getComputedStyle(document.querySelector('h1')).color === 'rgb(0, 0, 0)'`
		if !labtest.Evaluate[bool](p.Browser, heads) {
			t.Errorf("on paper the heads of %s are not repeated, or not dark", one.page)
		}
		p.Look(760, 1000, true)
	}
}

// With forced colors the tab of the page that is shown has a fill of its own, and so has the sign of a page that is fresh.
func TestForcedColorsKeepWhatIsChosenOnOperatorsPages(t *testing.T) {
	p := startOperator(t)
	p.open("operator/hosts", "tbody th")
	p.WithForcedColors()
	for _, sign := range []string{".tabs [aria-current]", ".top nav [aria-current]"} {
		const fills = `[document.querySelector('%s'), document.body].map(one => getComputedStyle(one).backgroundColor)`
		if got := labtest.Evaluate[[]string](p.Browser, fmt.Sprintf(fills, sign)); got[0] == got[1] {
			t.Errorf("%s is filled as the page: %s", sign, got[0])
		}
	}
	const fresh = `getComputedStyle(document.querySelector('#age'), '::before').backgroundColor === getComputedStyle(document.querySelector('h1')).color`
	if !labtest.Evaluate[bool](p.Browser, fresh) {
		t.Error("the sign of a fresh page has no fill")
	}
}

// A name of 240 characters leaves the other columns in view.
func TestLongNamesLeaveTheOtherColumnsInView(t *testing.T) {
	browser := startBrowser(t)
	s := built.StartOn(t, fmt.Sprintf("hosts: [{name: node-01, vcpus: 8, memory_mb: 16384, zone: %s, aggregates: [%s]}]\n", strings.Repeat("z", 240), strings.Repeat("a", 240)))
	p := &page{Browser: browser, t: t, url: s.URL}
	for _, width := range []int{1440, 760, 360} {
		p.Look(width, 900, false)
		p.open("operator/hosts", "tbody th")
		for _, edge := range p.Edges("tbody tr > *") {
			if edge[1] > float64(width) {
				t.Errorf("at %d pixels a cell ends at %g", width, edge[1])
			}
		}
	}
	p.wellBehaved()
}

// The scripts of the operators' pages come with the first of them. Without the service the page says so, and goes on when it
// is back.
func TestOperatorsPagesComeLater(t *testing.T) {
	browser := startBrowser(t)
	folder, port := built.NewFolder(t, built.TenHosts), fmt.Sprintf("OS_API__PORT=%d", built.UnusedPort(t))
	s := built.Start(t, folder, port)
	p := &page{Browser: browser, t: t, url: s.URL}
	p.Look(1440, 900, false)
	p.open("reservations", "table")
	const scripts = `performance.getEntriesByType('resource').filter(one => /operator-/.test(one.name)).length`
	if got := labtest.Evaluate[int](p.Browser, scripts); got != 0 {
		t.Errorf("the list loads %d scripts of operators", got)
	}
	s.Stop(t)
	p.Click(`nav a[href="#/operator"]`)
	p.Await("#try-again")
	if text := p.Text("main"); !strings.Contains(text, "cannot be loaded") {
		t.Errorf("without the service the page says %q", text)
	}
	built.Start(t, folder, port)
	p.Click("#try-again")
	p.Await("#age")
}
