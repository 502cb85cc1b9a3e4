// SPDX-License-Identifier: Apache-2.0

package oslotest

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/tests/tracingtest"
)

func testTrace(t *testing.T, c *cloud) {
	collector := tracingtest.New(t)
	arrived := make(chan struct{})
	collector.Within(t, func(ctx context.Context, tracer *tracing.Tracer) {
		server := oslo.NewServer(c.transport, oslo.ServerOptions{
			Exchange: target.Exchange, Topic: target.Topic, Name: "one", Grace: 100 * time.Millisecond, NewID: NewID, Tracer: tracer,
			Endpoints: []oslo.Endpoint{{Version: "1.4", Methods: map[string]oslo.Handler{
				"double": double,
				"follow": func(context.Context, *oslo.Request) (any, error) { close(arrived); return nil, nil },
			}}},
		})
		stop := c.background(server.Serve)
		c.wait(server.Ready(), "the server is ready")
		ctx = oslo.WithContext(ctx, oslo.NewRequestContext("req-1", ""))
		client := c.client(oslo.ClientOptions{})
		if err := client.Call(ctx, target, "double", number{2}, nil); err != nil {
			t.Error(err)
		}
		if err := client.Cast(ctx, target, "follow", nil); err != nil {
			t.Error(err)
		}
		c.wait(arrived, "the cast arrives")
		if err := stop(); err != nil {
			t.Error(err)
		}
		if sent := oslo.ContextOf(ctx); len(sent) != 1 {
			t.Errorf("the context of the caller has become %v", sent)
		}
	})
	first := collector.Named(t, "test")
	for sent, served := range map[string]string{"call double": "double", "cast follow": "follow"} {
		out, in := collector.Named(t, sent), collector.Named(t, served)
		if out.Trace != first.Trace || out.Parent != first.ID || in.Trace != first.Trace || in.Parent != out.ID {
			t.Errorf("the steps do not follow from each other: %+v, %+v, %+v", first, out, in)
		}
		if in.Facts["request_id"] != "req-1" || in.Facts["topic"] != target.Topic {
			t.Errorf("%s has the facts %v", served, in.Facts)
		}
	}
}
