// SPDX-License-Identifier: Apache-2.0

package oslolog

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// jsonWriter returns a function that writes lines with the field names of oslo.log's
// JSONFormatter. It omits the fields that only Python has: args, module, threads, traceback.
func jsonWriter(w io.Writer, o Options) func(line) error {
	encoder := slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) > 0:
		case a.Key == slog.MessageKey:
			a.Key = "message"
		case a.Key == slog.LevelKey: // levelname has it
			return slog.Attr{}
		}
		return a
	}})
	return func(l line) error {
		r := slog.NewRecord(time.Time{}, 0, l.message, 0)
		if !l.time.IsZero() {
			r.AddAttrs(
				slog.String("asctime", l.time.Format(time.DateTime)),
				slog.Float64("created", float64(l.time.UnixMicro())/1e6),
				slog.Int("msecs", l.time.Nanosecond()/1e6),
			)
		}
		r.AddAttrs(slog.String("name", l.logger),
			slog.String("levelname", l.level.name), slog.Int("levelno", l.level.number))
		if l.source != nil {
			r.AddAttrs(slog.String("pathname", l.source.File), slog.Int("lineno", l.source.Line),
				slog.String("funcname", l.source.Function))
		}
		r.AddAttrs(slog.Int("process", o.PID), slog.String("hostname", o.Host),
			object("context", l.context), object("extra", l.extra))
		return encoder.Handle(context.Background(), r)
	}
}

// object returns a group that is present, as {}, even without attributes.
func object(key string, attributes []slog.Attr) slog.Attr {
	if len(attributes) == 0 {
		return slog.Any(key, struct{}{})
	}
	return slog.GroupAttrs(key, attributes...)
}
