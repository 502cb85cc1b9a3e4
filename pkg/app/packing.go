// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/instances"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	novapacking "github.com/almanac-cloud/almanac/pkg/rebalance/openstack"
)

// checkPacking refuses inconsistent settings of [packing].
func checkPacking(c config.Config) error {
	if c.Packing.Yield.Share <= 0 {
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
	if o.Evicts = false; c.Scheduler.Mode == config.ModeReplace {
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

// openPacking opens planning and moving of instances, in processes that read the hosts of a cloud.
func openPacking(s shared, admin *controller.Admin) (served instances.Packing, f feature, err error) {
	c := s.config.Packing
	made := func(rebalance.State) int64 { return 0 }
	defer func() { f.metrics.packing(made) }()
	if s.source.cloud == nil {
		return served, f, nil
	}
	list, err := packingFilters(s.config, s.bookings)
	if err != nil {
		return served, f, err
	}
	cloud := s.cloud.moves()
	w := &world{shared: s, groups: cloud, energy: admin, filters: list}
	if c.CPUNeed == rebalance.OfDiagnostics {
		w.meter = &novapacking.Meter{Compute: s.cloud.compute, Now: s.clock.now}
	}
	o := c.Executor
	o.Records, o.Archive, o.Leases, o.Cloud, o.Situation, o.Untrusted = s.db, s.db, s.leases(), cloud, w.situation, s.doubt
	o.Now, o.Log = s.clock.now, s.logOf("packing")
	executor := rebalance.NewExecutor(o)
	made = executor.Made
	f.jobs = append(f.jobs, executor.Job())
	return instances.Packing{CPUNeed: c.CPUNeed, Preset: c.Preset, Admin: &rebalance.Admin{
		Records: s.db, Archive: s.db, Situation: w.situation, Untrusted: s.doubt, Ordered: executor.Wake, Now: s.clock.now, NewID: uuid.NewString,
	}}, f, nil
}

// packing adds how many moves ended in each state in this process.
func (m *metrics) packing(made func(rebalance.State) int64) {
	for _, state := range []rebalance.State{rebalance.MoveDone, rebalance.MoveSkipped, rebalance.MoveFailed} {
		m.counter("almanac_packing_moves_total", "Live migrations of plans that this process has carried out, by outcome.",
			prometheus.Labels{"outcome": string(state)}, func() float64 { return float64(made(state)) })
	}
}

// world reads the input of a packing plan.
type world struct {
	shared
	groups  movingCloud
	energy  *controller.Admin
	meter   *novapacking.Meter // nil if needs come from flavors
	filters []filters.Filter
}

func (w *world) situation(ctx context.Context) (rebalance.Situation, error) {
	var none rebalance.Situation
	use, err := w.measured(ctx)
	if err != nil {
		return none, err
	}
	if _, err := w.source.cloud.Hosts(ctx); err != nil {
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
		kept[id] = "it is best-effort work, which stays on its planned host"
	}
	states := w.source.board.Load()
	if states == nil {
		return none, inventory.ErrNotRead
	}
	s := rebalance.Situation{
		Now: w.clock.now(), States: states, Hosts: w.hosts.Snapshot(), Filters: w.filters, Groups: groups, Closed: closed,
		Use: use, Kept: kept, Share: w.config.Packing.Yield.Share, Told: evictedAt,
	}
	return s, nil
}

// measured returns the CPU use of instances. It may take long, so it runs before the other
// readings.
func (w *world) measured(ctx context.Context) (map[string]float64, error) {
	if w.meter == nil {
		return nil, nil
	}
	states := w.source.board.Load()
	if states == nil {
		if _, err := w.source.cloud.Hosts(ctx); err != nil {
			return nil, err
		}
		if states = w.source.board.Load(); states == nil {
			return nil, inventory.ErrNotRead
		}
	}
	return w.meter.Use(ctx, running(states)), nil
}

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
			closed[host] = "the energy controller switches it off or has done so"
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
