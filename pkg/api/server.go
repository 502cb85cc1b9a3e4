// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/events"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/api/page"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Server is the handler of the API.
type Server struct {
	calls  *serving.Server
	events *events.API
	health *health
}

// New returns the server of the API.
func New(o Options) *Server {
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 30*time.Second)
	measureReservations(o.Registry, o.Booking)
	s := &Server{health: newHealth(o)}
	s.events = events.New(events.Options{
		Promises: o.Booking, Snapshot: o.Inventory.Snapshot, Limits: o.Streams, Replica: o.Replica, Now: o.Now, Registry: o.Registry,
	})
	table := parts{events: s.events, health: s.health, scrapes: newScrapes(o.Registry, o.Monotonic)}.table(o)
	s.calls = serving.New(serving.Options{
		Authenticator: o.Authenticator, KeystoneURI: o.KeystoneURI, Policy: o.Policy, Reservations: o.Booking,
		Form: leases.Form(), Nowhere: nowhere(o.Blazar != nil), Page: page.Path, Before: []serving.Step{pageOf(o).ReadCookie},
		MaxBodyBytes: o.MaxBodyBytes, RequestTimeout: o.RequestTimeout,
		RequestsPerSecond: o.RequestsPerSecond, Burst: o.Burst, Line: serving.NewLine(o.RequestsAtOnce),
		FailuresPerSecond: o.FailuresPerSecond, FailureBurst: o.FailureBurst, ProxyHeaders: o.ProxyHeaders,
		Now: o.Now, Monotonic: o.Monotonic, NewRequestID: o.NewRequestID, Log: o.Log, Registry: o.Registry, Tracer: o.Tracer,
	}, table)
	s.health.draining = s.calls.Draining
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.calls.ServeHTTP(w, r) }

// Drain makes clients leave: from now on the health check fails, so that a load balancer chooses
// another replica, and every answer closes its connection. Requests are still served, but streams
// end.
func (s *Server) Drain() {
	s.calls.Drain()
	s.events.End()
}

// Publish tells the streams which hosts have changed since the last call. It is a step of a job of
// the process, so that there is one comparison for all streams.
func (s *Server) Publish(ctx context.Context) error { return s.events.Publish(ctx) }

// nowhere returns the error of a request to a path without a route.
func nowhere(blazar bool) func(r *http.Request) *fault.Error {
	return func(r *http.Request) *fault.Error {
		contract := "openapi.yaml"
		switch {
		case leases.InForm(r) && !blazar:
			return fault.New(fault.NotFound, "Blazar's API is switched off here ([blazar] enabled); /v1/%s lists the calls", contract)
		case leases.InForm(r):
			contract = "openapi-blazar.yaml"
		}
		return fault.New(fault.NotFound, "there is nothing at %s; /v1/%s lists the calls", r.URL.Path, contract)
	}
}
