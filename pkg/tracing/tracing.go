// SPDX-License-Identifier: Apache-2.0

// Package tracing sends traces in OpenTelemetry's form: what a request has done, as a tree of steps
// with their times. A step is what OpenTelemetry calls a span.
//
// A Tracer begins the trace of a request. From then on the context carries it: Step adds a step
// below that of its context, and does nothing in a context without a trace. So only those who
// receive requests need a Tracer, and without one nothing is recorded.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

const (
	// mostWaiting bounds the steps that wait for the collector; further ones are lost.
	mostWaiting = 4096
	// sendEvery and sendTime bound how old the steps become before they are sent, and how long that
	// takes.
	sendEvery = 2 * time.Second
	sendTime  = 5 * time.Second
	// stopTime is how long Close waits for the collector.
	stopTime = 5 * time.Second
	// longestFact bounds the text of a fact, such as a statement.
	longestFact = 1024
	// library is the name of the instrumentation.
	library = "github.com/almanac-cloud/almanac"
)

// Options are the settings of a Tracer.
type Options struct {
	Enabled bool
	// Endpoint is the URL to which traces are posted (OTLP over HTTP).
	Endpoint string
	// SampleRatio is the part of the requests that is traced, from 0 to 1. A request whose caller
	// states whether it is traced follows its caller.
	SampleRatio float64

	// Version, Instance and Host describe this process in each trace.
	Version, Instance, Host string
	Now                     func() time.Time
	Log                     *slog.Logger
}

// Check returns a fault with the field of an option if no trace could be sent.
func (o Options) Check() error {
	at, err := url.Parse(o.Endpoint)
	if o.Enabled && (err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		return fault.Field("endpoint", "must be the http or https URL of a collector, such as http://127.0.0.1:4318/v1/traces")
	}
	return nil
}

// Tracer begins traces. A nil Tracer begins none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer that sends to the collector of the options; nil if traces are off. The caller
// must Close it.
func New(o Options) (*Tracer, error) {
	if err := o.Check(); err != nil || !o.Enabled {
		return nil, err
	}
	exporter, err := otlptrace.New(context.Background(), newCollector(o))
	if err != nil {
		return nil, fmt.Errorf("prepare the traces: %w", err)
	}
	return newTracer(o, sdk.NewBatchSpanProcessor(exporter, sdk.WithMaxQueueSize(mostWaiting), sdk.WithBatchTimeout(sendEvery), sdk.WithExportTimeout(sendTime))), nil
}

// newTracer returns a tracer that sends steps to sink.
func newTracer(o Options, sink sdk.SpanProcessor) *Tracer {
	process := resource.NewSchemaless(
		attribute.String("service.name", "almanac"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Instance), attribute.String("host.name", o.Host))
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = longestFact
	t := &Tracer{provider: sdk.NewTracerProvider(sdk.WithRawSpanLimits(limits),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.SampleRatio))), sdk.WithResource(process), sdk.WithSpanProcessor(sink))}
	t.tracer = t.provider.Tracer(library, trace.WithInstrumentationVersion(o.Version))
	return t
}

// Close sends the steps that wait, for a few seconds at most.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what could not be sent is lost; the collector's client has logged it
	return nil
}

// End ends a step; err is why it failed, or nil.
type End func(err error)

// Request begins the step of a request that has arrived. get returns a header of the request, such
// as traceparent, or ""; the step belongs to the trace of the caller if the headers name one.
func (t *Tracer) Request(ctx context.Context, name string, get func(key string) string, facts ...slog.Attr) (context.Context, End) {
	if t == nil {
		return ctx, func(error) {}
	}
	ctx = headers.Extract(ctx, carrier{get: get})
	ctx, step := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes(facts)...))
	return ctx, end(step)
}

// headers are those of W3C Trace Context.
var headers = propagation.TraceContext{}

// carrier adapts functions to OpenTelemetry's interface.
type carrier struct {
	get func(key string) string
	set func(key, value string)
}

func (c carrier) Get(key string) string { return c.get(key) }
func (c carrier) Set(key, value string) { c.set(key, value) }
func (c carrier) Keys() []string        { return headers.Fields() }
