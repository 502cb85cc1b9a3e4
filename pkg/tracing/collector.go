// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// noticeEvery is how often the log has a notice that traces are lost.
const noticeEvery = time.Minute

// collector posts steps to a collector, once: those that it does not accept are lost. It implements
// otlptrace.Client.
type collector struct {
	endpoint string
	http     *http.Client
	notices  notices
}

// newCollector returns a client of the collector of the options.
func newCollector(o Options) *collector {
	return &collector{
		endpoint: o.Endpoint, notices: notices{now: o.Now, log: o.Log},
		http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), Timeout: sendTime},
	}
}

// Start implements otlptrace.Client.
func (c *collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *collector) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It returns no errors: it logs them.
func (c *collector) UploadTraces(ctx context.Context, steps []*otlp.ResourceSpans) error {
	if err := c.post(ctx, steps); err != nil {
		c.notices.lost(err)
	}
	return nil
}

// post sends steps to the collector; an error if it does not answer with 2xx.
func (c *collector) post(ctx context.Context, steps []*otlp.ResourceSpans) error {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: steps}) // has the form of an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.CopyN(io.Discard, answer.Body, 64<<10); err != nil && err != io.EOF {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %d", answer.StatusCode)
	}
	return nil
}

// notices logs that traces are lost, once in noticeEvery.
type notices struct {
	now  func() time.Time
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time // the zero time before the first
}

// lost logs that steps were lost, at most once in noticeEvery.
func (n *notices) lost(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := n.now(); n.last.IsZero() || now.Sub(n.last) >= noticeEvery {
		n.last = now
		n.log.Warn("could not send traces to [tracing] endpoint; they are lost", "error", err)
	}
}
