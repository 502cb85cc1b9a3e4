// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"log/slog"
	"regexp"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

const (
	requestIDHeader = "X-Openstack-Request-Id"
	requestIDKey    = "request id"
)

// RequestIDs are the ids of a request: its own, and that of its caller's request, which calls to
// other services pass on; the latter is empty if the caller sent none.
type RequestIDs struct {
	Own, Global string
}

type requestIDsKey struct{}

// RequestIDsOf returns the ids of the request that ctx belongs to; ok is false if it belongs to
// none.
func RequestIDsOf(ctx context.Context) (ids RequestIDs, ok bool) {
	ids, ok = ctx.Value(requestIDsKey{}).(RequestIDs)
	return ids, ok
}

// LogHandler returns a handler that adds request_id and global_request_id to records in the
// context of a request, trace_id and span_id to those in the context of a trace, and passes them to
// next.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if ids, ok := RequestIDsOf(ctx); ok {
		r = r.Clone()
		r.AddAttrs(slog.String("request_id", ids.Own))
		if ids.Global != "" {
			r.AddAttrs(slog.String("global_request_id", ids.Global))
		}
	}
	if traceID, stepID, ok := tracing.IDs(ctx); ok {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", traceID), slog.String("span_id", stepID))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// globalID is the form in which oslo.middleware accepts a caller's request id
// (oslo_middleware/request_id.py).
var globalID = regexp.MustCompile(`^req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}$`)
