// SPDX-License-Identifier: Apache-2.0

// Package api serves the REST API, version 1, over HTTP: it reads JSON into requests, calls the
// packages that decide, and writes their answers. The JSON types are in pkg/api/v1; openapi.yaml
// beside this file is the contract.
package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/weighers"
)

// Options are the dependencies and settings of the API.
type Options struct {
	Booking   *booking.Service
	Reader    reservation.Reader
	History   History
	Inventory *inventory.SnapshotCache
	Admission admission.Admission
	// Weighers are the weighers whose weights the plugin in nova-scheduler uses.
	Weighers      []weighers.Weighted
	Authenticator Authenticator
	// KeystoneURI is Keystone's address for callers without a token; empty without Keystone.
	KeystoneURI string
	Policy      Enforcer
	// Ping returns nil if the database answers.
	Ping func(ctx context.Context) error
	// Doctor examines consistency; nil means that there are no examinations.
	Doctor Doctor
	// Instances finds the servers of reservations; nil means that no reservation has servers.
	Instances Instances
	Decisions Decisions
	Placing   Placing
	// Images stages images; nil means that the image of a reservation is stored but not staged.
	Images Images
	// Energy is the energy controller; nil means that there is none.
	Energy Energy
	// Packing moves instances. If its Admin is nil, no instances can be moved.
	Packing Packing
	// BestEffort is the queue of best-effort work; nil means that there is none.
	BestEffort BestEffort
	// Demo is the simulated cloud; nil means that the cloud is not simulated.
	Demo Demo
	// Blazar are the calls in Blazar's form; nil means that they are not served.
	Blazar *Blazar
	// Probes check the other parts that readiness reports.
	Probes []Probe
	// BeforeEnd is the default of before_end: how many seconds before the end the owner gets a
	// warning; at most half of the reservation.
	BeforeEnd    int64
	MaxBodyBytes int64
	// RequestTimeout limits the time of one request; 0 means 30 seconds.
	RequestTimeout time.Duration
	// RequestsPerSecond is how many requests a project may send per second in the long run, 0 means
	// no limit; Burst is how many it may send at once.
	RequestsPerSecond float64
	Burst             int
	// RequestsAtOnce is how many requests of a project are served at the same time; the others
	// wait. 0 means no limit.
	RequestsAtOnce int
	// Streams bound the streams of events.
	Streams Streams
	// Replica is the name of this run of the process among all replicas.
	Replica string
	// FailuresPerSecond is how many wrong tokens that Keystone must check an address may send per
	// second in the long run, 0 means no limit; FailureBurst is how many it may send at once.
	FailuresPerSecond float64
	FailureBurst      int
	// ProxyHeaders is true if X-Forwarded-Proto, -Host, -Prefix and -For are trusted.
	ProxyHeaders bool
	// Dashboard serves the files of the calendar page; nil means that there is no page.
	Dashboard http.Handler
	// SignIn exchanges what users of the page enter for tokens; nil means that nobody signs in.
	SignIn SignIn
	// FeedSecret is the key that signs the links to the projects' feeds; empty means that there are
	// no links.
	FeedSecret string
	Version    string
	// Now is the service's time. Every answer has it in its header Date.
	Now func() span.Instant
	// Speed is how many times as fast as real time Now passes, with a simulated cloud; 0 and 1 mean
	// real time.
	Speed int
	// Monotonic returns the time since a fixed instant, for measuring durations.
	Monotonic    func() time.Duration
	NewRequestID func() string
	// Log receives the context of the request; LogHandler adds the ids of the request.
	Log      *slog.Logger
	Registry *prometheus.Registry
	// Tracer traces requests; nil traces none.
	Tracer *tracing.Tracer
}

// Server is the handler of the API.
type Server struct {
	handler http.Handler
	server  *server
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Drain makes clients leave: from now on the health check fails, so that a load balancer chooses
// another replica, and every answer closes its connection. Requests are still served, but streams
// end.
func (s *Server) Drain() {
	s.server.draining.Store(true)
	s.server.streams.end()
}

type server struct {
	Options
	metrics  *metrics
	origins  http.CrossOriginProtection
	draining atomic.Bool
	database *watch
	parts    []*watch // including the database
	projects *limits  // by project
	line     *turns.Gate
	failures *limits // wrong tokens, by address
	// connections limits wrong tokens by connection, if it may be a proxy.
	connections *limits
	arriving    *carried // bodies
	unsent      *carried // answers
	scrapes     *scrapes
	leaseTexts  *leaseTexts
	events      *eventLog
	streams     *streams
	hostNews    hostNews
	prints      fingerprints
	tags        *lru.Cache[string, string] // of the last calendars, by calendarView.key
}

// New returns the server of the API.
func New(o Options) *Server {
	gin.SetMode(gin.ReleaseMode)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 30*time.Second)
	s := &server{
		Options: o, metrics: newMetrics(o.Registry, o.Booking),
		projects: newLimits(o.RequestsPerSecond, o.Burst), line: newLine(o.RequestsAtOnce), failures: newLimits(o.FailuresPerSecond, o.FailureBurst),
		connections: newLimits(proxied*o.FailuresPerSecond, proxied*o.FailureBurst),
		arriving:    newCarried(mostArriving, mostArrivingOfAll), unsent: newCarried(mostUnsent, mostUnsentOfAll),
		scrapes:    newScrapes(o.Registry, o.Monotonic),
		leaseTexts: newLeaseTexts(),
		tags:       newTags(),
		// No event tells of changes before the service listens, so the events count from the next second on.
		events: newEventLog(processID(o.Replica), o.Now().Add(1)), streams: newStreams(o.Streams),
	}
	s.hostNews.told = o.Inventory.Snapshot()
	o.Booking.Listen(s.learn)
	s.measureStreams()
	s.database = s.watch(Probe{"database", o.Ping})
	s.measureDatabase()
	s.parts = []*watch{s.database}
	for _, p := range o.Probes {
		s.parts = append(s.parts, s.watch(p))
	}
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseRawPath, engine.UnescapePathValues = true, true
	engine.Use(s.trace, s.identify, s.date, s.bound, s.measure, s.recover, s.sameOrigin, s.readCookie)
	engine.NoRoute(func(c *gin.Context) {
		contract := "openapi.yaml"
		if inBlazarsForm(c) && s.Blazar == nil {
			s.fail(c, fault.New(fault.NotFound, "Blazar's API is switched off here ([blazar] enabled); /v1/%s lists the calls", contract))
			return
		}
		if inBlazarsForm(c) {
			contract = "openapi-blazar.yaml"
		}
		s.fail(c, fault.New(fault.NotFound, "there is nothing at %s; /v1/%s lists the calls", c.Request.URL.Path, contract))
	})
	engine.NoMethod(func(c *gin.Context) {
		s.failWith(c, http.StatusMethodNotAllowed, fault.New(fault.Invalid, "method %s is not allowed at %s", c.Request.Method, c.Request.URL.Path))
	})
	s.register(engine, s.table())
	return &Server{handler: withoutTrailingSlash(withHead(engine)), server: s}
}

// withHead serves HEAD as GET, except where HEAD has an answer of its own, and for the stream of events,
// which has no end. The answer has no body: the server that reads the requests knows that it was HEAD.
func withHead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && r.URL.Path != healthPath && r.URL.Path != eventsPath {
			r = r.Clone(r.Context())
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// withoutTrailingSlash accepts a trailing slash everywhere. The page keeps its own, because its links are relative.
func withoutTrailingSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; len(path) > 1 && strings.HasSuffix(path, "/") && path != dashboardPath {
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
