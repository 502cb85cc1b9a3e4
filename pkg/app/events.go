package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/job"
	images "github.com/almanac-cloud/almanac/reservation/staging/openstack"
)

// listenToNova makes Nova's notifications trigger readings of the hosts and end the transfers of
// images that they report.
func (a *App) listenToNova(b *bus) error {
	if a.cloud == nil || !a.config.Nova.Notifications {
		return nil
	}
	url, option := a.config.Nova.TransportURL, "[nova] transport_url"
	if url == "" {
		url, option = a.config.Default.TransportURL, "[DEFAULT] transport_url"
	}
	transport, at, err := a.openTransport(b, "nova", url)
	if err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	queues, err := at.Queues(a.config.Rabbit.Queues)
	if err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	events := openstack.NewEvents(transport, openstack.EventOptions{
		Queues: queues, Queue: "almanac." + a.replica, Builds: a.cloud.builds, Also: a.hearImages, Idle: images.Own, Log: a.log.With("component", "messaging"),
	})
	log := a.log.With("component", "inventory")
	a.services = append(a.services, service{"nova's notifications", func(ctx context.Context) error {
		// Notifications only speed up readings, so a failure of theirs stops nothing else.
		if err := events.Serve(ctx); err != nil && ctx.Err() == nil {
			log.Error("Nova's notifications are not heard any more; changes are seen at the next reading, and transfers of images end when their time is over", "error", err)
		}
		return nil
	}})
	if a.has(config.RoleInventory) {
		a.services = append(a.services, b.news(events.Changed()))
	}
	return nil
}

// sharedSource serves several readers that react to the same change with one reading. A reading
// younger than openstack.DefaultGather began after that change.
type sharedSource struct{ readings *job.Shared[[]inventory.Host] }

func shareSource(source inventory.Source) sharedSource {
	return sharedSource{&job.Shared[[]inventory.Host]{Read: source.Hosts, Limit: cloudTimeout, Young: openstack.DefaultGather}}
}

// Hosts implements inventory.Source.
func (s sharedSource) Hosts(ctx context.Context) ([]inventory.Host, error) {
	hosts, err := s.readings.Get(ctx)
	return slices.Clone(hosts), err
}
