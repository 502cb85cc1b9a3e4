// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// before runs in each page before its own scripts. It makes the charts of ApexCharts stand still, so that pictures have
// them as they stay, and notes what goes wrong in the page.
const before = `window.Apex = {chart: {animations: {enabled: false}}};
	window.troubles = [];
	addEventListener('error', event => troubles.push(event.message || 'an element does not load'), true);
	addEventListener('unhandledrejection', event => troubles.push(String(event.reason)));
	addEventListener('securitypolicyviolation', event => troubles.push(event.violatedDirective + ' forbids ' + event.blockedURI));`

// Browser is a Chromium of Debian's without a screen, with one page.
type Browser struct {
	t        testing.TB
	page     context.Context
	pictures string // the folder of the pictures
	taken    int
	scheme   emulation.MediaFeature // whether the system is dark
}

// StartBrowser starts a browser that ends with the test. Pictures go to the folder that
// ALMANAC_PICTURES names, else to one of the test's own.
func StartBrowser(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("make check leaves out what needs a browser")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatalf("this test needs a browser: run `make test`, or install chromium: %v", err)
	}
	b := &Browser{t: t, pictures: os.Getenv("ALMANAC_PICTURES")}
	if b.pictures == "" {
		b.pictures = t.TempDir()
	}
	if err := os.MkdirAll(b.pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	var end context.CancelFunc
	b.page, end = chromedp.NewContext(context.WithoutCancel(t.Context()), chromedp.WithAllocatorOptions(
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(1400, 1000))) // root may not use the sandbox
	t.Cleanup(end)
	if err := chromedp.Do(b.page, beforeEach(before)); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b.Picture("failed")
		}
	})
	return b
}

// get carries out an action on the page, within the patience for a service, and returns its result.
func get[T any](b *Browser, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	limited, end := context.WithTimeout(b.page, patience)
	defer end()
	result, err := chromedp.Run(limited, action)
	if err != nil {
		b.t.Fatalf("%s: %v; its picture is in %s", what, err, b.pictures)
	}
	return result
}

// Before runs a script in each page that is opened from now on, before the page's own.
func (b *Browser) Before(script string) {
	b.t.Helper()
	get(b, "prepare pages", beforeEach(script))
}

func beforeEach(script string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	}
}

// Visit opens a page.
func (b *Browser) Visit(url string) {
	b.t.Helper()
	get(b, "visit "+url, chromedp.Navigate(url))
}

// Await waits until an element of the page is visible. Elements are named by CSS selectors.
func (b *Browser) Await(element string) {
	b.t.Helper()
	get(b, "await "+element, chromedp.WaitVisible(chromedp.CSS(element)))
}

// Click clicks on an element once it is visible.
func (b *Browser) Click(element string) {
	b.t.Helper()
	b.Await(element)
	get(b, "click on "+element, chromedp.Click(chromedp.CSS(element)))
}

// Fill replaces the text of a field once it is visible.
func (b *Browser) Fill(field, text string) {
	b.t.Helper()
	b.Await(field)
	get(b, "fill "+field, chromedp.SetValue(chromedp.CSS(field), text))
}

// Choose chooses a value of a list, which another element may hide.
func (b *Browser) Choose(list, value string) {
	b.t.Helper()
	get(b, "find "+list, chromedp.WaitReady(chromedp.CSS(list)))
	const script = `(() => { const list = document.querySelector(%q); list.value = %q;
		list.dispatchEvent(new Event('change', {bubbles: true})); return list.value })()`
	if chosen := get(b, "choose in "+list, chromedp.Evaluate[string](fmt.Sprintf(script, list, value))); chosen != value {
		b.t.Fatalf("%s has no value %q", list, value)
	}
}

// Text returns the visible text of an element.
func (b *Browser) Text(element string) string {
	b.t.Helper()
	return get(b, "read "+element, chromedp.Text(chromedp.CSS(element)))
}

// Edges returns where each element begins and ends on the page, from left to right, in pixels.
func (b *Browser) Edges(elements string) [][2]float64 {
	b.t.Helper()
	const script = `[...document.querySelectorAll(%q)].map(one => one.getBoundingClientRect()).map(place => [place.left, place.right])`
	return get(b, "measure "+elements, chromedp.Evaluate[[][2]float64](fmt.Sprintf(script, elements)))
}

// Evaluate runs a script in the page, awaits its promise and returns its value.
func Evaluate[T any](b *Browser, script string) T {
	b.t.Helper()
	return get(b, "run "+script[:min(len(script), 80)], chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Eventually waits until a script returns true.
func (b *Browser) Eventually(what, script string) {
	b.t.Helper()
	const wait = `new Promise(done => { const look = () => { let holds = false; try { holds = (%s) } catch { }
		if (holds) done(true); else setTimeout(look, 50) }; look() })`
	get(b, "wait until "+what, chromedp.Evaluate[bool](fmt.Sprintf(wait, script), chromedp.EvalAwaitPromise))
}

// Drag moves the pointer with its left button from one point of the page to another.
func (b *Browser) Drag(fromX, fromY, toX, toY float64) {
	b.t.Helper()
	held := func(p *input.DispatchMouseEventParams) { p.Buttons = 1 }
	for _, step := range []chromedp.Action[chromedp.Void]{
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, fromX, fromY),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, fromX, fromY, chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, (fromX+toX)/2, (fromY+toY)/2, chromedp.ButtonLeft, held),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, toX, toY, chromedp.ButtonLeft, held),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, toX, toY, chromedp.ButtonLeft, chromedp.ClickCount(1)),
	} {
		get(b, "drag", step)
	}
}

// Point moves the pointer to a point of the page.
func (b *Browser) Point(x, y float64) {
	b.t.Helper()
	get(b, "point", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}

// Press presses keys, which the element with the focus receives. Keys without a letter are those of package kb.
func (b *Browser) Press(keys string) {
	b.t.Helper()
	get(b, "press keys", chromedp.KeyEvent(keys))
}

// Look sets the size of the window, and whether the system is dark.
func (b *Browser) Look(width, height int, dark bool) {
	b.t.Helper()
	get(b, "resize", chromedp.EmulateViewport(int64(width), int64(height)))
	b.scheme = emulation.MediaFeature{Name: "prefers-color-scheme", Value: "light"}
	if dark {
		b.scheme.Value = "dark"
	}
	b.emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{&b.scheme}})
}

// OnPaper shows the page as a printer gets it.
func (b *Browser) OnPaper() {
	b.t.Helper()
	b.emulate(emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{&b.scheme}})
}

// WithForcedColors shows the page in the few colors that a user forces on all pages.
func (b *Browser) WithForcedColors() {
	b.t.Helper()
	b.emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}})
}

func (b *Browser) emulate(media emulation.SetEmulatedMediaParams) {
	b.t.Helper()
	get(b, "change the medium", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// Printed returns the page as a PDF.
func (b *Browser) Printed() []byte {
	b.t.Helper()
	return get(b, "print", func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		result, err := cdp.Call(ctx, target, page.PrintToPDF, page.PrintToPDFParams{})
		return result.Data, err
	})
}

// Live sets the zone of the system's clock, such as Europe/Paris, and its language.
func (b *Browser) Live(zone, language string) {
	b.t.Helper()
	get(b, "change the zone and the language", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: language})
		return err
	}))
}

// Cookies returns the cookies of the page's address.
func (b *Browser) Cookies() []*network.Cookie {
	b.t.Helper()
	return get(b, "read the cookies", func(ctx context.Context, target *chromedp.Target) ([]*network.Cookie, error) {
		result, err := cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{})
		return result.Cookies, err
	})
}

// Busy returns how long the main thread of the page's process has run on a processor since the page was opened or Busy
// was called first.
func (b *Browser) Busy() time.Duration {
	b.t.Helper()
	return get(b, "read the metrics", func(ctx context.Context, target *chromedp.Target) (time.Duration, error) {
		if _, err := cdp.Call(ctx, target, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
			return 0, err
		}
		result, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
		for _, metric := range result.Metrics {
			if metric.Name == "TaskDuration" {
				return time.Duration(metric.Value * float64(time.Second)), err
			}
		}
		return 0, cmp.Or(err, errors.New("there is no TaskDuration"))
	})
}

// Held is what a page holds: the megabytes of its scripts, elements and other nodes, and listeners.
type Held struct {
	Megabytes        float64
	Nodes, Listeners int
}

// Held collects what the page does not need any more and returns what it holds then.
func (b *Browser) Held() Held {
	b.t.Helper()
	return get(b, "collect the garbage", func(ctx context.Context, target *chromedp.Target) (held Held, err error) {
		for range 2 { // what the first leaves behind
			if _, err := cdp.Call(ctx, target, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return held, err
			}
		}
		if _, err := cdp.Call(ctx, target, performance.Enable, performance.EnableParams{}); err != nil {
			return held, err
		}
		result, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
		for _, metric := range result.Metrics {
			switch metric.Name {
			case "JSHeapUsedSize":
				held.Megabytes = metric.Value / 1e6
			case "Nodes":
				held.Nodes = int(metric.Value)
			case "JSEventListeners":
				held.Listeners = int(metric.Value)
			}
		}
		return held, err
	})
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
	if err := os.WriteFile(file, get(b, "take the picture "+name, chromedp.CaptureScreenshot()), 0o644); err != nil {
		b.t.Errorf("picture %s: %v", name, err)
	}
}

// The keys without a letter.
const (
	ArrowDown  = kb.ArrowDown
	ArrowRight = kb.ArrowRight
	Enter      = kb.Enter
	Tab        = kb.Tab
)
