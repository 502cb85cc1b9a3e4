// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// checkBestEffort refuses inconsistent settings of [besteffort].
func checkBestEffort(c config.Config) error {
	if !c.BestEffort.Enabled {
		return nil
	}
	switch {
	case !onCloud(c):
		return fault.Field("[besteffort] enabled", "requires [inventory] source = openstack, or simulated")
	case simulates(c):
		return nil // it creates servers for everybody
	case c.API.AuthStrategy == "noauth":
		return fault.Field("[besteffort] enabled", "requires [api] auth_strategy = keystone: Almanac creates servers in the names of the users who request them")
	case c.Keystone.ApplicationCredentialSecret != "":
		return fault.Field("[besteffort] enabled", "requires username and password in [keystone_authtoken]: "+
			"Keystone does not let an application credential use the trusts with which Almanac creates servers for other users")
	}
	return nil
}

// openBestEffort opens the queue of best-effort requests; nil without a cloud.
func openBestEffort(s shared, enforced *enforcement) (*requests.API, feature) {
	var f feature
	if enforced == nil {
		f.metrics.bestEffort(func() map[besteffort.Phase]int { return nil })
		return nil, f
	}
	c, log := s.config.BestEffort, s.logOf("besteffort")
	cloud := s.queueCloud()
	view := func() state.ClusterView {
		return state.ClusterView{
			Hosts: s.hosts.Snapshot(), Live: s.bookings.Live(span.Always), Clear: s.config.Reservation.Rules.Eviction,
		}
	}
	limits := c.Limits
	limits.Unanswered = 2 * seconds(s.config.Nova.Timeout+time.Second)
	works := controller.New(controller.Options{
		Records: s.db, Servers: cloud, Actions: cloud, Allocations: cloud, Trusts: cloud, View: view, Planner: c.Rules, Leases: s.leases(),
		Untrusted: s.doubt, Limits: limits, StepEvery: c.WakeupInterval, Now: s.clock.now, Log: log,
	})
	queue := &requests.API{
		Store: s.db, Catalogue: cloud, Trusts: cloud, View: view, Planner: c.Rules, MostVMs: c.MaxVMsPerProject,
		Changed: works.Wake, Planned: works.Expected, Now: s.clock.now, NewID: uuid.NewString, Log: log,
	}
	if !c.Enabled {
		queue.Off = "this service does not accept best-effort work: [besteffort] enabled is off"
	}
	f.jobs = append(f.jobs, works.Job(), s.purge("old best-effort work", c.Retention, s.db.PurgeBestEffort))
	// At every change of reservations, servers may have to leave hosts, and hosts need fences.
	f.services = append(f.services, relay("changes of reservations", s.bookings.News(), func() {
		enforced.prepare.poke()
		works.Wake()
	}))
	f.metrics.bestEffort(works.Count)
	return queue, f
}

func (m *metrics) bestEffort(count func() map[besteffort.Phase]int) {
	for _, phase := range []besteffort.Phase{
		besteffort.Waiting, besteffort.Starting, besteffort.Running, besteffort.Suspending, besteffort.Suspended, besteffort.Resuming, besteffort.Stopping,
	} {
		m.gauge("almanac_besteffort_vms", "Best-effort VMs that have not ended, by phase, in the process that runs the queue.",
			prometheus.Labels{"phase": string(phase)}, func() float64 { return float64(count()[phase]) })
	}
}

// pins keep the servers of best-effort requests on their planned hosts.
type pins struct{ records requests.Pins }

// Pin implements admission.Pins.
func (p pins) Pin(ctx context.Context, vm, project string, instances []string) (host, refusal string, err error) {
	return requests.Pin(ctx, p.records, vm, project, instances)
}
