package app

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// inventoryFace is the HTTP interface of a process with the role inventory but without the role
// api, for monitoring.
type inventoryFace struct {
	http.Handler
	draining atomic.Bool
}

// Drain implements face.
func (f *inventoryFace) Drain() { f.draining.Store(true) }

// newInventoryFace answers at /, /healthcheck and /metrics like the API. It lists no API version,
// and its health depends on the inventory.
func (a *App) newInventoryFace(bus *bus) *inventoryFace {
	mux := http.NewServeMux()
	f := &inventoryFace{Handler: mux}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "almanac", "release": a.version, "versions": []string{}})
	})
	mux.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		status, reason := http.StatusOK, "OK"
		switch {
		case f.draining.Load():
			status, reason = http.StatusServiceUnavailable, "draining"
		case slices.ContainsFunc(a.watched, func(w *watchedJob) bool { return w.trouble() != nil }):
			status, reason = http.StatusServiceUnavailable, "the hosts cannot be read, or nobody can be told of them"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reason+"\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.measure(bus).registry, promhttp.HandlerOpts{}))
	return f
}
