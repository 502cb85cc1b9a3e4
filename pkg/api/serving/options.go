// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
)

// Options are what all calls need.
type Options struct {
	Authenticator Authenticator
	// KeystoneURI is Keystone's address for callers without a token; empty without Keystone.
	KeystoneURI  string
	Policy       Enforcer
	Reservations Reservations
	// Form is that of the answers at some paths.
	Form Form
	// Nowhere returns the error of a request to a path without a route.
	Nowhere func(r *http.Request) *fault.Error
	// Page is the path that keeps its slash at the end, because the links of the page there are relative.
	Page string
	// Before are the first steps of every request, also of one to a path without a route.
	Before       []Step
	MaxBodyBytes int64
	// RequestTimeout limits the time of one request.
	RequestTimeout time.Duration
	// RequestsPerSecond is how many requests a project may send per second in the long run, 0 means
	// no limit; Burst is how many it may send at once.
	RequestsPerSecond float64
	Burst             int
	// Line limits how many requests of a project are served at the same time; nil means no limit.
	Line *turns.Gate
	// FailuresPerSecond is how many wrong tokens that Keystone must check an address may send per
	// second in the long run, 0 means no limit; FailureBurst is how many it may send at once.
	FailuresPerSecond float64
	FailureBurst      int
	// ProxyHeaders is true if X-Forwarded-Proto, -Host, -Prefix and -For are trusted.
	ProxyHeaders bool
	// Now is the service's time. Every answer has it in its header Date.
	Now func() span.Instant
	// Monotonic returns the time since a fixed instant, for measuring durations.
	Monotonic    func() time.Duration
	NewRequestID func() string
	// Log receives the context of the request; LogHandler adds the ids of the request.
	Log      *slog.Logger
	Registry *prometheus.Registry
	// Tracer traces requests; nil traces none.
	Tracer *tracing.Tracer
}

// Reservations are the turns of projects, and what blocks a refused request.
type Reservations interface {
	// InTurn runs do in a project's turn. It fails if the turn does not come before ctx ends.
	InTurn(ctx context.Context, project string, do func()) error
	// Live returns the live reservations that overlap a time.
	Live(overlaps span.Span) []reservation.Reservation
}

// Form is the form that the answers at some paths have for the clients of another service.
type Form struct {
	// Has reports whether the answer to a request has the form, also where there is no route.
	Has func(r *http.Request) bool
	// ContentType is that of all answers.
	ContentType string
	// Refusal returns how a refusal is answered.
	Refusal func(c *Call, r *reservation.Refusal) RefusalForm
	// Error returns the body of an error.
	Error func(status int, e v1.ErrorAnswer) any
}

// RefusalForm is how a refusal is answered.
type RefusalForm struct {
	Status   int
	Text     string
	EndField string // the field of the time at which a reservation ends
}

// HealthPath is the path that balancers ask every second.
const HealthPath = "/healthcheck"
