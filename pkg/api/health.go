// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/oslolog"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// freshFor is how long the result of a probe is reused, because many load balancers and
	// monitors ask.
	freshFor = time.Second
	// plain and asJSON are the formats of the health check.
	plain, asJSON = "text/plain", "application/json"
	// patience is how long a probe may take.
	patience = 3 * time.Second
)

// ErrStarting is the error of a part that is still starting: the service is not ready, but the part
// is not logged as unhealthy.
var ErrStarting = errors.New("not connected yet")

// Probe checks one part of the service.
type Probe struct {
	Name string
	// Check returns nil if the part is healthy. It returns when ctx ends.
	Check func(ctx context.Context) error
}

// watch caches the result of a probe.
type watch struct {
	Probe
	now       func() span.Instant
	monotonic func() time.Duration
	log       *slog.Logger

	mu     sync.Mutex // held while the probe runs, so that concurrent callers share its result
	looked bool
	at     time.Duration
	err    error
	warned bool // the log contains the part's error
	since  span.Instant
}

// look returns the error of the probe, at most a second old, and the instant of the last change
// between healthy and not.
func (w *watch) look(ctx context.Context) (since span.Instant, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looked && w.monotonic()-w.at < freshFor {
		return w.since, w.err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := w.err
	w.err = w.Check(ctx)
	if (before == nil) != (w.err == nil) {
		w.since = w.now()
	}
	switch {
	case w.err != nil && !w.warned && !errors.Is(w.err, ErrStarting):
		w.warned = true
		w.log.WarnContext(ctx, "a part is not healthy", "part", w.Name, "error", w.err)
	case w.err == nil && w.warned:
		w.warned = false
		w.log.InfoContext(ctx, "a part is healthy again", "part", w.Name)
	}
	w.looked, w.at = true, w.monotonic()
	return w.since, w.err
}

// health answers whether the process, and the parts that it needs, are healthy.
type health struct {
	database  *watch
	parts     []*watch // including the database
	simulated bool
	draining  func() bool
}

// newHealth returns the watches of the parts, and registers the result of the database's as a metric.
func newHealth(o Options) *health {
	part := func(p Probe) *watch {
		return &watch{Probe: p, now: o.Now, monotonic: o.Monotonic, log: o.Log, since: o.Now()}
	}
	s := &health{database: part(Probe{"database", o.Ping}), simulated: o.Demo != nil}
	s.parts = []*watch{s.database}
	for _, p := range o.Probes {
		s.parts = append(s.parts, part(p))
	}
	promauto.With(o.Registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "almanac_database_up", Help: "1 if the database answers.",
	}, func() float64 {
		if _, err := s.database.look(context.Background()); err != nil {
			return 0
		}
		return 1
	})
	return s
}

// Look runs every probe, so that the times of changes are recorded even if nobody asks.
func (s *Server) Look(ctx context.Context) error {
	for _, part := range s.health.parts {
		_, _ = part.look(ctx) // it has logged what it found
	}
	return nil
}

// simulated is what the health check adds with a simulated cloud.
const simulated = "the cloud is simulated"

// show handles GET and HEAD /healthcheck, in the formats of oslo.middleware
// (oslo_middleware/healthcheck). It covers only what a load balancer requires: a failure in a part
// that all replicas share is no reason to prefer another replica.
func (s *health) show(c *serving.Call) {
	status, reason := http.StatusOK, "OK"
	if s.draining() {
		status, reason = http.StatusServiceUnavailable, "draining"
	} else if _, err := s.database.look(c.Request.Context()); err != nil {
		status, reason = http.StatusServiceUnavailable, "the database does not answer"
	}
	reasons := []string{reason}
	if s.simulated {
		reasons = append(reasons, simulated)
	}
	switch {
	case c.Request.Method == http.MethodHead && status == http.StatusOK:
		c.Status(http.StatusNoContent)
	case c.Request.Method == http.MethodHead:
		c.Status(status)
	case c.NegotiateFormat(plain, asJSON) == asJSON:
		c.PureJSON(status, map[string]any{"detailed": false, "reasons": reasons})
	default:
		c.String(status, strings.Join(reasons, "\n")+"\n")
	}
}

// readiness handles GET /v1/readiness.
func (s *health) readiness(c *serving.Call) (any, error) {
	answer := v1.Readiness{Draining: s.draining(), Parts: make([]v1.Part, len(s.parts))}
	var looking sync.WaitGroup
	for i, part := range s.parts {
		looking.Go(func() {
			since, err := part.look(c.Request.Context())
			answer.Parts[i] = v1.Part{Name: part.Name, OK: err == nil, Since: since.Time()}
			if err != nil {
				answer.Parts[i].Reason = oslolog.Mask(err.Error())
			}
		})
	}
	looking.Wait()
	answer.Ready = !answer.Draining
	for _, part := range answer.Parts {
		answer.Ready = answer.Ready && part.OK
	}
	if !answer.Ready {
		c.Status(http.StatusServiceUnavailable)
	}
	return answer, nil
}
