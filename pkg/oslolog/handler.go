// SPDX-License-Identifier: Apache-2.0

// Package oslolog writes slog records as oslo.log writes Python's: as lines of its default format
// strings (oslo_log/_options.py) or as the JSON objects of its JSONFormatter
// (oslo_log/formatters.py), one line per record.
//
// Logged text cannot forge a line: every unprintable character is escaped. Every message and every
// value passes Mask, and the value of an attribute with the name of a secret is hidden completely.
// A message or value is cut at 8 KiB.
package oslolog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// Options are what a record does not contain.
type Options struct {
	Name  string       // the program, and the first part of the loggers' names
	Level slog.Leveler // the lowest level that is written; a *slog.LevelVar may change it at any time
	PID   int
	Host  string // in JSON only, as in oslo.log
	JSON  bool   // one JSON object per line instead of text
}

// New returns a handler that writes each record with one call of w.Write, one at a time. Three
// kinds of attributes outside of all groups have a place of their own:
//
//   - component: the logger's name is Name.component instead of Name;
//   - request_id: the record belongs to a request;
//   - beside a request_id, the other attributes of oslo.context:
//     global_request_id, user, project, domain, system_scope, user_domain and
//     project_domain, all of the caller. Without a request_id they are ordinary.
//
// Text shows all other attributes as key=value after the message, those of groups as
// group.key=value; JSON has them in the object extra.
func New(w io.Writer, o Options) slog.Handler {
	if o.JSON {
		return &handler{Options: o, write: jsonWriter(w, o)}
	}
	var mu sync.Mutex
	return &handler{Options: o, write: func(l line) error {
		var b bytes.Buffer
		l.text(&b, o.PID)
		mu.Lock()
		defer mu.Unlock()
		_, err := w.Write(b.Bytes())
		return err
	}}
}

// handler collects the attributes of a record for write.
type handler struct {
	Options
	write  func(line) error
	scopes []scope // in the order in which they were added
}

// scope is what one call of With adds: a new group, or attributes for the current group.
type scope struct {
	group      string
	attributes []slog.Attr // clean; only if group is empty
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.Level.Level() }

func (h *handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return h.with(append(slices.Clip(h.scopes), scope{attributes: clean(attributes)}))
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(append(slices.Clip(h.scopes), scope{group: name}))
}

func (h *handler) with(scopes []scope) slog.Handler {
	return &handler{Options: h.Options, write: h.write, scopes: scopes}
}

// Handle implements slog.Handler. It writes one line, with secrets masked.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	attributes := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		attributes = append(attributes, a)
		return true
	})
	all := clean(attributes)
	for _, s := range slices.Backward(h.scopes) {
		switch {
		case s.group == "":
			all = append(slices.Clip(s.attributes), all...)
		case len(all) > 0:
			all = []slog.Attr{{Key: s.group, Value: slog.GroupValue(all...)}}
		}
	}
	return h.write(newLine(h.Name, r, all))
}
