// SPDX-License-Identifier: Apache-2.0

package oslolog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/oslolog"
)

var at = time.Date(2026, 11, 21, 4, 15, 0, 123_456_789, time.UTC)

func options(json bool) oslolog.Options {
	return oslolog.Options{Name: "almanac", Level: slog.LevelDebug, PID: 26898, Host: "control1", JSON: json}
}

// written returns the output for one record without a source position.
func written(t *testing.T, o oslolog.Options, level slog.Level, with func(slog.Handler) slog.Handler, message string, args ...any) string {
	t.Helper()
	var b bytes.Buffer
	h := oslolog.New(&b, o)
	if with != nil {
		h = with(h)
	}
	r := slog.NewRecord(at, level, message, 0)
	r.Add(args...)
	if err := h.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func component(name string) func(slog.Handler) slog.Handler {
	return func(h slog.Handler) slog.Handler { return h.WithAttrs([]slog.Attr{slog.String("component", name)}) }
}

func TestTextFollowsOslosFormatStrings(t *testing.T) {
	for name, tc := range map[string]struct {
		level   slog.Level
		with    func(slog.Handler) slog.Handler
		message string
		args    []any
		want    string
	}{
		"outside of a request": {
			slog.LevelWarn, component("api"), "hello", nil,
			"2026-11-21 04:15:00.123 26898 WARNING almanac.api [-] hello",
		},
		"within a request": {
			slog.LevelInfo, component("api"), "with context",
			[]any{
				"request_id", "req-1", "global_request_id", "req-g", "user", "u1", "project", "p1",
				"user_domain", "default", "project_domain", "default", "status", 200,
			},
			"2026-11-21 04:15:00.123 26898 INFO almanac.api [req-g req-1 u1 p1 - - default default] with context status=200",
		},
		"a request that nobody came with": {
			slog.LevelInfo, nil, "m", []any{"request_id", "req-1", "user", ""},
			"2026-11-21 04:15:00.123 26898 INFO almanac [- req-1 - - - - - -] m",
		},
		"a project outside of a request is ordinary": {
			slog.LevelInfo, nil, "m", []any{"project", "p1"},
			"2026-11-21 04:15:00.123 26898 INFO almanac [-] m project=p1",
		},
		"the last word counts": {
			slog.LevelInfo, component("api"), "m", []any{"component", "bookings", "request_id", "a", "request_id", "b"},
			"2026-11-21 04:15:00.123 26898 INFO almanac.bookings [- b - - - - - -] m",
		},
		"Python's names of levels": {
			slog.LevelError, nil, "m", nil, "2026-11-21 04:15:00.123 26898 ERROR almanac [-] m",
		},
		"a step above the highest": {
			slog.LevelError + 4, nil, "m", nil, "2026-11-21 04:15:00.123 26898 CRITICAL almanac [-] m",
		},
		"between two levels": {
			slog.LevelInfo - 1, nil, "m", nil, "2026-11-21 04:15:00.123 26898 DEBUG almanac [-] m",
		},
		"values of every kind": {
			slog.LevelInfo, nil, "m",
			[]any{
				"i", -1, "f", 1.5, "b", true, "d", 90 * time.Second, "t", at, "e", errors.New("two words"), "none", nil,
				"struct", struct{ A, B int }{1, 2},
			},
			"2026-11-21 04:15:00.123 26898 INFO almanac [-] m i=-1 f=1.5 b=true d=1m30s t=2026-11-21T04:15:00.123456789Z" +
				` e="two words" none=<nil> struct="{A:1 B:2}"`,
		},
		"groups": {
			slog.LevelInfo,
			func(h slog.Handler) slog.Handler {
				h = h.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g").WithAttrs([]slog.Attr{slog.Int("b", 2)})
				return h.WithGroup("h")
			},
			"m",
			[]any{"c", 3, slog.Group("i", "d", 4), slog.Group("", "e", 5), slog.Group("empty"), "component", "not here", "request_id", "r"},
			`2026-11-21 04:15:00.123 26898 INFO almanac [-] m a=1 g.b=2 g.h.c=3 g.h.i.d=4 g.h.e=5 g.h.component="not here" g.h.request_id=r`,
		},
		"a value that is no plain word": {
			slog.LevelInfo, nil, "say \"what\" = you like",
			[]any{"empty", "", "quote", `a"b`, "equals", "a=b", "backslash", `a\b`, "key with=", "x", "umlaut", "für"},
			`2026-11-21 04:15:00.123 26898 INFO almanac [-] say "what" = you like empty="" quote="a\"b" equals="a=b"` +
				` backslash="a\\b" "key with="=x umlaut=für`,
		},
		"secrets": {
			slog.LevelInfo, nil, "open mysql://u:aaaaa@db/almanac",
			[]any{
				"password", "aaaaa", "auth_token", slog.GroupValue(slog.String("id", "aaaaa")), "pin_secret", 12345,
				"error", errors.New("token=aaaaa"), slog.Group("g", "url", "amqp://u:aaaaa@h"), "config", struct{ Password string }{"aaaaa"},
			},
			`2026-11-21 04:15:00.123 26898 INFO almanac [-] open mysql://u:***@db/almanac password=*** auth_token=*** pin_secret=***` +
				` error="token=***" g.url=amqp://u:***@h config={Password:***`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := written(t, options(false), tc.level, tc.with, tc.message, tc.args...)
			if diff := cmp.Diff(tc.want+"\n", got); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDebugLinesEndWithWhereTheyWereMade(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(oslolog.New(&b, options(false)))
	log.Debug("here")
	if got := b.String(); !strings.Contains(got, "] here oslolog_test.TestDebug") || !strings.Contains(got, "/handler_test.go:") {
		t.Errorf("got %q", got)
	}
	b.Reset()
	log.Info("here")
	if got := b.String(); !strings.HasSuffix(got, "] here\n") {
		t.Errorf("got %q, want no place behind other levels", got)
	}
}

func TestTheLevelMayChangeAtAnyTime(t *testing.T) {
	var b bytes.Buffer
	var level slog.LevelVar
	o := options(false)
	o.Level = &level
	log := slog.New(oslolog.New(&b, o)).With("component", "api").WithGroup("g")
	log.Debug("first")
	level.Set(slog.LevelDebug)
	log.Debug("second")
	level.Set(slog.LevelInfo)
	log.Debug("third")
	if got := b.String(); strings.Contains(got, "first") || !strings.Contains(got, "second") || strings.Contains(got, "third") {
		t.Errorf("got %q, want the second only", got)
	}
}

func TestJSONHasTheFieldsOfOslosFormatter(t *testing.T) {
	for name, tc := range map[string]struct {
		args []any
		want map[string]any // in addition to the fields of every line
	}{
		"outside of a request": {nil, map[string]any{"name": "almanac", "context": map[string]any{}, "extra": map[string]any{}}},
		"within a request": {
			[]any{"component", "api", "request_id", "req-1", "user", "u1", "status", 200, "password", "aaaaa", slog.Group("g", "a", "b")},
			map[string]any{
				"name":    "almanac.api",
				"context": map[string]any{"request_id": "req-1", "user": "u1"},
				"extra":   map[string]any{"status": 200.0, "password": "***", "g": map[string]any{"a": "b"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range map[string]any{
				"message": "two\nlines", "asctime": "2026-11-21 04:15:00", "created": 1795234500.123456, "msecs": 123.0,
				"levelname": "CRITICAL", "levelno": 50.0, "process": 26898.0, "hostname": "control1",
			} {
				tc.want[key] = value
			}
			line := written(t, options(true), slog.LevelError+4, nil, "two\nlines", tc.args...)
			var got map[string]any
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}

// flat returns an object of the log in the form of slogtest.
func flat(t *testing.T, line []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(line, &object); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	result := object["extra"].(map[string]any)
	for ours, theirs := range map[string]string{"message": slog.MessageKey, "levelname": slog.LevelKey, "asctime": slog.TimeKey} {
		if value, ok := object[ours]; ok {
			result[theirs] = value
		}
	}
	return result
}

func TestJSONKeepsTheRulesOfSlog(t *testing.T) {
	var b bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		b.Reset()
		return oslolog.New(&b, options(true))
	}, func(t *testing.T) map[string]any { return flat(t, b.Bytes()) })
}

func TestHandlersFromOneShareNothingButTheWriter(t *testing.T) {
	var b bytes.Buffer
	parent := slog.New(oslolog.New(&b, options(false))).With("a", 1)
	one, two := parent.With("b", 2), parent.With("c", 3)
	one.Info("one")
	two.Info("two")
	parent.WithGroup("g").Info("empty group")
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{"one a=1 b=2", "two a=1 c=3", "empty group a=1"} {
		if !strings.HasSuffix(lines[i], "] "+want) {
			t.Errorf("line %d: got %q, want it to end %q", i, lines[i], want)
		}
	}
}

func TestALineStaysShorterThanJournaldSplitsIt(t *testing.T) {
	for name, unit := range map[string]string{"two bytes": "ü", "escaped": "\x00"} {
		got := written(t, options(false), slog.LevelInfo, nil, "m", "path", strings.Repeat(unit, 1<<20))
		want := fmt.Sprintf(" ... and %d bytes more\"\n", len(unit)<<20-8<<10)
		if len(got) > 48<<10 || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %d bytes that end %q, want fewer than 48 KiB that end %q", name, len(got), got[len(got)-40:], want)
		}
	}
}

func FuzzARecordIsOneLineWhateverItSays(f *testing.F) {
	f.Add("m\n2026-11-21 04:15:00.123 1 INFO almanac [-] forged", "k\r", "v\u2028\x1b[0m\x00", "c] forged")
	f.Add("\xff", "\xff", "\xff", "\u0085")
	f.Fuzz(func(t *testing.T, message, key, value, component string) {
		for _, json := range []bool{false, true} {
			var b bytes.Buffer
			r := slog.NewRecord(at, slog.LevelInfo, message, 0)
			r.Add(slog.String(key, value), slog.Any(key, errors.New(value)), slog.String("component", component), slog.String("request_id", value))
			if err := oslolog.New(&b, options(json)).WithGroup(key).Handle(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			r.AddAttrs(slog.String("user", value))
			if err := oslolog.New(&b, options(json)).Handle(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\r\x1b\x00\u0085\u2028") && !json {
				t.Errorf("two records become %q", got)
			}
			if json {
				for line := range strings.Lines(b.String()) {
					flat(t, []byte(line))
				}
			}
		}
	})
}
