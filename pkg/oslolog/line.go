// SPDX-License-Identifier: Apache-2.0

package oslolog

import (
	"bytes"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// identity lists the attributes of the caller of a request, in the order of oslo's
// logging_context_format_string.
var identity = []string{
	"global_request_id", "request_id", "user", "project", "domain", "system_scope", "user_domain", "project_domain",
}

// line is a record with its attributes sorted by their place in the output.
type line struct {
	time    time.Time // zero: unknown
	level   level
	logger  string
	message string
	context []slog.Attr // those in identity; none outside of a request
	extra   []slog.Attr
	source  *runtime.Frame // nil: unknown
}

// newLine requires clean attributes.
func newLine(name string, r slog.Record, attributes []slog.Attr) line {
	l := line{time: r.Time, level: levelOf(r.Level), logger: name, message: shown(r.Message), source: source(r.PC)}
	request := slices.ContainsFunc(attributes, func(a slog.Attr) bool { return a.Key == "request_id" })
	for _, a := range attributes {
		switch {
		case a.Key == "component":
			l.logger = name + "." + a.Value.String()
		case request && slices.Contains(identity, a.Key):
			l.context = append(l.context, a)
		default:
			l.extra = append(l.extra, a)
		}
	}
	return l
}

// source returns the place in the code that made the record.
func source(pc uintptr) *runtime.Frame {
	if pc == 0 {
		return nil
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return &frame
}

// level is a level of Python's logging.
type level struct {
	name   string
	number int
}

// levelOf returns the highest level of Python that l reaches. A level at least one step (4) above
// slog's highest is CRITICAL.
func levelOf(l slog.Level) level {
	switch {
	case l >= slog.LevelError+4:
		return level{"CRITICAL", 50}
	case l >= slog.LevelError:
		return level{"ERROR", 40}
	case l >= slog.LevelWarn:
		return level{"WARNING", 30}
	case l >= slog.LevelInfo:
		return level{"INFO", 20}
	default:
		return level{"DEBUG", 10}
	}
}

// text writes the line in the format of oslo.log's logging_context_format_string or, outside of a
// request, logging_default_format_string; at level DEBUG it adds logging_debug_format_suffix.
func (l line) text(b *bytes.Buffer, pid int) {
	if !l.time.IsZero() {
		b.WriteString(l.time.Format("2006-01-02 15:04:05.000 "))
	}
	b.WriteString(strconv.Itoa(pid) + " " + l.level.name + " " + quoted(l.logger, "[]") + " [")
	if l.context == nil {
		b.WriteString("-")
	} else {
		for i, key := range identity {
			if i > 0 {
				b.WriteString(" ")
			}
			b.WriteString(quoted(l.identity(key), "[]"))
		}
	}
	b.WriteString("] ")
	b.WriteString(escaped(l.message))
	pairs(b, "", l.extra)
	if l.level.name == "DEBUG" && l.source != nil {
		b.WriteString(" " + path.Base(l.source.Function) + " " + l.source.File + ":" + strconv.Itoa(l.source.Line))
	}
	b.WriteString("\n")
}

// identity returns the context's value of key, or "-". The last attribute with that key wins.
func (l line) identity(key string) string {
	for _, a := range slices.Backward(l.context) {
		if value := a.Value.String(); a.Key == key && value != "" {
			return value
		}
	}
	return "-"
}

// pairs writes the attributes, and those of groups, each after a space.
func pairs(b *bytes.Buffer, prefix string, attributes []slog.Attr) {
	for _, a := range attributes {
		if a.Value.Kind() == slog.KindGroup {
			pairs(b, prefix+a.Key+".", a.Value.Group())
			continue
		}
		b.WriteString(" " + quoted(prefix+a.Key, "=") + "=" + quoted(a.Value.String(), "="))
	}
}

// quoted puts text in quotes unless it is one word of printable characters without quotes,
// backslashes and the characters in special.
func quoted(text, special string) string {
	plain := func(r rune) bool { return r != ' ' && unicode.IsPrint(r) && !strings.ContainsRune(`"\`+special, r) }
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return strconv.Quote(text)
}

// escaped returns text with every unprintable character escaped as in a string of Go or JSON.
func escaped(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
