// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// firefox is a page of a Firefox, which speaks WebDriver BiDi of the W3C itself.
type firefox struct {
	socket  *websocket.Conn
	answers chan answer
	page    string // the browsing context
	asked   int    // the number of the last command
}

// answer is the answer to the command with its number.
type answer struct {
	ID                   int
	Type, Error, Message string
	Result               json.RawMessage
}

// StartFirefox starts a Firefox that ends with the test.
func StartFirefox(t testing.TB) *Browser {
	t.Helper()
	return newBrowser(t, func(t testing.TB) driver {
		program, err := exec.LookPath("firefox-esr")
		if err != nil {
			t.Fatalf("this test needs Firefox: run `make test`, or install firefox-esr: %v", err)
		}
		folder, port := t.TempDir(), freePorts(t, 1)
		process, err := launch(nil, filepath.Join(folder, "log"), program, "--headless", "--no-remote",
			"--profile", folder, "--remote-debugging-port", fmt.Sprint(port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(process.kill)
		f := &firefox{}
		if err := process.answers(patience, func() error { return f.connect(t.Context(), port) }); err != nil {
			t.Fatal(err)
		}
		return f
	})
}

// connect begins a session and finds its page.
func (f *firefox) connect(ctx context.Context, port int) (err error) {
	limited, end := context.WithTimeout(ctx, patience)
	defer end()
	if f.socket, _, err = websocket.Dial(limited, fmt.Sprintf("ws://127.0.0.1:%d/session", port), nil); err != nil {
		return err
	}
	f.socket.SetReadLimit(64 << 20) // a picture
	f.answers = make(chan answer, 1)
	go f.listen()
	// The window that is there at first is not the active one, and its elements would hear nothing of their focus.
	var window struct{ Context string }
	if err := errors.Join(f.command(limited, "session.new", object{"capabilities": object{}}, nil),
		f.command(limited, "browsingContext.create", object{"type": "window"}, &window)); err != nil {
		return err
	}
	f.page = window.Context
	return nil
}

// object is an object of JSON.
type object map[string]any

// command sends a command and reads its result.
func (f *firefox) command(ctx context.Context, method string, params object, result any) error {
	f.asked++
	if err := wsjson.Write(ctx, f.socket, object{"id": f.asked, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case got, open := <-f.answers:
			switch {
			case !open:
				return errors.New("Firefox has ended")
			case got.ID != f.asked: // the late answer of a command whose time was up
			case got.Type == "error":
				return fmt.Errorf("%s: %s: %s", method, got.Error, got.Message)
			case result == nil:
				return nil
			default:
				return json.Unmarshal(got.Result, result)
			}
		}
	}
}

// listen reads answers until the connection ends. It reads without a limit of time, which would end the connection.
func (f *firefox) listen() {
	defer close(f.answers)
	for {
		var got answer
		if wsjson.Read(context.Background(), f.socket, &got) != nil {
			return
		}
		f.answers <- got
	}
}

func (f *firefox) prepare(ctx context.Context, script string) error {
	return f.command(ctx, "script.addPreloadScript", object{"functionDeclaration": "() => {" + script + "\n}"}, nil)
}

func (f *firefox) visit(ctx context.Context, url string) error {
	return f.command(ctx, "browsingContext.navigate", object{"context": f.page, "url": url, "wait": "complete"}, nil)
}

func (f *firefox) evaluate(ctx context.Context, script string) (json.RawMessage, error) {
	var got struct {
		Type             string
		Result           remote
		ExceptionDetails struct{ Text string }
	}
	if err := f.command(ctx, "script.evaluate", object{"expression": script, "target": object{"context": f.page}, "awaitPromise": true}, &got); err != nil {
		return nil, err
	}
	if got.Type == "exception" {
		return nil, errors.New(got.ExceptionDetails.Text)
	}
	value, err := got.Result.plain()
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// remote is a value of a script as WebDriver BiDi writes it: with its type, and an object as pairs.
type remote struct {
	Type  string
	Value json.RawMessage
}

// plain returns the value as encoding/json has it.
func (r remote) plain() (any, error) {
	switch r.Type {
	case "null":
		return nil, nil
	case "string", "boolean", "number":
		return r.Value, nil
	case "array":
		var items []remote
		if err := json.Unmarshal(r.Value, &items); err != nil {
			return nil, err
		}
		list := []any{}
		for _, item := range items {
			value, err := item.plain()
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case "object":
		var pairs [][2]json.RawMessage
		if err := json.Unmarshal(r.Value, &pairs); err != nil {
			return nil, err
		}
		return plainObject(pairs)
	}
	return nil, fmt.Errorf("the result has the type %s, which JSON does not have", r.Type)
}

func plainObject(pairs [][2]json.RawMessage) (object, error) {
	values := object{}
	for _, pair := range pairs {
		var name string
		var item remote
		if err := errors.Join(json.Unmarshal(pair[0], &name), json.Unmarshal(pair[1], &item)); err != nil {
			return nil, err
		}
		if item.Type == "undefined" {
			continue
		}
		value, err := item.plain()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values[name] = value
	}
	return values, nil
}

func (f *firefox) point(ctx context.Context, x, y float64) error {
	return f.act(ctx, "pointer", move(x, y))
}

func (f *firefox) drag(ctx context.Context, through [][2]float64) error {
	actions := []object{move(through[0][0], through[0][1]), {"type": "pointerDown", "button": 0}}
	for _, at := range through[1:] {
		actions = append(actions, move(at[0], at[1]))
	}
	return f.act(ctx, "pointer", append(actions, object{"type": "pointerUp", "button": 0})...)
}

func move(x, y float64) object { return object{"type": "pointerMove", "x": int(x), "y": int(y)} }

// keysOfWebDriver are the keys without a letter, as section 17.4.2 of WebDriver numbers them.
var keysOfWebDriver = map[string]string{ArrowDown: "\uE015", ArrowRight: "\uE014", Enter: "\uE007", Tab: "\uE004"}

func (f *firefox) press(ctx context.Context, keys string) error {
	var actions []object
	for _, key := range keys {
		value := string(key)
		if named, ok := keysOfWebDriver[value]; ok {
			value = named
		}
		actions = append(actions, object{"type": "keyDown", "value": value}, object{"type": "keyUp", "value": value})
	}
	return f.act(ctx, "key", actions...)
}

// act does something with the pointer or the keyboard.
func (f *firefox) act(ctx context.Context, device string, actions ...object) error {
	return f.command(ctx, "input.performActions", object{"context": f.page, "actions": []object{{"type": device, "id": device, "actions": actions}}}, nil)
}

func (f *firefox) resize(ctx context.Context, width, height int, dark bool) error {
	if dark {
		return errors.New("WebDriver BiDi has no command for a dark system")
	}
	return f.command(ctx, "browsingContext.setViewport", object{"context": f.page, "viewport": object{"width": width, "height": height}}, nil)
}

func (f *firefox) live(ctx context.Context, zone, language string) error {
	return errors.Join(
		f.command(ctx, "emulation.setTimezoneOverride", object{"contexts": []string{f.page}, "timezone": zone}, nil),
		f.command(ctx, "emulation.setLocaleOverride", object{"contexts": []string{f.page}, "locale": language}, nil))
}

func (f *firefox) picture(ctx context.Context) ([]byte, error) {
	var taken struct{ Data string }
	if err := f.command(ctx, "browsingContext.captureScreenshot", object{"context": f.page}, &taken); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(taken.Data)
}
