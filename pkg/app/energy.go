// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// checkEnergy refuses inconsistent settings of [energy].
func checkEnergy(c config.Config) error {
	if has(c, config.RoleEnergy) && !has(c, config.RoleAPI) {
		return fault.Field("[DEFAULT] roles", "energy requires the role api in the same process")
	}
	if _, err := newWattmeter(c.Energy); err != nil {
		return err
	}
	_, err := efficiencies(c)
	return err
}

// efficiencies reads the table of [energy] efficiency_file; empty without a file.
func efficiencies(c config.Config) (energy.Table, error) {
	if c.Energy.EfficiencyFile == "" {
		return energy.Table{}, nil
	}
	file, err := os.Open(c.ResolvePath(c.Energy.EfficiencyFile))
	if err != nil {
		return energy.Table{}, fault.Field("[energy] efficiency_file", "cannot be read: %v", err)
	}
	defer file.Close()
	table, err := energy.ReadTable(file)
	if err != nil {
		return energy.Table{}, fmt.Errorf("[energy] efficiency_file: %w", err)
	}
	return table, nil
}

// powers reports the power states of hosts and their efficiency to the inventory.
type powers struct {
	records interface {
		PowerRecords(ctx context.Context) (map[string]energy.Record, error)
	}
	table energy.Table
	// boot is the boot time of a host without known boots, and margin the time added to every
	// boot; in seconds.
	boot, margin int64
	now          func() span.Instant
}

func newPowers(p process, db *store.Store) (*powers, error) {
	table, err := efficiencies(p.config)
	e := p.config.Energy
	return &powers{records: db, table: table, boot: e.BootTime, margin: e.Rules.BootMargin, now: p.clock.now}, err
}

// PowerSettings implements inventory.PowerSettings.
func (p *powers) PowerSettings(ctx context.Context, hosts []string) (map[string]inventory.PowerSetting, error) {
	records, err := p.records.PowerRecords(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]inventory.PowerSetting{}
	for _, host := range hosts {
		r := records[host]
		set := r.Shown(p.now(), p.boot, p.margin)
		set.FlopsPerWatt = p.table.Of(host).FlopsPerWatt
		all[host] = set
	}
	return all, nil
}

// openEnergy opens the operators' view of the energy controller, and with the role energy the
// controller itself.
func openEnergy(s shared) (*controller.Admin, feature, error) {
	c, f := s.config.Energy, feature{}
	var wake func() // nil without the controller
	if s.has(config.RoleEnergy) {
		o, err := f.energyOptions(s)
		if err != nil {
			return nil, f, err
		}
		works := controller.New(o)
		wake = works.Wake
		f.jobs = append(f.jobs, works.Job(), s.purge("old audit", c.AuditTime, s.db.PurgeAudit))
	}
	admin := &controller.Admin{
		Records: s.db, Settings: s.db, History: s.db, Reports: s.db, Inventory: s.hosts, Promises: s.bookings, Ordered: wake,
		Admission: c.Admission, Rules: c.PlanRules(), Configured: c.Mode, StaleAfter: max(3*c.MeasureEvery, 60), Now: s.clock.now,
	}
	if s.has(config.RoleEnergy) && s.bus.own != nil {
		f.serveOn(s.process, s.bus, power.TrialsTopic, power.TrialsEndpoint(trials{admin}))
	}
	last := &seen{}
	f.jobs = append(f.jobs, last.job(admin))
	last.measure(&f.metrics)
	return admin, f, nil
}

func (f *feature) energyOptions(s shared) (controller.Options, error) {
	c := s.config.Energy
	o := c.Options
	o.Records, o.Settings, o.History, o.Reports, o.Promises, o.Hosts, o.Leases = s.db, s.db, s.db, s.db, s.bookings, s.hosts, s.leases()
	o.Rules, o.WakeTest = c.PlanRules(), c.WakeTest && !c.Paper
	o.Efficiency = s.powers.table.Of
	o.Forecaster = func() (energy.Forecaster, error) {
		return energy.NewForecaster(c.ForecasterName, energy.Window(c.ForecastWindow))
	}
	o.Stopped = func() string { return stopFile(s.config.ResolvePath(c.StopFile), c.StopFile) }
	o.Changed = s.source.changed.poke // other processes see the change when they read the hosts again
	o.Replica, o.Now, o.NewID, o.Log = s.replica, s.clock.now, uuid.NewString, s.logOf("energy")
	if s.bus.notifier != nil {
		o.Notices = switchNotices{s.bus.notifier, s.clock.now}
	}
	meter, err := newWattmeter(c)
	if err != nil {
		return o, err
	}
	if meter != nil {
		o.Watts = meter.read
	}
	if s.cloud != nil {
		cloud := s.cloud.power()
		o.Cloud, o.Vacancy = cloud, cloud
	}
	o.Agents, err = f.openAgents(s)
	return o, err
}

// stopFile returns why switching off is stopped: the file exists, or its existence cannot be
// determined. Empty if it does not exist.
func stopFile(path, given string) string {
	if given == "" {
		return ""
	}
	switch _, err := os.Stat(path); {
	case err == nil:
		return "the file of [energy] stop_file exists"
	case errors.Is(err, fs.ErrNotExist):
		return ""
	default:
		return "could not determine whether the file of [energy] stop_file exists"
	}
}

// openAgents opens the agents that switch the machines: those on the message broker or, without
// one, simulated machines for hosts that come from a file or belong to a simulated cloud.
func (f *feature) openAgents(s shared) (controller.Agents, error) {
	if s.bus.own != nil {
		fleet := power.NewFleet(power.FleetOptions{
			Client: f.newOwnClient(s.process, s.bus), Exchange: exchange, LostAfter: s.config.Energy.AgentTimeout, Now: time.Now,
		})
		f.serveOn(s.process, s.bus, power.AgentsTopic, fleet.Endpoint())
		f.jobs = append(f.jobs, job.Job{Name: "power agents", Every: time.Hour, Step: fleet.Discover})
		return fleet, nil
	}
	machines := map[string]power.Driven{}
	if s.cloud == nil || s.cloud.simulated != nil {
		for _, h := range s.hosts.Snapshot().Hosts() {
			boot := time.Duration(h.BootSeconds) * time.Second
			machines[h.Name] = power.Driven{Driver: "simulated", Machine: simulated.New(simulated.Options{
				Shutdown: boot / 4, Boot: boot, Watts: simulatedWatts, Wait: s.pace.Wait, Changed: s.cloud.switched(h.Name),
			})}
		}
	}
	agent, err := power.NewAgent(power.AgentOptions{
		Name: "simulated", Machines: machines, NewID: uuid.NewString, Now: s.pace.Now, Log: s.logOf("energy"),
	})
	if err != nil {
		return nil, fmt.Errorf("simulate the machines: %w", err)
	}
	f.closers = append(f.closers, agent.Close)
	f.services = append(f.services, service{"simulated machines", func(ctx context.Context) error { agent.Run(ctx); return nil }})
	return agent, nil
}

// simulatedWatts is the power of a simulated machine in each state, in watts.
var simulatedWatts = map[energy.State]float64{energy.On: 220, energy.Standby: 15, energy.Off: 5}

// switched returns a function that tells a simulated cloud whether the operating system of a host is
// up; nil without one.
func (c *cloud) switched(host string) func(up bool) {
	if c == nil || c.simulated == nil {
		return nil
	}
	return func(up bool) { c.simulated.SetUp(host, up) }
}
