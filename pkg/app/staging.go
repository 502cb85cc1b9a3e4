// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// stages reports whether images of reservations are staged on their hosts.
func stages(c config.Config) bool { return onCloud(c) && c.Staging.Enabled }

func stagingRules(c config.Config) controller.Rules {
	rules := c.Staging.Rules
	rules.Heard = c.Nova.Notifications || simulates(c)
	if !c.Staging.RemoveUnused {
		rules.Lifetime = 0
	}
	return rules
}

// openStaging opens the controller that stages images on hosts; nil if staging is off. It publishes
// what it knows in known.
func openStaging(ctx context.Context, s shared, known *controller.Known) (c *controller.Controller, f feature, err error) {
	if s.cloud == nil || !stages(s.config) {
		f.metrics.images(func(controller.Outcome) (n controller.Count) { return n }, func() int { return 0 })
		return nil, f, nil
	}
	log := s.logOf("images")
	cloud, glance := s.cloud.images()
	c = controller.New(controller.Options{
		Records: s.db, Cloud: cloud, Glance: glance, Promises: s.bookings,
		Demands: planning.Demands, Known: known, Hosts: s.hosts, Leases: s.leases(), Rules: stagingRules(s.config),
		Now: s.clock.now, NewID: uuid.NewString, Log: log,
	})
	if !stagingRules(s.config).Heard {
		log.Info("without [nova] notifications, a transfer of an image counts as finished after its estimated time")
	}
	f.jobs = append(f.jobs, c.Job())
	f.metrics.images(c.Done, c.Short)
	return c, f, c.Refresh(ctx)
}

// images adds the metrics of image transfers: done returns the number, bytes and seconds of the
// transfers that ended in this process, by outcome; short returns how many reservations that have
// not begun will lack their image on a host.
func (m *metrics) images(done func(controller.Outcome) controller.Count, short func() int) {
	for _, outcome := range controller.Outcomes {
		labels := prometheus.Labels{"outcome": string(outcome)}
		m.counter("almanac_image_transfers_total", "Transfers of images to hosts that ended in this process, by outcome.", labels,
			func() float64 { return float64(done(outcome).Transfers) })
		m.counter("almanac_image_transfer_bytes_total", "Bytes of these images.", labels,
			func() float64 { return float64(done(outcome).Bytes) })
		m.counter("almanac_image_transfer_seconds_total", "Duration of these transfers.", labels,
			func() float64 { return float64(done(outcome).Seconds) })
	}
	m.gauge("almanac_reservations_image_missing", "Reservations whose image will not be on all hosts at the start.", nil,
		func() float64 { return float64(short()) })
}
