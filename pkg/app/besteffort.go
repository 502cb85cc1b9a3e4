package app

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	work "github.com/almanac-cloud/almanac/reservation/besteffort/openstack"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// checkBestEffort refuses inconsistent settings of [besteffort].
func checkBestEffort(c config.Config) error {
	if c.BestEffort.Threshold < 0 {
		return fault.Field("[besteffort] scheduling_threshold_factor", "must not be negative")
	}
	if !c.BestEffort.Enabled {
		return nil
	}
	switch {
	case !onOpenStack(c):
		return fault.Field("[besteffort] enabled", "takes [inventory] source = openstack")
	case c.API.AuthStrategy == "noauth":
		return fault.Field("[besteffort] enabled", "takes [api] auth_strategy = keystone: servers are made in the names of those who ask for them")
	case c.Keystone.ApplicationCredentialSecret != "":
		return fault.Field("[besteffort] enabled", "takes username and password in [keystone_authtoken]: "+
			"Keystone lets no application credential use the trusts by which servers are made in the names of others")
	}
	return bestEffortRules(c.BestEffort).Check()
}

// backfillings maps Haizea's words to the kinds of backfilling.
var backfillings = map[string]besteffort.Backfilling{
	"off": besteffort.None, "aggressive": besteffort.Aggressive, "intermediate": besteffort.Intermediate, "conservative": besteffort.Conservative,
}

func bestEffortRules(c config.BestEffort) besteffort.Rules {
	return besteffort.Rules{
		Suspend: c.Suspension == "all", Backfilling: backfillings[c.Backfilling], Promises: c.BackfillingReservations, Worthwhile: c.Threshold,
		Overheads: besteffort.Overheads{
			Boot: seconds(c.BootTime), Shutdown: seconds(c.ShutdownTime), Operation: seconds(c.OperationTime),
			SuspendRate: float64(c.SuspendRate), ResumeRate: float64(c.ResumeRate),
		},
	}
}

// openBestEffort prepares the queue of best-effort requests; nil without a cloud.
func (a *App) openBestEffort(db *store.Store, hosts *inventory.SnapshotCache) *queue {
	if a.cloud == nil {
		return nil
	}
	c, log := a.config.BestEffort, a.log.With("component", "besteffort")
	nova := clientOptions(a.config.Nova.Client)
	nova.MaxMicroversion = a.config.Nova.MaxMicroversion
	cloud := work.New(work.Options{
		Compute: a.cloud.compute, Placement: a.cloud.placement, Trusts: keystone.Trusts{Session: a.cloud.session},
		Nova: nova, Glance: clientOptions(a.config.Glance), Session: a.cloud.session, Records: db, Scripts: db, Hosts: hosts.Snapshot,
		PreemptibleHint: a.config.Preemptible.Hint, Now: a.clock.now,
	})
	rules := bestEffortRules(c)
	view := func() state.ClusterView {
		return state.ClusterView{Hosts: hosts.Snapshot(), Live: a.desk.Live(span.Span{Start: -span.Forever, End: span.Forever}), Clear: seconds(a.config.Reservation.EvictionTime)}
	}
	works := controller.New(controller.Options{
		Records: db, Servers: cloud, Actions: cloud, Allocations: cloud, Trusts: cloud, View: view, Planner: rules, Leases: a.leases(db),
		Untrusted: a.doubt(hosts),
		Limits: state.Limits{
			Build: seconds(c.BuildTimeout), Order: seconds(c.OrderTimeout), Unanswered: 2 * seconds(a.config.Nova.Client.Timeout+time.Second),
			Retries: c.Retries, Backoff: seconds(c.RetryInterval),
		},
		StepEvery: c.WakeupInterval, Now: a.clock.now, Log: log,
	})
	desk := &requests.API{
		Store: db, Catalogue: cloud, Trusts: cloud, View: view, Planner: rules, MostVMs: c.MaxVMsPerProject,
		Changed: works.Wake, Planned: works.Expected, Now: a.clock.now, NewID: uuid.NewString, Log: log,
	}
	if !c.Enabled {
		desk.Off = "best-effort work is not taken here: [besteffort] enabled is off"
	}
	keep := seconds(c.Retention)
	a.add(works.Job(), job.Job{
		Name: "old best-effort work", Every: forgetEvery,
		Step: job.Leased(a.leases(db), "old best-effort work", forgetTTL, func(ctx context.Context, held *job.Held) error {
			_, err := db.PurgeBestEffort(ctx, held.Lease, a.clock.now().Add(-keep))
			return err
		}),
	})
	return &queue{desk, works}
}

// queue is the queue of best-effort requests in this process; nil without a cloud.
type queue struct {
	desk  *requests.API
	works *controller.Controller
}

// wake makes the controller examine the queue now; a nil queue ignores it.
func (q *queue) wake() {
	if q != nil {
		q.works.Wake()
	}
}

// shown returns the queue for the API.
func (q *queue) shown() api.BestEffort {
	if q == nil {
		return nil
	}
	return q.desk
}

// count returns how many VMs are in each phase, if this process runs the queue.
func (q *queue) count() map[besteffort.Phase]int {
	if q == nil {
		return nil
	}
	return q.works.Count()
}

func (q *queue) measure(m metrics) {
	for _, phase := range []besteffort.Phase{
		besteffort.Waiting, besteffort.Starting, besteffort.Running, besteffort.Suspending, besteffort.Suspended, besteffort.Resuming, besteffort.Stopping,
	} {
		m.gauge("almanac_besteffort_vms", "VMs of best-effort work that are not over, by phase, where this process works the queue off.",
			prometheus.Labels{"phase": string(phase)}, func() float64 { return float64(q.count()[phase]) })
	}
}

// pins keep the servers of best-effort requests on their planned hosts.
type pins struct{ records requests.Pins }

// Pin implements admission.Pins.
func (p pins) Pin(ctx context.Context, vm, project string, instances []string) (host, refusal string, err error) {
	return requests.Pin(ctx, p.records, vm, project, instances)
}
