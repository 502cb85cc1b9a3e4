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

// manyHosts has more rows than a screen and than a sheet of paper.
const manyHosts = `hosts: [{name: "node-[001-120]", vcpus: 16, memory_mb: 65536, disk_gb: 500, zone: az1}]
`

func TestTheCalendarIsPrintedWithAllItsHosts(t *testing.T) {
	browser := labtest.StartBrowser(t)
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
	return labtest.Evaluate[string](p.Browser, fmt.Sprintf(`(() => {
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
