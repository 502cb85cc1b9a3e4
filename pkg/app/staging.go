package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/glance"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
	images "github.com/almanac-cloud/almanac/reservation/staging/openstack"
)

// stages reports whether images of reservations are staged on their hosts.
func stages(c config.Config) bool { return onOpenStack(c) && c.Staging.Enabled }

func stagingRules(c config.Config) controller.Rules {
	rules := c.Staging.Rules
	rules.Heard = c.Nova.Notifications
	if !c.Staging.RemoveUnused {
		rules.Lifetime = 0
	}
	return rules
}

// openStaging prepares the controller that stages images on hosts; nil if staging is off. The desk
// opens with the controller's facts, and is attached to it afterwards.
func (a *App) openStaging(ctx context.Context, db *store.Store, hosts *inventory.SnapshotCache) (*controller.Controller, error) {
	if a.cloud == nil || !stages(a.config) {
		return nil, nil
	}
	client, err := glance.New(a.cloud.session, a.config.Glance)
	if err != nil {
		return nil, fmt.Errorf("[glance]: %w", err)
	}
	a.cloud.glance = client
	log := a.log.With("component", "images")
	c := controller.New(controller.Options{
		Records: db, Cloud: images.Cloud{Compute: a.cloud.compute}, Glance: images.Images{Glance: client}, Demands: booking.Demands, Hosts: hosts, Leases: a.leases(db),
		Rules: stagingRules(a.config), Now: a.clock.now, NewID: uuid.NewString, Log: log,
	})
	if !a.config.Nova.Notifications {
		log.Info("Nova's notifications are not heard ([nova] notifications): a transfer of an image is taken for done after its estimated time")
	}
	a.add(c.Job())
	return c, c.Refresh(ctx)
}

// hearImages passes Nova's notifications about images on to the controller.
func (a *App) hearImages(n oslo.Notification) {
	if a.images == nil {
		return
	}
	if word, told := images.Said(n); told {
		a.images.Hear(word)
	}
}

// shownImages returns the images for the API; nil if none are staged.
func (a *App) shownImages() api.Images {
	if a.images == nil {
		return nil
	}
	return a.images
}

// measureImages registers the results of image transfers in this process: all zero if no images
// are staged.
func (a *App) measureImages(m metrics) {
	done := func(o controller.Outcome) (n controller.Count) {
		if a.images != nil {
			n = a.images.Done(o)
		}
		return n
	}
	for _, outcome := range controller.Outcomes {
		labels := prometheus.Labels{"outcome": string(outcome)}
		m.counter("almanac_image_transfers_total", "Transfers of images to hosts that this process saw end, by outcome.", labels,
			func() float64 { return float64(done(outcome).Transfers) })
		m.counter("almanac_image_transfer_bytes_total", "The bytes of these images.", labels,
			func() float64 { return float64(done(outcome).Bytes) })
		m.counter("almanac_image_transfer_seconds_total", "For how long these transfers went on.", labels,
			func() float64 { return float64(done(outcome).Seconds) })
	}
	m.gauge("almanac_reservations_short_of_image", "Reservations that have not begun and will lack their image on a host.", nil,
		func() float64 {
			if a.images == nil {
				return 0
			}
			return float64(a.images.Short())
		})
}
