// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
)

// scrapes answers GET /metrics. Anybody may ask, so the metrics are gathered and written once a second at most for each
// encoding, for one request at a time, and all others get the same text. It is always in Prometheus' text format.
type scrapes struct {
	gather    http.Handler
	monotonic func() time.Duration

	mu    sync.Mutex
	texts map[string]*scrape // by encoding
}

// scrape is an answer.
type scrape struct {
	at     time.Duration
	status int
	header http.Header
	text   bytes.Buffer
}

// ServeMetrics returns the handler of GET /metrics for the metrics of a registry; monotonic returns the time since a
// fixed instant.
func ServeMetrics(registry *prometheus.Registry, monotonic func() time.Duration) http.Handler {
	return newScrapes(registry, monotonic)
}

func newScrapes(registry *prometheus.Registry, monotonic func() time.Duration) *scrapes {
	return &scrapes{gather: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), monotonic: monotonic, texts: make(map[string]*scrape)}
}

// ServeHTTP implements http.Handler.
func (s *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	encoding := "identity"
	if serving.AcceptsGzip(r.Header) {
		encoding = "gzip"
	}
	found := s.fresh(r, encoding)
	for name, values := range found.header {
		w.Header()[name] = slices.Clone(values)
	}
	w.WriteHeader(found.status)
	_, _ = w.Write(found.text.Bytes()) // a client that has gone
}

// fresh returns an answer that is at most a second old. Nothing changes it any more.
func (s *scrapes) fresh(r *http.Request, encoding string) *scrape {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.texts[encoding]; kept != nil && s.monotonic()-kept.at < freshFor {
		return kept
	}
	// A context that ends with this request would end the gathering for the others.
	same := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: r.URL.Path}, Header: http.Header{"Accept-Encoding": {encoding}}}
	made := &scrape{status: http.StatusOK, header: make(http.Header)}
	s.gather.ServeHTTP(made, same)
	made.at = s.monotonic()
	s.texts[encoding] = made
	return made
}

// Header, WriteHeader and Write implement http.ResponseWriter.

func (s *scrape) Header() http.Header                  { return s.header }
func (s *scrape) WriteHeader(status int)               { s.status = status }
func (s *scrape) Write(text []byte) (n int, err error) { return s.text.Write(text) }
