// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chromium is a page of a Chromium.
type chromium struct {
	page   context.Context
	scheme emulation.MediaFeature // whether the system is dark
}

// StartBrowser starts a Chromium that ends with the test.
func StartBrowser(t testing.TB) *Browser {
	t.Helper()
	return newBrowser(t, func(t testing.TB) driver {
		if _, err := exec.LookPath("chromium"); err != nil {
			t.Fatalf("this test needs a browser: run `make test`, or install chromium: %v", err)
		}
		page, end := chromedp.NewContext(context.WithoutCancel(t.Context()), chromedp.WithAllocatorOptions(
			chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(1400, 1000))) // root may not use the sandbox
		t.Cleanup(end)
		if err := chromedp.Do(page, chromedp.Navigate("about:blank")); err != nil {
			t.Fatalf("start chromium: %v", err)
		}
		return &chromium{page: page}
	})
}

// run carries out an action on the page until the context ends.
func run[T any](ctx context.Context, c *chromium, action chromedp.Action[T]) (T, error) {
	limited, end := context.WithCancel(c.page)
	defer end()
	defer context.AfterFunc(ctx, end)()
	result, err := chromedp.Run(limited, action)
	return result, cmp.Or(ctx.Err(), err)
}

// send sends one command of the DevTools protocol.
func send[P, R any](ctx context.Context, c *chromium, method cdp.Command[P, R], params P) (R, error) {
	return run(ctx, c, func(ctx context.Context, target *chromedp.Target) (R, error) {
		return cdp.Call(ctx, target, method, params)
	})
}

func (c *chromium) prepare(ctx context.Context, script string) error {
	_, err := send(ctx, c, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	return err
}

func (c *chromium) visit(ctx context.Context, url string) error {
	_, err := run(ctx, c, chromedp.Navigate(url))
	return err
}

func (c *chromium) evaluate(ctx context.Context, script string) (json.RawMessage, error) {
	awaited, byValue := true, true
	got, err := send(ctx, c, runtime.Evaluate, runtime.EvaluateParams{Expression: script, AwaitPromise: &awaited, ReturnByValue: &byValue})
	switch {
	case isLeft(err):
		return nil, fmt.Errorf("%w: %w", errLeft, err)
	case err != nil:
		return nil, err
	case got.ExceptionDetails != nil:
		return nil, &chromedp.ExceptionError{ExceptionDetails: got.ExceptionDetails}
	case got.Result.UnserializableValue != "" || len(got.Result.Value) == 0:
		return nil, fmt.Errorf("the result is %s%s, not a value of JSON", got.Result.Type, got.Result.UnserializableValue)
	}
	return json.RawMessage(got.Result.Value), nil
}

// isLeft reports whether Chromium answered that the page of a script is there no more.
func isLeft(err error) bool {
	answer, is := errors.AsType[*cdproto.Error](err)
	return is && answer.Message == "Inspected target navigated or closed"
}

func (c *chromium) point(ctx context.Context, x, y float64) error {
	_, err := run(ctx, c, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	return err
}

func (c *chromium) drag(ctx context.Context, through [][2]float64) error {
	from, to := through[0], through[len(through)-1]
	steps := []chromedp.Action[chromedp.Void]{
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, from[0], from[1]),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, from[0], from[1], chromedp.ButtonLeft, chromedp.ClickCount(1)),
	}
	for _, at := range through[1:] {
		steps = append(steps, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1], chromedp.ButtonLeft,
			func(p *input.DispatchMouseEventParams) { p.Buttons = 1 }))
	}
	steps = append(steps, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, to[0], to[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	_, err := run(ctx, c, chromedp.Steps(steps...))
	return err
}

func (c *chromium) press(ctx context.Context, keys string) error {
	_, err := run(ctx, c, chromedp.KeyEvent(keys))
	return err
}

func (c *chromium) resize(ctx context.Context, width, height int, dark bool) error {
	if _, err := run(ctx, c, chromedp.EmulateViewport(int64(width), int64(height))); err != nil {
		return err
	}
	c.scheme = emulation.MediaFeature{Name: "prefers-color-scheme", Value: "light"}
	if dark {
		c.scheme.Value = "dark"
	}
	return c.emulate(ctx, "", &c.scheme)
}

func (c *chromium) emulate(ctx context.Context, medium string, feature *emulation.MediaFeature) error {
	_, err := send(ctx, c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium, Features: []*emulation.MediaFeature{feature}})
	return err
}

func (c *chromium) live(ctx context.Context, zone, language string) error {
	if _, err := send(ctx, c, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone}); err != nil {
		return err
	}
	_, err := send(ctx, c, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: language})
	return err
}

func (c *chromium) picture(ctx context.Context) ([]byte, error) {
	return run(ctx, c, chromedp.CaptureScreenshot())
}

// inChromium carries out what only Chromium can.
func inChromium(b *Browser, what string, action func(context.Context, *chromium) error) {
	b.t.Helper()
	b.do(what, func(ctx context.Context) error {
		c, ok := b.page.(*chromium)
		if !ok {
			return errors.New("only Chromium can do this")
		}
		return action(ctx, c)
	})
}

// OnPaper shows the page as a printer gets it.
func (b *Browser) OnPaper() {
	b.t.Helper()
	inChromium(b, "show it on paper", func(ctx context.Context, c *chromium) error { return c.emulate(ctx, "print", &c.scheme) })
}

// WithForcedColors shows the page in the few colors that a user forces on all pages.
func (b *Browser) WithForcedColors() {
	b.t.Helper()
	inChromium(b, "force the colors", func(ctx context.Context, c *chromium) error {
		return c.emulate(ctx, "", &emulation.MediaFeature{Name: "forced-colors", Value: "active"})
	})
}

// Printed returns the page as a PDF.
func (b *Browser) Printed() (sheets []byte) {
	b.t.Helper()
	inChromium(b, "print", func(ctx context.Context, c *chromium) error {
		result, err := send(ctx, c, page.PrintToPDF, page.PrintToPDFParams{})
		sheets = result.Data
		return err
	})
	return sheets
}

// Cookies returns the cookies of the page's address.
func (b *Browser) Cookies() (cookies []*network.Cookie) {
	b.t.Helper()
	inChromium(b, "read the cookies", func(ctx context.Context, c *chromium) error {
		result, err := send(ctx, c, network.GetCookies, network.GetCookiesParams{})
		cookies = result.Cookies
		return err
	})
	return cookies
}

// Busy returns how long the main thread of the page's process has run on a processor since the page was opened or Busy
// was called first.
func (b *Browser) Busy() time.Duration {
	b.t.Helper()
	var busy float64
	inChromium(b, "read the metrics", func(ctx context.Context, c *chromium) (err error) {
		busy, err = c.metric(ctx, performance.EnableTimeDomainThreadTicks, "TaskDuration")
		return err
	})
	return time.Duration(busy * float64(time.Second))
}

// Held is what a page holds: the megabytes of its scripts, elements and other nodes, and listeners.
type Held struct {
	Megabytes        float64
	Nodes, Listeners int
}

// Held collects what the page does not need any more and returns what it holds then.
func (b *Browser) Held() (held Held) {
	b.t.Helper()
	inChromium(b, "collect the garbage", func(ctx context.Context, c *chromium) error {
		for range 2 { // what the first leaves behind
			if _, err := send(ctx, c, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return err
			}
		}
		bytes, errBytes := c.metric(ctx, "", "JSHeapUsedSize")
		nodes, errNodes := c.metric(ctx, "", "Nodes")
		listeners, errListeners := c.metric(ctx, "", "JSEventListeners")
		held = Held{Megabytes: bytes / 1e6, Nodes: int(nodes), Listeners: int(listeners)}
		return errors.Join(errBytes, errNodes, errListeners)
	})
	return held
}

// metric reads one of Chromium's metrics of the page. The domain is that of its times.
func (c *chromium) metric(ctx context.Context, domain performance.EnableTimeDomain, name string) (float64, error) {
	if _, err := send(ctx, c, performance.Enable, performance.EnableParams{TimeDomain: domain}); err != nil {
		return 0, err
	}
	result, err := send(ctx, c, performance.GetMetrics, cdp.Empty{})
	for _, metric := range result.Metrics {
		if metric.Name == name {
			return metric.Value, err
		}
	}
	return 0, cmp.Or(err, fmt.Errorf("there is no %s", name))
}

// The keys without a letter.
const (
	ArrowDown  = kb.ArrowDown
	ArrowRight = kb.ArrowRight
	Enter      = kb.Enter
	Tab        = kb.Tab
)
