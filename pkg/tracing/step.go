// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Step begins a step below that of ctx. Without a trace in ctx it does nothing.
func Step(ctx context.Context, name string, facts ...slog.Attr) (context.Context, End) {
	return begin(ctx, name, trace.SpanKindInternal, facts)
}

// Call begins a step that waits for another service. set adds a header to the request, so that the
// steps of that service belong to the same trace.
func Call(ctx context.Context, name string, set func(key, value string), facts ...slog.Attr) (context.Context, End) {
	ctx, done := begin(ctx, name, trace.SpanKindClient, facts)
	if traced(ctx) {
		headers.Inject(ctx, carrier{set: set})
	}
	return ctx, done
}

// Done adds a step that has ended now.
func Done(ctx context.Context, name string, begun time.Time, err error, facts ...slog.Attr) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return
	}
	_, step := parent.TracerProvider().Tracer(library).Start(ctx, name, trace.WithTimestamp(begun), trace.WithAttributes(attributes(facts)...))
	end(step)(err)
}

// Note adds facts to the step of ctx.
func Note(ctx context.Context, facts ...slog.Attr) {
	if step := trace.SpanFromContext(ctx); step.IsRecording() {
		step.SetAttributes(attributes(facts)...)
	}
}

// Recorded reports whether the steps in ctx are sent, so that facts about them are of use.
func Recorded(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// IDs returns the ids of the trace and of the step of ctx; ok is false without a trace.
func IDs(ctx context.Context) (traceID, stepID string, ok bool) {
	if !traced(ctx) {
		return "", "", false
	}
	at := trace.SpanContextFromContext(ctx)
	return at.TraceID().String(), at.SpanID().String(), true
}

func traced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// begin begins a step below the one of ctx; nothing if ctx belongs to no trace.
func begin(ctx context.Context, name string, kind trace.SpanKind, facts []slog.Attr) (context.Context, End) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		return ctx, func(error) {}
	}
	ctx, step := parent.TracerProvider().Tracer(library).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes(facts)...))
	return ctx, end(step)
}

// end returns the function that ends a step, with the kind of its error.
func end(step trace.Span) End {
	return func(err error) {
		if err != nil { // its text is for the log, which masks secrets
			step.SetStatus(codes.Error, "")
			step.SetAttributes(attribute.String("error.type", string(fault.Of(err).Kind)))
		}
		step.End()
	}
}

// attributes returns facts in the form of OpenTelemetry: whole numbers and texts.
func attributes(facts []slog.Attr) []attribute.KeyValue {
	all := make([]attribute.KeyValue, len(facts))
	for i, fact := range facts {
		if value := fact.Value; value.Kind() == slog.KindInt64 {
			all[i] = attribute.Int64(fact.Key, value.Int64())
		} else {
			all[i] = attribute.String(fact.Key, value.String())
		}
	}
	return all
}

// Transport returns a transport that makes each request of a trace a step of it, and tells the
// service about the trace. service is its name.
func Transport(service string, next http.RoundTripper) http.RoundTripper {
	return transport{service, next}
}

type transport struct {
	service string
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It makes the request a step of the trace, without query and
// headers.
func (t transport) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	if !traced(r.Context()) {
		return t.next.RoundTrip(r)
	}
	header := r.Header.Clone()
	// The path has no secrets, unlike the headers; the query may be long.
	ctx, done := Call(r.Context(), r.Method+" "+t.service, header.Set,
		slog.String("http.request.method", r.Method), slog.String("server.address", r.URL.Host), slog.String("url.path", r.URL.Path))
	defer func() { done(err) }()
	r = r.WithContext(ctx)
	r.Header = header
	if answer, err = t.next.RoundTrip(r); err == nil {
		Note(ctx, slog.Int("http.response.status_code", answer.StatusCode))
	}
	return answer, err
}
