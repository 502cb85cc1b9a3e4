// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/events"
	"github.com/almanac-cloud/almanac/pkg/api/instances"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/api/webhooks"
	"github.com/almanac-cloud/almanac/pkg/dashboard"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	imagectl "github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/weighers"
)

// apiParts are the results of the features that the API serves.
type apiParts struct {
	shared
	callers  identity
	enforced *enforcement         // nil without a cloud
	images   *imagectl.Controller // nil if no images are staged
	energy   *controller.Admin
	packing  instances.Packing
	queue    *requests.API // nil without a cloud
	webhooks webhooks.API
	pipeline *scheduler.Pipeline // nil if another scheduler chooses hosts
	doctor   *countedDoctor
}

// lookEvery is how often every part is probed, and so how exact the time of a failure is.
const lookEvery = 5 * time.Second

// tellEvery is how often streams of events are told which hosts have changed.
const tellEvery = time.Second

// serveAPI makes the REST API the face of the process. All other features must be open: it shows
// their metrics and probes.
func (a *App) serveAPI(parts apiParts) error {
	a.jobs = a.watchJobs()
	o, err := parts.options()
	if err != nil {
		return err
	}
	o.Registry, o.Probes = a.registry(), a.probes()
	server := api.New(o)
	a.face = server
	a.jobs = append(a.jobs, watch(job.Job{Name: "readiness", Every: lookEvery, Step: server.Look}),
		watch(job.Job{Name: "news of hosts", Every: tellEvery, Step: server.Publish}))
	return nil
}

func (p apiParts) options() (api.Options, error) {
	c := p.config
	own, err := ownWeighers(c, weighers.Ports{Promises: p.bookings, Efficiencies: p.hosts})
	if err != nil {
		return api.Options{}, fmt.Errorf("[filter_scheduler]: %w", err)
	}
	o := api.Options{
		Booking: p.bookings, Reader: p.db, History: p.db, Inventory: p.hosts, Doctor: p.doctor, Decisions: p.db, Energy: p.energy, Packing: p.packing,
		Admission: admission.Admission{
			Promises: reservationFilter(c, p.bookings), Records: p.db, Rule: preemptibleRule(c), Pins: pins{p.db}, Log: p.logOf("api"),
		},
		Placing: instances.Placing{Pipeline: p.pipeline}, Weighers: own,
		Authenticator: p.callers, KeystoneURI: cmp.Or(c.Keystone.WWWAuthenticateURI, c.Keystone.AuthURL), Policy: p.callers.rules,
		Ping: p.db.Ping, BeforeEnd: c.Reservation.BeforeEnd, MaxBodyBytes: int64(c.API.MaxBodyBytes),
		RequestTimeout: c.API.RequestTimeout, RequestsPerSecond: float64(c.API.RateLimit), Burst: c.API.RateBurst,
		RequestsAtOnce: c.API.RequestsAtOnce, Replica: p.replica,
		Streams:           events.Limits{Most: c.API.Streams, MostPerProject: c.API.StreamsPerProject},
		FailuresPerSecond: float64(c.API.FailureLimit), FailureBurst: c.API.FailureBurst,
		ProxyHeaders: c.API.ParseProxyHeaders, FeedSecret: c.API.FeedSecret,
		Version: p.version, Speed: p.pace.Speed(), Now: p.clock.now, Monotonic: stopwatch(),
		Leases:       p.db,
		Series:       p.db,
		Webhooks:     p.webhooks,
		NewID:        uuid.NewString,
		NewRequestID: func() string { return "req-" + uuid.NewString() },
		Log:          p.logOf("api"),
		Tracer:       p.tracer,
	}
	// A nil pointer in an interface would not be nil.
	if p.images != nil {
		o.Images = p.images
	}
	if p.callers.signIn != nil {
		o.SignIn = p.callers.signIn
	}
	if c.API.Dashboard {
		o.Dashboard = dashboard.New()
	}
	if b := c.Blazar; b.Enabled {
		o.Blazar = &leases.Options{BeforeEnd: int64(b.MinutesBeforeEndLease) * 60, ListAllForAdmin: b.ListAllForAdmin, OnlyEnrolled: b.OnlyEnrolled}
		if p.networks != nil {
			o.Blazar.Addresses, o.Blazar.Neutron = p.db, p.networks
		}
		if p.enforced != nil {
			if p.cloud.simulated == nil {
				o.Blazar.Nova = p.cloud.compute
			}
			if b.MirrorAggregates || c.Reservation.Fence == filters.FencePool {
				o.Blazar.PoolChanged = p.enforced.poolChanged(p.logOf("api"))
			}
		}
	}
	if p.cloud != nil && p.cloud.simulated != nil {
		o.Demo = demo{p.cloud.simulated, p.enforced.backend, c.Preemptible.Rule.Hint}
	}
	if p.queue != nil {
		o.BestEffort = p.queue
	}
	if p.enforced != nil {
		o.Instances, o.Placing.Flavors = p.enforced.backend, p.cloud.flavors().Flavors
	}
	if p.source.board != nil {
		o.Placing.States = p.source.board.Load
	}
	return o, nil
}

// inventoryFace is the HTTP interface of a process with the role inventory but without the role
// api, for monitoring.
type inventoryFace struct {
	http.Handler
	draining atomic.Bool
}

// Drain implements face.
func (f *inventoryFace) Drain() { f.draining.Store(true) }

// newInventoryFace answers at /, /healthcheck and /metrics like the API. It lists no API version,
// and its health depends on the jobs.
func newInventoryFace(version string, jobs []*watchedJob, registry *prometheus.Registry) *inventoryFace {
	mux := http.NewServeMux()
	f := &inventoryFace{Handler: mux}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "almanac", "release": version, "versions": []string{}})
	})
	mux.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		status, reason := http.StatusOK, "OK"
		switch {
		case f.draining.Load():
			status, reason = http.StatusServiceUnavailable, "draining"
		case slices.ContainsFunc(jobs, func(w *watchedJob) bool { return w.trouble() != nil }):
			status, reason = http.StatusServiceUnavailable, "could not read the hosts, or announce them to the other processes"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reason+"\n")
	})
	mux.Handle("GET /metrics", api.ServeMetrics(registry, stopwatch()))
	return f
}
