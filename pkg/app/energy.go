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
	ground "github.com/almanac-cloud/almanac/pkg/energy/openstack"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// checkEnergy refuses inconsistent settings of [energy].
func checkEnergy(c config.Config) error {
	if has(c, roleEnergy) && !has(c, roleAPI) {
		return fault.Field("[DEFAULT] roles", "energy takes the role api in the same process, which knows the reservations")
	}
	if _, err := c.Energy.PlanRules(); err != nil {
		return err
	}
	if _, err := forecaster(c.Energy); err != nil {
		return err
	}
	if _, err := newWattmeter(c.Energy); err != nil {
		return err
	}
	_, err := efficiencies(c)
	return err
}

func forecaster(c config.Energy) (energy.Forecaster, error) {
	name := c.Forecaster
	if name == "" {
		name = energy.DefaultForecaster
	}
	f, err := energy.NewForecaster(name, energy.Window(seconds(c.ForecastWindow)))
	if err != nil {
		return nil, fmt.Errorf("[energy]: %w", err)
	}
	return f, nil
}

// efficiencies reads the table of [energy] efficiency_file; empty without a file.
func efficiencies(c config.Config) (energy.Table, error) {
	if c.Energy.EfficiencyFile == "" {
		return energy.Table{}, nil
	}
	file, err := os.Open(c.Beside(c.Energy.EfficiencyFile))
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

// admitted returns the rule for the hosts that may be switched off.
func admitted(c config.Energy) energy.Admission {
	return energy.Admission{Aggregates: c.Aggregates, Traits: c.Traits, Property: c.Property}
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

// switching has the energy console of this process, and the last status.
type switching struct {
	console *controller.Admin
	seen    seen
}

// openEnergy prepares the operators' view of the energy controller, and with the role energy the
// controller itself.
func (a *App) openEnergy(db *store.Store, bus *bus, hosts *inventory.SnapshotCache) (*switching, error) {
	c := a.config.Energy
	rules, err := c.PlanRules()
	if err != nil {
		return nil, err
	}
	s := &switching{console: &controller.Admin{
		Records: db, Settings: db, History: db, Reports: db, Inventory: hosts, Promises: a.desk,
		Admission: admitted(c), Rules: rules, Configured: energy.Mode(c.Mode),
		StaleAfter: max(3*seconds(c.MeasureInterval), 60), Now: a.clock.now,
	}}
	a.add(s.seen.job(s.console))
	if !a.has(roleEnergy) {
		return s, nil
	}
	o, err := a.energyOptions(db, bus, hosts, rules)
	if err != nil {
		return nil, err
	}
	if bus.notifier != nil {
		o.Notices = switchNotices{bus.notifier, a.clock.now}
	}
	works := controller.New(o)
	s.console.Ordered = works.Wake
	a.add(works.Job(), a.oldAudit(db))
	if bus.own != nil {
		a.serveOn(bus.own, power.TrialsTopic, power.TrialsEndpoint(trials{s.console}))
	}
	return s, nil
}

// oldAudit deletes audit entries older than [energy] audit_time.
func (a *App) oldAudit(db *store.Store) job.Job {
	keep := seconds(a.config.Energy.AuditTime)
	return job.Job{Name: "old audit", Every: forgetEvery, Step: job.Leased(a.leases(db), "old audit", forgetTTL, func(ctx context.Context, held *job.Held) error {
		_, err := db.PurgeAudit(ctx, held.Lease, a.clock.now().Add(-keep))
		return err
	})}
}

func (a *App) energyOptions(db *store.Store, bus *bus, hosts *inventory.SnapshotCache, rules energy.Rules) (controller.Options, error) {
	c, log := a.config.Energy, a.log.With("component", "energy")
	o := controller.Options{
		Records: db, Settings: db, History: db, Reports: db, Promises: a.desk, Hosts: hosts, Leases: a.leases(db),
		Rules: rules, Switching: c.Switching(), Mode: energy.Mode(c.Mode), WakeTest: c.WakeTest && c.Rules != "paper",
		Admission:  admitted(c),
		MostFailed: c.MaxFailedBoots, BootTime: seconds(c.BootTime), Efficiency: a.powers.table.Of,
		Forecaster: func() (energy.Forecaster, error) { return forecaster(c) }, Keep: seconds(c.HistoryTime),
		Stopped: func() string { return stopFile(a.config.Beside(c.StopFile), c.StopFile) },
		// Other processes see the change when they read the hosts again.
		Changed: bus.pokeHosts,

		StepEvery: c.StepInterval, MeasureEvery: seconds(c.MeasureInterval), PlanEvery: seconds(c.PlanInterval),
		Replica: a.replica, Now: a.clock.now, NewID: uuid.NewString, Log: log,
	}
	meter, err := newWattmeter(c)
	if err != nil {
		return o, err
	}
	if meter != nil {
		o.Watts = meter.read
	}
	if a.cloud != nil {
		cloud := ground.New(a.cloud.compute, a.cloud.placement)
		o.Cloud, o.Vacancy = cloud, cloud
	}
	return o, a.reachMachines(&o, bus, hosts)
}

// stopFile returns why switching off is stopped: the file exists, or its existence cannot be
// determined. Empty if it does not exist.
func stopFile(path, given string) string {
	if given == "" {
		return ""
	}
	switch _, err := os.Stat(path); {
	case err == nil:
		return "the file of [energy] stop_file is there"
	case errors.Is(err, fs.ErrNotExist):
		return ""
	default:
		return "it cannot be told whether the file of [energy] stop_file is there"
	}
}

// reachMachines sets the agents that switch the machines: those on the message broker or, without
// one, simulated machines for hosts that come from a file.
func (a *App) reachMachines(o *controller.Options, bus *bus, hosts *inventory.SnapshotCache) error {
	if bus.own != nil {
		fleet := power.NewFleet(power.FleetOptions{
			Client: a.newClient(bus.own), Exchange: exchange, LostAfter: a.config.Energy.AgentTimeout, Now: time.Now,
		})
		a.serveOn(bus.own, power.AgentsTopic, fleet.Endpoint())
		a.add(job.Job{Name: "power agents", Every: time.Hour, Step: fleet.Discover})
		o.Agents = fleet
		return nil
	}
	machines := map[string]power.Driven{}
	if a.cloud == nil {
		for _, h := range hosts.Snapshot().Hosts() {
			boot := time.Duration(h.BootSeconds) * time.Second
			machines[h.Name] = power.Driven{Driver: "simulated", Machine: simulated.New(simulated.Options{Shutdown: boot / 4, Boot: boot})}
		}
	}
	agent, err := power.NewAgent(power.AgentOptions{
		Name: "simulated", Machines: machines, NewID: uuid.NewString, Now: time.Now, Log: o.Log,
	})
	if err != nil {
		return fmt.Errorf("simulate the machines: %w", err)
	}
	a.closers = append(a.closers, agent.Close)
	a.services = append(a.services, service{"simulated machines", func(ctx context.Context) error { agent.Run(ctx); return nil }})
	o.Agents = agent
	return nil
}
