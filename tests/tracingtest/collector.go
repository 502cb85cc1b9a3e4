// SPDX-License-Identifier: Apache-2.0

// Package tracingtest provides tests with a collector of traces.
package tracingtest

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// Step is a step that was received.
type Step struct {
	Trace, ID string
	Parent    string // empty for the first of a trace
	Name      string
	Failed    bool
	Facts     map[string]string
	Process   map[string]string // facts about the process that sent it
}

// Collector receives traces over HTTP.
type Collector struct {
	URL   string
	mu    sync.Mutex
	steps []Step
}

// New starts a collector that serves until the test ends.
func New(t testing.TB) *Collector {
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data otlp.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s of %q is no traces: %v", r.Method, r.Header.Get("Content-Type"), err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.keep(&data)
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL + "/v1/traces"
	return c
}

func (c *Collector) keep(data *otlp.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, process := range data.ResourceSpans {
		for _, scope := range process.ScopeSpans {
			for _, s := range scope.Spans {
				c.steps = append(c.steps, Step{
					Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name,
					Failed: s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR, Facts: facts(s.Attributes), Process: facts(process.Resource.GetAttributes()),
				})
			}
		}
	}
}

func facts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		switch value := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			all[a.Key] = value.StringValue
		case *common.AnyValue_IntValue:
			all[a.Key] = strconv.FormatInt(value.IntValue, 10)
		}
	}
	return all
}

// Steps returns the steps received so far, in any order.
func (c *Collector) Steps() []Step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.steps)
}

// Named returns the only step with a name, and fails the test if there is none or several.
func (c *Collector) Named(t testing.TB, name string) Step {
	t.Helper()
	all := slices.DeleteFunc(c.Steps(), func(s Step) bool { return s.Name != name })
	if len(all) != 1 {
		t.Fatalf("there are %d steps %q among %+v", len(all), name, c.Steps())
	}
	return all[0]
}

// Tracer returns a Tracer that sends all traces to the collector.
func (c *Collector) Tracer(t testing.TB) *tracing.Tracer {
	t.Helper()
	tracer, err := tracing.New(tracing.Options{
		Enabled: true, Endpoint: c.URL, SampleRatio: 1, Version: "1.2.3", Instance: "replica", Host: "machine",
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// Within runs act as the first step, "test", of a new trace, and returns once the collector has
// the steps that have ended.
func (c *Collector) Within(t testing.TB, act func(ctx context.Context, tracer *tracing.Tracer)) {
	t.Helper()
	tracer := c.Tracer(t)
	ctx, end := tracer.Request(t.Context(), "test", func(string) string { return "" })
	act(ctx, tracer)
	end(nil)
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}
