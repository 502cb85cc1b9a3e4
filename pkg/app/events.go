// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
	novaimages "github.com/almanac-cloud/almanac/reservation/staging/openstack"
)

// openEvents opens the service that receives Nova's notifications: they trigger readings of the
// hosts, and end the transfers of images that they report. images is nil if none are staged.
func openEvents(p process, cloud *cloud, source *hostSource, images *controller.Controller) (f feature, err error) {
	reads := p.has(config.RoleInventory)
	if cloud != nil && cloud.simulated != nil {
		var hear func(controller.Word)
		if images != nil {
			hear = images.Hear
		}
		f.jobs = append(f.jobs, simulatedJob(cloud.simulated, hear))
		return f, nil
	}
	if cloud == nil || !p.config.Nova.Notifications || !reads && images == nil {
		return f, nil
	}
	option, url := novaTransport(p.config)
	transport, queues, err := f.openPeer(p, "nova", option, url)
	if err != nil {
		return f, err
	}
	events := openstack.NewEvents(transport, openstack.EventOptions{
		Queues: queues, Queue: "almanac." + p.replica, Builds: source.builds, Also: func(n oslo.Notification) {
			if word, told := novaimages.Said(n); told && images != nil {
				images.Hear(word)
			}
		}, Idle: novaimages.Own, Log: p.logOf("messaging"),
	})
	f.services = append(f.services, service{"Nova's notifications", func(ctx context.Context) error {
		// Notifications only speed up readings, so a failure of theirs stops nothing else.
		if err := events.Serve(ctx); err != nil && ctx.Err() == nil {
			p.logOf("inventory").Error("no longer receiving Nova's notifications; changes take effect at the next reading of the hosts, "+
				"and transfers of images end after their estimated time", "error", err)
			cloud.unheard.Store(new(err.Error()))
		}
		return nil
	}})
	if reads {
		f.services = append(f.services, relay("changes of the hosts", events.Changed(), source.changed.poke))
	}
	return f, nil
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
