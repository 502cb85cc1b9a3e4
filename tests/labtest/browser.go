package labtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// still makes the charts of ApexCharts stand still, so that pictures have them as they stay.
const still = `window.Apex = {chart: {animations: {enabled: false}}}`

// Browser is a Chromium of Debian's without a screen, with one page.
type Browser struct {
	t        testing.TB
	page     context.Context
	pictures string // the folder of the pictures
	taken    int
}

// StartBrowser starts a browser that ends with the test. Pictures go to the folder that
// ALMANAC_PICTURES names, else to one of the test's own.
func StartBrowser(t testing.TB) *Browser {
	t.Helper()
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
	if err := chromedp.Do(b.page, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: still})
		return chromedp.Void{}, err
	}); err != nil {
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

// Picture writes a picture of the page.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	b.taken++
	file := filepath.Join(b.pictures, fmt.Sprintf("%02d-%s.png", b.taken, name))
	if err := os.WriteFile(file, get(b, "take the picture "+name, chromedp.CaptureScreenshot()), 0o644); err != nil {
		b.t.Errorf("picture %s: %v", name, err)
	}
}
