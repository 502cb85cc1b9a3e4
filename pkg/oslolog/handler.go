// Package oslolog writes slog records as oslo.log writes Python's: in the lines of
// its default format strings (oslo_log/_options.py) or as the JSON objects of its
// JSONFormatter (oslo_log/formatters.py), one line a record.
//
// What is logged cannot forge a line: whatever is not printable is escaped. Every
// message and every value passes Mask, and the value of an attribute whose name
// speaks of a secret is hidden whole. Beyond 8 KiB a message or value is cut.
package oslolog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// Options are what a handler cannot find in a record.
type Options struct {
	Name  string       // the program, and the first part of the loggers' names
	Level slog.Leveler // the least level that is written; a *slog.LevelVar may change it at any time
	PID   int
	Host  string // named in JSON only, as in oslo.log
	JSON  bool   // one JSON object a line instead of text
}

// New gives a handler that writes each record with one call of w.Write, one at a
// time. Three kinds of attributes outside of all groups have a place of their own:
//
//   - component: the logger is called Name.component instead of Name;
//   - request_id: the record belongs to a request;
//   - where there is a request_id, those that oslo.context has beside it:
//     global_request_id, user, project, domain, system_scope, user_domain and
//     project_domain, all of the caller. Anywhere else they are ordinary.
//
// Text shows the others as key=value behind the message, those of groups as
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

// handler gathers the attributes of a record for write.
type handler struct {
	Options
	write  func(line) error
	scopes []scope // in the order in which they were added
}

// scope is what one call of With adds: a group that opens, or attributes for the
// group that is open.
type scope struct {
	group      string
	attributes []slog.Attr // clean; for an empty group only
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.Level.Level() }

func (h *handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return h.with(append(slices.Clip(h.scopes), scope{attributes: clean(attributes)}))
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(append(slices.Clip(h.scopes), scope{group: name}))
}

func (h *handler) with(scopes []scope) slog.Handler {
	return &handler{Options: h.Options, write: h.write, scopes: scopes}
}

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
