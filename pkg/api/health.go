package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	healthPath = "/healthcheck"
	// freshFor is how long what a probe found is believed: balancers and monitors
	// ask from many sides.
	freshFor = time.Second
	// patience is how long a probe may take.
	patience = 3 * time.Second
)

// ErrStarting is what a probe finds of a part that has only begun: it is not ready, and
// the log need not say so.
var ErrStarting = errors.New("not connected yet")

// Probe looks after one part of the service.
type Probe struct {
	Name string
	// Check says nothing where the part is well. It returns when ctx ends.
	Check func(ctx context.Context) error
}

// watch remembers what a probe found.
type watch struct {
	Probe
	now       func() span.Instant
	monotonic func() time.Duration
	log       *slog.Logger

	mu     sync.Mutex // held while the probe runs: who asks meanwhile shares what it finds
	looked bool
	at     time.Duration
	err    error
	warned bool // the log says that the part is not well
	since  span.Instant
}

// look gives what the probe found, a second ago at most, and since when it is so.
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
		w.log.WarnContext(ctx, "a part is not well", "part", w.Name, "error", w.err)
	case w.err == nil && w.warned:
		w.warned = false
		w.log.InfoContext(ctx, "a part is well again", "part", w.Name)
	}
	w.looked, w.at = true, w.monotonic()
	return w.since, w.err
}

func (s *server) watch(p Probe) *watch {
	return &watch{Probe: p, now: s.Now, monotonic: s.Monotonic, log: s.Log, since: s.Now()}
}

// Look looks after every part, so that it is known since when each is as it is.
func (s *Server) Look(ctx context.Context) error {
	for _, part := range s.server.parts {
		_, _ = part.look(ctx) // it has logged what it found
	}
	return nil
}

// health handles GET and HEAD /healthcheck, in the forms of oslo.middleware
// (oslo_middleware/healthcheck). It says no more than a balancer must know: the
// parts that every replica shares do not make one of them worse than the others.
func (s *server) health(c *gin.Context) {
	status, reason := http.StatusOK, "OK"
	if s.draining.Load() {
		status, reason = http.StatusServiceUnavailable, "draining"
	} else if _, err := s.database.look(c.Request.Context()); err != nil {
		status, reason = http.StatusServiceUnavailable, "the database does not answer"
	}
	switch {
	case c.Request.Method == http.MethodHead && status == http.StatusOK:
		c.Status(http.StatusNoContent)
	case c.Request.Method == http.MethodHead:
		c.Status(status)
	case c.NegotiateFormat(gin.MIMEPlain, gin.MIMEJSON) == gin.MIMEJSON:
		c.PureJSON(status, gin.H{"detailed": false, "reasons": []string{reason}})
	default:
		c.String(status, reason+"\n")
	}
}

// readiness handles GET /v1/readiness.
func (s *server) readiness(c *gin.Context) {
	answer := v1.Readiness{Draining: s.draining.Load(), Parts: make([]v1.Part, len(s.parts))}
	var looking sync.WaitGroup
	for i, part := range s.parts {
		looking.Go(func() {
			since, err := part.look(c.Request.Context())
			answer.Parts[i] = v1.Part{Name: part.Name, OK: err == nil, Since: since.Time()}
			if err != nil {
				answer.Parts[i].Reason = err.Error()
			}
		})
	}
	looking.Wait()
	answer.Ready = !answer.Draining
	for _, part := range answer.Parts {
		answer.Ready = answer.Ready && part.OK
	}
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	c.PureJSON(status, answer)
}
