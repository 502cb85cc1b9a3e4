// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/calendar"
	"github.com/almanac-cloud/almanac/pkg/api/events"
	"github.com/almanac-cloud/almanac/pkg/api/hosts"
	"github.com/almanac-cloud/almanac/pkg/api/instances"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/api/page"
	"github.com/almanac-cloud/almanac/pkg/api/reservations"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/api/webhooks"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/weighers"
)

// Options are the dependencies and settings of the API.
type Options struct {
	Booking *booking.Service
	Reader  reservation.Reader
	Leases  reservation.LeaseReader
	Series  reservation.SeriesReader
	// NewID returns a new id for a reservation or a floating IP.
	NewID     func() string
	History   calendar.History
	Inventory *inventory.SnapshotCache
	Admission admission.Admission
	// Weighers are the weighers whose weights the plugin in nova-scheduler uses.
	Weighers      []weighers.Weighted
	Authenticator serving.Authenticator
	// KeystoneURI is Keystone's address for callers without a token; empty without Keystone.
	KeystoneURI string
	Policy      serving.Enforcer
	// Ping returns nil if the database answers.
	Ping func(ctx context.Context) error
	// Doctor examines consistency; nil means that there are no examinations.
	Doctor Doctor
	// Instances finds the servers of reservations; nil means that no reservation has servers.
	Instances reservations.Instances
	Decisions instances.DecisionLog
	Placing   instances.Placing
	// Images stages images; nil means that the image of a reservation is stored but not staged.
	Images Images
	// Energy is the energy controller; nil means that there is none.
	Energy Energy
	// Packing moves instances. If its Admin is nil, no instances can be moved.
	Packing instances.Packing
	// Webhooks are the webhooks of projects, and who may be told.
	Webhooks webhooks.API
	// BestEffort is the queue of best-effort work; nil means that there is none.
	BestEffort instances.Queue
	// Demo is the simulated cloud; nil means that the cloud is not simulated.
	Demo instances.Cloud
	// Blazar are the calls in Blazar's form; nil means that they are not served.
	Blazar *leases.Options
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
	Streams events.Limits
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
	SignIn page.SignIn
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

// Images stages the images of reservations on their hosts; *controller.Controller implements it.
type Images interface {
	reservations.Images
	// Overview returns the images on hosts and on their way.
	Overview() []controller.Overview
}

// Energy is the energy controller.
type Energy interface {
	hosts.EnergyControl
	hosts.EnergyHosts
	hosts.EnergyOrders
	hosts.EnergyHistory
}
