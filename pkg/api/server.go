// Package api serves the REST API, version 1, over HTTP: it reads JSON into
// requests, asks the rooms that decide, and writes what they answer. The JSON
// types are in pkg/api/v1; openapi.yaml beside this file is the contract.
package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Authenticator says who sent a request. It fails with an Unauthorized or a
// Denied fault.
type Authenticator interface {
	Authenticate(r *http.Request) (booking.Caller, error)
}

// Fixed is an Authenticator for which everybody on this machine is the same caller.
type Fixed booking.Caller

// Authenticate implements Authenticator. A request that is addressed to another
// name than this machine's own is denied: a page of another site reaches the
// loopback address under its own name, once its name server says so.
func (f Fixed) Authenticate(r *http.Request) (booking.Caller, error) {
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	if ip := net.ParseIP(strings.Trim(name, "[]")); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return booking.Caller{}, fault.New(fault.Denied, "there are no passwords here, so only requests to localhost are answered, not to %q", name)
	}
	return booking.Caller(f), nil
}

// Options are what the API serves, and how.
type Options struct {
	Desk          *booking.Desk
	Reader        reservation.Reader
	Inventory     *inventory.Keeper
	Filter        filters.Reservation
	Authenticator Authenticator
	// Ping says whether the database answers, for the health check.
	Ping func(ctx context.Context) error
	// BeforeEnd is how many seconds before the end an owner is warned who does not say.
	BeforeEnd    int64
	MaxBodyBytes int64
	Version      string
	Now          func() span.Instant
	// Monotonic is the time since some moment, for measuring how long an answer took.
	Monotonic    func() time.Duration
	NewRequestID func() string
	Log          *slog.Logger
	Registry     *prometheus.Registry
}

type server struct {
	Options
	metrics *metrics
	origins http.CrossOriginProtection
}

// New gives the handler of the API.
func New(o Options) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	s := &server{Options: o, metrics: newMetrics(o.Registry, o.Desk)}
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseRawPath, engine.UnescapePathValues = true, true
	engine.Use(s.identify, s.measure, s.recover, s.sameOrigin)
	engine.NoRoute(func(c *gin.Context) {
		s.fail(c, fault.New(fault.NotFound, "there is nothing at %s; the calls are listed at /v1/openapi.yaml", c.Request.URL.Path))
	})
	engine.NoMethod(func(c *gin.Context) {
		s.failWith(c, http.StatusMethodNotAllowed, fault.New(fault.Invalid, "%s is not possible at %s", c.Request.Method, c.Request.URL.Path))
	})
	s.routes(engine)
	return withoutTrailingSlash(engine)
}

func (s *server) routes(engine *gin.Engine) {
	engine.GET("/", s.versions)
	engine.GET("/v1", s.version)
	engine.GET("/healthcheck", s.health)
	engine.GET("/metrics", s.metrics.serve(s.Registry))
	engine.GET("/v1/openapi.yaml", s.openAPI)

	v1 := engine.Group("/v1", s.authenticate)
	v1.POST("/reservations", s.createReservation)
	v1.GET("/reservations", s.listReservations)
	v1.GET("/reservations/:id", s.noParameters, s.showReservation)
	v1.PATCH("/reservations/:id", s.changeReservation)
	v1.DELETE("/reservations/:id", s.noParameters, s.deleteReservation)
	v1.GET("/availability", s.availability)
	v1.GET("/hosts", s.listHosts)
	v1.GET("/hosts/:name", s.noParameters, s.showHost)
	v1.PATCH("/hosts/:name", s.adminOnly, s.noParameters, s.changeHost)
	v1.GET("/properties", s.noParameters, s.listProperties)
	v1.PATCH("/properties/:name", s.adminOnly, s.noParameters, s.changeProperty)
	v1.GET("/calendar", s.calendar)
	v1.POST("/scheduler/filter", s.adminOnly, s.noParameters, s.filterHosts)
}

// withoutTrailingSlash accepts a trailing slash everywhere.
func withoutTrailingSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; len(path) > 1 && strings.HasSuffix(path, "/") {
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
