// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// New returns the server of a table of routes.
func New(o Options, table []Route) *Server {
	gin.SetMode(gin.ReleaseMode)
	s := &Server{
		Options: o, metrics: newMetrics(o.Registry),
		projects: newLimits(o.RequestsPerSecond, o.Burst), failures: newLimits(o.FailuresPerSecond, o.FailureBurst),
		connections: newLimits(proxied*o.FailuresPerSecond, proxied*o.FailureBurst),
		arriving:    newCarried(mostArriving, mostArrivingOfAll), unsent: newCarried(mostUnsent, mostUnsentOfAll),
		turns: make(map[string]Turn, len(table)), secrets: secretsIn(table),
	}
	for _, r := range table {
		s.turns[r.name()] = r.Turn
	}
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseRawPath, engine.UnescapePathValues = true, true
	engine.Use(s.trace, s.identify, s.date, s.bound, s.measure, s.recover, s.sameOrigin, s.before)
	engine.NoRoute(func(c *gin.Context) { s.call(c).Fail(s.Nowhere(c.Request)) })
	engine.NoMethod(func(c *gin.Context) {
		s.call(c).FailWith(http.StatusMethodNotAllowed, fault.New(fault.Invalid, "method %s is not allowed at %s", c.Request.Method, c.Request.URL.Path))
	})
	s.register(engine, table)
	s.handler = s.withoutTrailingSlash(s.withHead(engine))
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Drain makes clients leave: from now on every answer closes its connection.
func (s *Server) Drain() { s.draining.Store(true) }

// Draining reports whether clients are to leave.
func (s *Server) Draining() bool { return s.draining.Load() }

// withHead serves HEAD as GET, except where HEAD has an answer of its own, and for streams,
// which have no end. The answer has no body: the server that reads the requests knows that it was HEAD.
func (s *Server) withHead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, own := s.turns[r.Method+" "+r.URL.Path]
		if r.Method == http.MethodHead && !own && s.turns[http.MethodGet+" "+r.URL.Path] != Streaming {
			r = r.Clone(r.Context())
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// withoutTrailingSlash accepts a trailing slash everywhere but at the page.
func (s *Server) withoutTrailingSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; len(path) > 1 && strings.HasSuffix(path, "/") && path != s.Page {
			r = r.Clone(r.Context())
			r.URL.Path = strings.TrimRight(path, "/")
			r.URL.RawPath = strings.TrimRight(r.URL.RawPath, "/")
			if r.URL.Path == "" {
				r.URL.Path = "/"
			}
		}
		next.ServeHTTP(w, r)
	})
}
