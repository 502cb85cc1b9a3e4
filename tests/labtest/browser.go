// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// before runs in each page before its own scripts. It makes the charts of ApexCharts stand still, so that pictures have
// them as they stay, and notes what goes wrong in the page.
const before = `window.Apex = {chart: {animations: {enabled: false}}};
	window.troubles = [];
	addEventListener('error', event => troubles.push(event.message || 'an element does not load'), true);
	addEventListener('unhandledrejection', event => troubles.push(String(event.reason)));
	addEventListener('securitypolicyviolation', event => troubles.push(event.violatedDirective + ' forbids ' + event.blockedURI));`

// Browser is a browser of Debian's without a screen, with one page.
type Browser struct {
	t        testing.TB
	page     driver
	pictures string // the folder of the pictures
	taken    int
}

// driver carries out what a user does in the page of a browser.
type driver interface {
	prepare(ctx context.Context, script string) error // runs it in each page that is opened from now on, before the page's own
	visit(ctx context.Context, url string) error
	evaluate(ctx context.Context, script string) (json.RawMessage, error) // awaits its promise; errLeft if the page is left
	point(ctx context.Context, x, y float64) error
	drag(ctx context.Context, through [][2]float64) error // with the left button, from the first point to the last
	press(ctx context.Context, keys string) error
	resize(ctx context.Context, width, height int, dark bool) error
	live(ctx context.Context, zone, language string) error
	picture(ctx context.Context) ([]byte, error)
}

// errLeft is the error of a script whose page was left before its promise was kept.
var errLeft = errors.New("the page was left")

// newBrowser returns a Browser whose page a driver has opened. Pictures go to the folder that ALMANAC_PICTURES names,
// else to one of the test's own.
func newBrowser(t testing.TB, start func(testing.TB) driver) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("make check leaves out what needs a browser")
	}
	b := &Browser{t: t, pictures: os.Getenv("ALMANAC_PICTURES")}
	if b.pictures == "" {
		b.pictures = t.TempDir()
	}
	if err := os.MkdirAll(b.pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	b.page = start(t)
	b.Before(before)
	t.Cleanup(func() {
		if t.Failed() {
			b.Picture("failed")
		}
	})
	return b
}

// do carries out an action within the patience for a service.
func (b *Browser) do(what string, action func(context.Context) error) {
	b.t.Helper()
	limited, end := context.WithTimeout(context.WithoutCancel(b.t.Context()), patience)
	defer end()
	if err := action(limited); err != nil {
		b.t.Fatalf("%s: %v; its picture is in %s", what, err, b.pictures)
	}
}

// Before runs a script in each page that is opened from now on, before the page's own.
func (b *Browser) Before(script string) {
	b.t.Helper()
	b.do("prepare pages", func(ctx context.Context) error { return b.page.prepare(ctx, script) })
}

// Visit opens a page.
func (b *Browser) Visit(url string) {
	b.t.Helper()
	b.do("visit "+url, func(ctx context.Context) error { return b.page.visit(ctx, url) })
}

// Evaluate runs a script in the page, awaits its promise and returns its value.
func Evaluate[T any](b *Browser, script string) T {
	b.t.Helper()
	return evaluate[T](b, "run "+script[:min(len(script), 80)], script)
}

func evaluate[T any](b *Browser, what, script string) (value T) {
	b.t.Helper()
	b.do(what, func(ctx context.Context) error {
		result, err := b.page.evaluate(ctx, script)
		if err != nil {
			return err
		}
		return json.Unmarshal(result, &value)
	})
	return value
}

// Eventually waits until a script returns true, in this page or in one that comes in its place.
func (b *Browser) Eventually(what, script string) {
	b.t.Helper()
	const wait = `new Promise(done => { const look = () => { let holds = false; try { holds = (%s) } catch { }
		if (holds) done(true); else setTimeout(look, 50) }; look() })`
	b.do("wait until "+what, func(ctx context.Context) error {
		for {
			if _, err := b.page.evaluate(ctx, fmt.Sprintf(wait, script)); !errors.Is(err, errLeft) {
				return err
			}
		}
	})
}

// Await waits until an element of the page is visible. Elements are named by CSS selectors.
func (b *Browser) Await(element string) {
	b.t.Helper()
	b.Eventually(element+" is visible", fmt.Sprintf(`document.querySelector(%q).checkVisibility({visibilityProperty: true})`, element))
}

// Click clicks in the middle of an element once it is visible.
func (b *Browser) Click(element string) {
	b.t.Helper()
	b.Await(element)
	const middle = `(() => { const one = document.querySelector(%q);
		one.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});
		const [place] = one.getClientRects(); return [place.left + place.width / 2, place.top + place.height / 2] })()`
	at := evaluate[[2]float64](b, "find "+element, fmt.Sprintf(middle, element))
	b.drag("click on "+element, at)
}

// Fill replaces the text of a field once it is visible.
func (b *Browser) Fill(field, text string) {
	b.t.Helper()
	b.Await(field)
	const fill = `(() => { const field = document.querySelector(%q); field.value = %q;
		for (const event of ['input', 'change']) field.dispatchEvent(new Event(event, {bubbles: true})); return true })()`
	evaluate[bool](b, "fill "+field, fmt.Sprintf(fill, field, text))
}

// Choose chooses a value of a list, which another element may hide.
func (b *Browser) Choose(list, value string) {
	b.t.Helper()
	b.Eventually(list+" is there", fmt.Sprintf(`document.querySelector(%q)`, list))
	const choose = `(() => { const list = document.querySelector(%q); list.value = %q;
		list.dispatchEvent(new Event('change', {bubbles: true})); return list.value })()`
	if chosen := evaluate[string](b, "choose in "+list, fmt.Sprintf(choose, list, value)); chosen != value {
		b.t.Fatalf("%s has no value %q", list, value)
	}
}

// Text returns the visible text of an element.
func (b *Browser) Text(element string) string {
	b.t.Helper()
	b.Await(element)
	return evaluate[string](b, "read "+element, fmt.Sprintf(`document.querySelector(%q).innerText`, element))
}

// Edges returns where each element begins and ends on the page, from left to right, in pixels.
func (b *Browser) Edges(elements string) [][2]float64 {
	b.t.Helper()
	const measure = `[...document.querySelectorAll(%q)].map(one => one.getBoundingClientRect()).map(place => [place.left, place.right])`
	return evaluate[[][2]float64](b, "measure "+elements, fmt.Sprintf(measure, elements))
}

// Drag moves the pointer with its left button from one point of the page to another.
func (b *Browser) Drag(fromX, fromY, toX, toY float64) {
	b.t.Helper()
	b.drag("drag", [2]float64{fromX, fromY}, [2]float64{(fromX + toX) / 2, (fromY + toY) / 2}, [2]float64{toX, toY})
}

func (b *Browser) drag(what string, through ...[2]float64) {
	b.t.Helper()
	b.do(what, func(ctx context.Context) error { return b.page.drag(ctx, through) })
}

// Point moves the pointer to a point of the page.
func (b *Browser) Point(x, y float64) {
	b.t.Helper()
	b.do("point", func(ctx context.Context) error { return b.page.point(ctx, x, y) })
}

// Press presses keys, which the element with the focus receives.
func (b *Browser) Press(keys string) {
	b.t.Helper()
	b.do("press keys", func(ctx context.Context) error { return b.page.press(ctx, keys) })
}

// Look sets the size of the window, and whether the system is dark, which Firefox's never is.
func (b *Browser) Look(width, height int, dark bool) {
	b.t.Helper()
	b.do("resize", func(ctx context.Context) error { return b.page.resize(ctx, width, height, dark) })
}

// Live sets the zone of the system's clock, such as Europe/Paris, and its language.
func (b *Browser) Live(zone, language string) {
	b.t.Helper()
	b.do("change the zone and the language", func(ctx context.Context) error { return b.page.live(ctx, zone, language) })
}

// Troubles returns what went wrong in the page since it was opened: errors of its scripts, and what its
// Content-Security-Policy has forbidden.
func (b *Browser) Troubles() []string {
	b.t.Helper()
	return Evaluate[[]string](b, `troubles`)
}

// Picture writes a picture of the page.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	b.taken++
	file := filepath.Join(b.pictures, fmt.Sprintf("%02d-%s.png", b.taken, name))
	b.do("take the picture "+name, func(ctx context.Context) error {
		picture, err := b.page.picture(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(file, picture, 0o644)
	})
}
