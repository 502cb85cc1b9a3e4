package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	ground "github.com/almanac-cloud/almanac/pkg/rebalance/openstack"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// checkPacking refuses inconsistent settings of [packing].
func checkPacking(c config.Config) error {
	if c.Packing.CPUShare <= 0 {
		return fault.Field("[packing] cpu_share", "must be more than 0")
	}
	_, err := packingFilters(c, nil)
	return err
}

// packingFilters returns the filters that decide whether an instance may be moved to a host: those
// of the pipeline in mode replace, otherwise Nova's own. A move evicts nothing, and its target is
// never a host of a reservation, where the instance would soon have to leave.
func packingFilters(c config.Config, promises filters.Promises) ([]filters.Filter, error) {
	names, o := filters.Enabled, filterOptions(c, promises)
	o.Reservation.Fill = false
	if o.Evicts = false; c.Scheduler.Mode == modeReplace {
		names = c.Filters.EnabledFilters
	} else {
		o.Yield.Floor, o.Available = 0, nil
	}
	list, err := filters.New(names, o)
	if err != nil {
		return nil, fmt.Errorf("[filter_scheduler]: %w", err)
	}
	return list, nil
}

// packing moves instances; nil in processes that do not read the hosts of a cloud.
type packing struct {
	console *rebalance.Admin
	carrier *rebalance.Executor
}

// openPacking prepares planning and moving.
func (a *App) openPacking(db *store.Store, hosts *inventory.SnapshotCache) (*packing, error) {
	c := a.config.Packing
	if c.YieldFloor > 0 && a.config.Scheduler.Mode != modeReplace {
		a.doctor.Idle = map[string]string{"[packing] min_yield_floor": fmt.Sprintf(
			"instances are not refused for the yields of hosts, though min_yield_floor is %g: that takes [scheduler] mode = replace, and it is %s",
			c.YieldFloor, a.config.Scheduler.Mode)}
	}
	if a.cloud == nil || a.cloud.source == nil {
		return nil, nil
	}
	list, err := packingFilters(a.config, a.desk)
	if err != nil {
		return nil, err
	}
	cloud := ground.Cloud{Compute: a.cloud.compute}
	w := &world{cloud: a.cloud, groups: cloud, hosts: hosts, db: db, energy: a.switching.console, clock: &a.clock, filters: list, share: c.CPUShare}
	if c.CPUNeed == rebalance.OfDiagnostics {
		w.meter = &ground.Meter{Compute: a.cloud.compute, Now: a.clock.now}
	}
	carrier := rebalance.NewExecutor(rebalance.ExecutorOptions{
		Records: db, Archive: db, Leases: a.leases(db), Cloud: cloud, Situation: w.situation, Untrusted: a.doubt(hosts),
		Timeout: seconds(c.MoveTimeout), MostFailed: c.MaxFailures, Every: c.PollInterval,
		Now: a.clock.now, Log: a.log.With("component", "packing"),
	})
	a.add(carrier.Job())
	return &packing{carrier: carrier, console: &rebalance.Admin{
		Records: db, Archive: db, Situation: w.situation, Untrusted: a.doubt(hosts), Ordered: carrier.Wake, Now: a.clock.now, NewID: uuid.NewString,
	}}, nil
}

// shown returns the settings and the console for the API.
func (p *packing) shown(c config.Packing) api.Packing {
	if p == nil {
		return api.Packing{}
	}
	return api.Packing{
		Admin: p.console, CPUNeed: c.CPUNeed,
		Preset: rebalance.Options{Migrations: c.Migrations, MemoryMB: int64(c.MemoryMB), Gain: c.MinGain},
	}
}

// measure registers how many moves ended in each state in this process.
func (p *packing) measure(m metrics) {
	for _, state := range []rebalance.State{rebalance.MoveDone, rebalance.MoveSkipped, rebalance.MoveFailed} {
		m.counter("almanac_packing_moves_total", "Live migrations of plans that this process has carried out, by what became of them.",
			prometheus.Labels{"outcome": string(state)}, func() float64 { return float64(p.made(state)) })
	}
}

func (p *packing) made(state rebalance.State) int64 {
	if p == nil {
		return 0
	}
	return p.carrier.Made(state)
}

// world reads the input of a packing plan.
type world struct {
	cloud   *cloud
	groups  ground.Cloud
	hosts   *inventory.SnapshotCache
	db      *store.Store
	energy  *controller.Admin
	meter   *ground.Meter // nil if needs come from flavors
	clock   *clock
	filters []filters.Filter
	share   float64
}

func (w *world) situation(ctx context.Context) (rebalance.Situation, error) {
	var none rebalance.Situation
	use, err := w.measured(ctx)
	if err != nil {
		return none, err
	}
	if _, err := w.cloud.source.Hosts(ctx); err != nil {
		return none, err
	}
	groups, err := w.groups.Groups(ctx)
	if err != nil {
		return none, err
	}
	closed, err := w.leaving(ctx)
	if err != nil {
		return none, err
	}
	queued, err := w.db.PlacedByQueue(ctx)
	if err != nil {
		return none, err
	}
	kept := map[string]string{}
	for _, id := range queued {
		kept[id] = "it is best-effort work, which is planned on its host"
	}
	states := w.cloud.board.Load()
	if states == nil {
		return none, errNotRead
	}
	s := rebalance.Situation{
		Now: w.clock.now(), States: states, Hosts: w.hosts.Snapshot(), Filters: w.filters, Groups: groups, Closed: closed,
		Use: use, Kept: kept, Share: w.share, Told: evictedAt,
	}
	return s, nil
}

// measured returns the CPU use of instances. It may take long, so it runs before the other
// readings.
func (w *world) measured(ctx context.Context) (map[string]float64, error) {
	if w.meter == nil {
		return nil, nil
	}
	states := w.cloud.board.Load()
	if states == nil {
		if _, err := w.cloud.source.Hosts(ctx); err != nil {
			return nil, err
		}
		if states = w.cloud.board.Load(); states == nil {
			return nil, errNotRead
		}
	}
	return w.meter.Use(ctx, running(states)), nil
}

var errNotRead = fault.New(fault.Unavailable, "the hosts of the cloud have not been read yet; try again in a moment")

// leaving returns the hosts that the energy controller switches off, or plans to, with the reason.
func (w *world) leaving(ctx context.Context) (map[string]string, error) {
	status, err := w.energy.Status(ctx)
	if err != nil {
		return nil, err
	}
	records, err := w.energy.Records.PowerRecords(ctx)
	if err != nil {
		return nil, err
	}
	closed := map[string]string{}
	if plan := status.Settings.Plan; plan != nil {
		for _, s := range plan.Switches {
			if s.To != energy.On {
				closed[s.Host] = "the energy controller plans to switch it off"
			}
		}
	}
	for host, r := range records {
		if r.Target != "" && r.Target != energy.On {
			closed[host] = "the energy controller switches it off, or has"
		}
	}
	return closed, nil
}

// running returns the active instances on hosts that are up, by host.
func running(states *inventory.States) map[string][]string {
	guests := map[string][]string{}
	for i := range states.Len() {
		h := states.Host(i)
		for _, one := range states.InstancesOn(i) {
			if h.Up && one.Status == "ACTIVE" {
				guests[h.Name] = append(guests[h.Name], one.ID)
			}
		}
	}
	return guests
}
