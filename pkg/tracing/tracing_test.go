// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/tests/tracingtest"
)

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersStep  = "b7ad6b7169203331"
)

// from returns the header of a caller that is traced, or not.
func from(sampled string) func(key string) string {
	return func(key string) string {
		if key == "traceparent" {
			return "00-" + callersTrace + "-" + callersStep + "-" + sampled
		}
		return ""
	}
}

func nobody(string) string { return "" }

func TestTheStepsOfARequestAreATreeInTheTraceOfItsCaller(t *testing.T) {
	collector := tracingtest.New(t)
	tracer := collector.Tracer(t)
	ctx, end := tracer.Request(t.Context(), "request", from("01"), slog.String("route", "/v1"))
	below, done := tracing.Step(ctx, "decide", slog.Int("hosts", 3))
	tracing.Done(below, "statement", time.Now(), nil)
	done(fault.New(fault.Conflict, "the password is secret"))
	end(nil)
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	request, decide, statement := collector.Named(t, "request"), collector.Named(t, "decide"), collector.Named(t, "statement")
	type link struct{ Trace, Parent string }
	want := []link{{callersTrace, callersStep}, {callersTrace, request.ID}, {callersTrace, decide.ID}}
	if diff := cmp.Diff(want, []link{{request.Trace, request.Parent}, {decide.Trace, decide.Parent}, {statement.Trace, statement.Parent}}); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if request.Failed || !decide.Failed {
		t.Error("the step with an error is not the one that failed")
	}
	facts := []map[string]string{{"route": "/v1"}, {"hosts": "3", "error.type": "conflict"}}
	if diff := cmp.Diff(facts, []map[string]string{request.Facts, decide.Facts}); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	process := map[string]string{"service.name": "almanac", "service.version": "1.2.3", "service.instance.id": "replica", "host.name": "machine"}
	if diff := cmp.Diff(process, request.Process); diff != "" {
		t.Errorf("process (-want +got):\n%s", diff)
	}
}

func TestARequestFollowsItsCallerAndOtherwiseTheRatio(t *testing.T) {
	for name, tc := range map[string]struct {
		ratio float64
		get   func(string) string
		want  bool
	}{
		"all":                            {1, nobody, true},
		"none":                           {0, nobody, false},
		"none, but the caller is traced": {0, from("01"), true},
		"all, but the caller is not":     {1, from("00"), false},
	} {
		t.Run(name, func(t *testing.T) {
			collector := tracingtest.New(t)
			tracer, err := tracing.New(tracing.Options{
				Enabled: true, Endpoint: collector.URL, SampleRatio: tc.ratio, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			_, end := tracer.Request(t.Context(), "request", tc.get)
			end(nil)
			if err := tracer.Close(); err != nil {
				t.Fatal(err)
			}
			if sent := len(collector.Steps()) > 0; sent != tc.want {
				t.Errorf("sent: %v", sent)
			}
		})
	}
}

func TestWithoutATraceNothingIsRecordedAndNoHeaderIsAdded(t *testing.T) {
	tracer, err := tracing.New(tracing.Options{Endpoint: "nowhere"})
	if tracer != nil || err != nil {
		t.Fatalf("got %v, %v", tracer, err)
	}
	ctx, end := tracer.Request(t.Context(), "request", from("01"))
	below, done := tracing.Call(ctx, "call", func(key, value string) { t.Errorf("adds %s: %s", key, value) })
	if _, _, ok := tracing.IDs(below); ok || below != t.Context() || tracing.Recorded(below) {
		t.Error("the context has a trace")
	}
	done(errors.New("failed"))
	end(nil)
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnEndpointThatIsNoURLIsRefused(t *testing.T) {
	for _, endpoint := range []string{"", "collector:4318", "ftp://collector", "http://"} {
		if err := (tracing.Options{Enabled: true, Endpoint: endpoint}).Check(); fault.Of(err) == nil || fault.Of(err).Field != "endpoint" {
			t.Errorf("%q: got %v", endpoint, err)
		}
	}
}

// failing returns a Tracer of a collector that answers with answer, and its log. Its clock moves by
// step each time that it is read.
func failing(t *testing.T, step time.Duration, answer http.HandlerFunc) (*tracing.Tracer, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	text, now := &bytes.Buffer{}, time.Unix(0, 0)
	tracer, err := tracing.New(tracing.Options{
		Enabled: true, Endpoint: server.URL, SampleRatio: 1, Log: slog.New(slog.NewTextHandler(text, nil)),
		Now: func() time.Time { now = now.Add(step); return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, text
}

// manySteps are more than wait for the collector at once.
const manySteps = 10_000

func trace(tracer *tracing.Tracer, n int) {
	for range n {
		_, end := tracer.Request(context.Background(), "request", nobody)
		end(nil)
	}
}

func TestLostTracesAreLoggedOnceAMinuteAndNotAgain(t *testing.T) {
	for _, tc := range []struct {
		step time.Duration
		most int
	}{{time.Millisecond, 1}, {time.Minute, manySteps}} {
		tracer, text := failing(t, tc.step, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		trace(tracer, manySteps)
		if err := tracer.Close(); err != nil {
			t.Fatal(err)
		}
		if count := strings.Count(text.String(), "could not send traces"); count == 0 || count > tc.most || (tc.most > 1) != (count > 1) {
			t.Errorf("%d notices with a clock in steps of %v:\n%s", count, tc.step, text)
		}
	}
}

func TestACollectorThatHangsDelaysNeitherRequestsNorTheEndForLong(t *testing.T) {
	hanging := make(chan struct{})
	tracer, _ := failing(t, 0, func(http.ResponseWriter, *http.Request) { <-hanging })
	defer close(hanging)
	trace(tracer, manySteps)
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestARequestToAServiceIsAStepAndTellsTheServiceOfTheTrace(t *testing.T) {
	var headers []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { headers = append(headers, r.Header.Get("Traceparent")) }))
	defer server.Close()
	client := http.Client{Transport: tracing.Transport("nova", http.DefaultTransport)}
	get := func(ctx context.Context) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/servers?token=hidden", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Auth-Token", "hidden")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	get(t.Context())
	collector := tracingtest.New(t)
	collector.Within(t, func(ctx context.Context, _ *tracing.Tracer) { get(ctx) })
	step := collector.Named(t, "GET nova")
	if want := []string{"", "00-" + step.Trace + "-" + step.ID + "-01"}; !slices.Equal(headers, want) {
		t.Errorf("the service gets %q, want %q", headers, want)
	}
	if step.Parent != collector.Named(t, "test").ID || step.Facts["http.response.status_code"] != "200" || step.Facts["url.path"] != "/servers" {
		t.Errorf("got %+v", step)
	}
	for _, value := range step.Facts {
		if strings.Contains(value, "hidden") {
			t.Errorf("a secret is in %+v", step)
		}
	}
}

func TestALongFactIsCut(t *testing.T) {
	collector := tracingtest.New(t)
	collector.Within(t, func(ctx context.Context, _ *tracing.Tracer) {
		tracing.Note(ctx, slog.String("statement", strings.Repeat("x", 100_000)))
	})
	if length := len(collector.Named(t, "test").Facts["statement"]); length != 1024 {
		t.Errorf("the fact has %d bytes", length)
	}
}
