// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/store"
	usage "github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/enforcement/remote"
)

// openUsage opens the checks of [enforcement]; nil if none is enabled.
func openUsage(p process, cloud *cloud, db *store.Store, hosts *inventory.SnapshotCache) (c *usage.Checker, f feature, err error) {
	e, calls := p.config.Enforcement, newUsageCalls()
	f.metrics = append(f.metrics, calls.took)
	if len(e.Enabled) == 0 {
		return nil, f, nil
	}
	o := usage.Options{
		Rules: e.Rules, Records: db, Hosts: hosts.Snapshot, Now: p.clock.now, Log: p.logOf("enforcement"),
		AuthURL: cmp.Or(p.config.Keystone.WWWAuthenticateURI, p.config.Keystone.AuthURL),
		Region:  cmp.Or(p.config.Keystone.Region, p.config.Nova.Region),
	}
	if !slices.Contains(e.Enabled, usage.ExternalService) {
		return usage.New(o), f, nil
	}
	e.Service.Measure, e.Service.Elapsed = calls.ended, stopwatch()
	if e.Service.KeystoneToken {
		if e.Service.Session, err = sessionOf(p, cloud); err != nil {
			return nil, f, err
		}
	}
	service, err := remote.New(e.Service)
	if err != nil {
		return nil, f, fmt.Errorf("[enforcement]: %w", err)
	}
	o.Service = service
	c = usage.New(o)
	f.jobs = append(f.jobs, c.Job(punctualLeases{db, p.clock}))
	return c, f, nil
}

// sessionOf returns the session of the service user: that of the cloud if there is one.
func sessionOf(p process, cloud *cloud) (*keystone.Session, error) {
	if cloud != nil && cloud.session != nil {
		return cloud.session, nil
	}
	return keystone.NewSession(p.config.Keystone.Connection, time.Now, p.logOf("keystone"))
}

// checkUsage refuses settings of [enforcement] that do not agree.
func checkUsage(c config.Config) error {
	e := c.Enforcement
	if !slices.Contains(e.Enabled, usage.ExternalService) {
		return nil
	}
	switch s := e.Service; {
	case s.KeystoneToken && s.Token != "":
		return fault.Field("[enforcement] external_service_token", "must be empty with external_service_keystone_token")
	case s.Timeout*2 >= c.API.RequestTimeout:
		return fault.Field("[enforcement] external_service_timeout", "must be less than half of [api] request_timeout")
	}
	if e.Service.KeystoneToken {
		if err := checkAccount(c); err != nil {
			return fmt.Errorf("with [enforcement] external_service_keystone_token: %w", err)
		}
	}
	if _, err := remote.New(e.Service); err != nil {
		return fmt.Errorf("[enforcement]: %w", err)
	}
	return nil
}

// usageCalls measures the calls of the usage service.
type usageCalls struct{ took *prometheus.HistogramVec }

func newUsageCalls() usageCalls {
	c := usageCalls{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "almanac_usage_service_duration_seconds", Help: "How long the usage service took to answer, by what it was asked and by outcome.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"verb", "outcome"})}
	for _, verb := range usage.Verbs {
		for _, outcome := range remote.Outcomes {
			c.took.WithLabelValues(string(verb), string(outcome))
		}
	}
	return c
}

func (c usageCalls) ended(verb usage.Verb, outcome remote.Outcome, took time.Duration) {
	c.took.WithLabelValues(string(verb), string(outcome)).Observe(took.Seconds())
}
