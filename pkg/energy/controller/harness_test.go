// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// ledger is the store of the tests, in memory. The epoch guards it, as in the database.
type ledger struct {
	mu       sync.Mutex
	epoch    int64
	holder   string
	records  map[string]energy.Record
	settings energy.Settings
	audit    []energy.Entry
	demand   []energy.Demand
	report   energy.Report
	err      error // the next call fails with it
}

var errLeaseLost = errors.New("the lease was lost")

func (l *ledger) write(lease job.Lease, act func() ([]energy.Entry, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if lease != (job.Lease{}) && lease.Epoch != l.epoch {
		return errLeaseLost
	}
	entries, err := act()
	if err != nil {
		return err
	}
	for _, e := range entries {
		e.ID = int64(len(l.audit) + 1)
		l.audit = append(l.audit, e)
	}
	return nil
}

// keep stores a record while the controller runs.
func (l *ledger) keep(r energy.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records[r.Host] = r
}

func (l *ledger) PowerRecords(context.Context) (map[string]energy.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.records), l.err
}

func (l *ledger) ChangePower(_ context.Context, lease job.Lease, hosts []string, change func(map[string]energy.Record) ([]energy.Entry, error)) error {
	return l.write(lease, func() ([]energy.Entry, error) {
		stored := map[string]energy.Record{}
		for _, host := range hosts {
			stored[host] = cmpRecord(l.records[host], host)
		}
		entries, err := change(stored)
		if err == nil {
			for _, host := range hosts {
				delete(l.records, host)
			}
			maps.Copy(l.records, stored)
		}
		return entries, err
	})
}

func cmpRecord(r energy.Record, host string) energy.Record {
	r.Host = host
	return r
}

func (l *ledger) EnergySettings(context.Context) (energy.Settings, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settings, l.err
}

func (l *ledger) ChangeEnergySettings(_ context.Context, lease job.Lease, change func(*energy.Settings) ([]energy.Entry, error)) error {
	return l.write(lease, func() ([]energy.Entry, error) { return change(&l.settings) })
}

func (l *ledger) Audit(_ context.Context, host string, before int64, limit int) ([]energy.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []energy.Entry
	for _, e := range slices.Backward(l.audit) {
		if (host == "" || e.Host == host) && (before == 0 || e.ID < before) && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, l.err
}

func (l *ledger) Demand(_ context.Context, from span.Instant) ([]energy.Demand, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.demand), l.err
}

func (l *ledger) AddDemand(_ context.Context, lease job.Lease, d energy.Demand, _ span.Instant) error {
	return l.write(lease, func() ([]energy.Entry, error) { l.demand = append(l.demand, d); return nil, nil })
}

func (l *ledger) SaveEnergyReport(_ context.Context, lease job.Lease, r energy.Report) error {
	return l.write(lease, func() ([]energy.Entry, error) { l.report = r; return nil, nil })
}

func (l *ledger) EnergyReport(context.Context) (energy.Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report, l.err
}

// lessee takes the lease for one controller.
type lessee struct {
	*ledger
	name string
}

func (l lessee) Take(_ context.Context, name string, _ time.Duration) (job.Lease, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == "" {
		l.holder = l.name
		l.epoch++
	}
	return job.Lease{Name: name, Epoch: l.epoch}, l.holder == l.name, nil
}

// server is a host of the scene, with its machine and what Nova knows about it.
type server struct {
	host     inventory.Host
	machine  *simulated.Machine
	disabled string
	guests   int
	stray    bool // an allocation that the inventory does not show yet
	heard    span.Instant
}

// scene is a small cloud on a virtual clock. It requires a bubble of synctest.
type scene struct {
	t       *testing.T
	ledger  *ledger
	agent   *power.Agent
	c       *controller.Controller
	console *controller.Admin
	options controller.Options

	mu        sync.Mutex
	servers   map[string]*server
	live      []reservation.Reservation
	untrusted string
	novaAway  bool
	agentLost bool
	unheard   bool // orders do not arrive
	unsaid    bool // answers do not arrive
	novaStuck bool // Nova cannot open a host
	ids       int
	breaches  []string // of rules that must always hold
}

const (
	bootTime = 120
	stopTime = 30
)

// newScene returns hosts n1, n2 …; n1 is the least efficient.
func newScene(t *testing.T, n int, change func(*controller.Options)) *scene {
	s := &scene{t: t, ledger: &ledger{records: map[string]energy.Record{}}, servers: map[string]*server{}}
	t.Cleanup(func() { time.Sleep(time.Hour) }) // booting machines finish
	machines := map[string]power.Driven{}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		one := &server{host: inventory.Host{
			Name: name, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 8192}, Reservable: true, FlopsPerWatt: float64(100 * (i + 1)),
			Properties: map[string]inventory.Value{"managed": inventory.BoolValue(true)},
		}}
		one.machine = simulated.New(simulated.Options{
			Shutdown: stopTime * time.Second, Boot: bootTime * time.Second,
			Changed: func(up bool) { s.operatingSystem(name, up) },
		})
		s.servers[name] = one
		machines[name] = power.Driven{Driver: "simulated", Machine: s.guard(name, one.machine)}
		s.ledger.keep(energy.Record{Host: name, LastWakeTest: &energy.WakeTest{Woke: true}})
	}
	var err error
	s.agent, err = power.NewAgent(power.AgentOptions{Name: "agent", Machines: machines, NewID: s.id, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.options = controller.Options{
		Records: s.ledger, Settings: s.ledger, History: s.ledger, Reports: s.ledger, Agents: (*reach)(s),
		Cloud: (*nova)(s), Vacancy: (*nova)(s), Promises: (*bookings)(s), Hosts: (*rack)(s), Leases: lessee{s.ledger, "one"},
		Rules:     energy.Rules{Horizon: 900, IdleNeeded: 5, BootMargin: 60},
		Switching: energy.Switching{Settle: 30, OffPatience: 120, BootTimeout: 600, Retries: 2, Backoff: 30, Probe: 3600},
		Admission: energy.Admission{Property: "managed"}, Mode: energy.ModeAuto, WakeTest: true, MostFailed: 3, BootTime: bootTime,
		Efficiency: func(string) energy.Efficiency { return energy.Efficiency{} },
		Forecaster: func() (energy.Forecaster, error) { return energy.NewForecaster("last_value") }, Keep: 86400,
		StepEvery: 5 * time.Second, MeasureEvery: 60, PlanEvery: 300, Replica: "one", Now: now, NewID: s.id, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&s.options)
	}
	s.c = controller.New(s.options)
	s.console = &controller.Admin{
		Records: s.ledger, Settings: s.ledger, History: s.ledger, Reports: s.ledger, Inventory: (*rack)(s),
		Promises: (*bookings)(s), Admission: s.options.Admission, Rules: s.options.Rules, Configured: s.options.Mode, StaleAfter: 300, Now: now, Ordered: s.c.Wake,
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go s.agent.Run(ctx)
	go s.beat(ctx)
	s.start(s.c)
	return s
}

func now() span.Instant { return span.At(time.Now()) }

func (s *scene) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return fmt.Sprintf("id-%d", s.ids)
}

// run lets time pass and stops at the first breach.
func (s *scene) run(seconds int) {
	s.t.Helper()
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.breaches) > 0 {
		s.t.Fatalf("%v: %s\n%s", time.Now().UTC(), strings.Join(s.breaches, "\n"), s.lastWords())
	}
}

// start runs a controller until the end of the test.
func (s *scene) start(c *controller.Controller) {
	ctx, stop := context.WithCancel(s.t.Context())
	s.t.Cleanup(stop)
	go c.Job().Run(ctx, slog.New(slog.DiscardHandler))
}

// until runs until ok, for at most this many seconds.
func (s *scene) until(seconds int, what string, ok func() bool) {
	s.t.Helper()
	for range seconds / 5 {
		if ok() {
			return
		}
		s.run(5)
	}
	if !ok() {
		s.t.Fatalf("after %d s still not true: %s\n%s", seconds, what, s.story(""))
	}
}

func (s *scene) phase(host string) energy.Phase {
	all, _ := s.ledger.PowerRecords(s.t.Context())
	return all[host].Phase
}

func (s *scene) record(host string) energy.Record {
	all, _ := s.ledger.PowerRecords(s.t.Context())
	return all[host]
}

func (s *scene) phases() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		all = append(all, name+" "+cmp.Or(string(s.phase(name)), "awake"))
	}
	return strings.Join(all, ", ")
}

// story returns the audit as text.
func (s *scene) story(host string) string {
	entries, _ := s.ledger.Audit(s.t.Context(), host, 0, 1<<20)
	var b strings.Builder
	for _, e := range slices.Backward(entries) {
		fmt.Fprintf(&b, "%v %s %s %s: %s\n", e.At.Time().UTC().Format(time.TimeOnly), e.Host, e.By, e.Kind, e.Text)
	}
	return b.String()
}

func (s *scene) alarms() []string {
	report, _ := s.ledger.EnergyReport(s.t.Context())
	var all []string
	for _, a := range report.Alarms {
		all = append(all, strings.TrimSpace(string(a.Kind)+" "+a.Host))
	}
	return all
}

func (s *scene) set(act func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	act()
}

// closed returns why a host is disabled; "" if it is not.
func (s *scene) closed(host string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers[host].disabled
}

// fill puts guests on a host.
func (s *scene) fill(host string, guests int) { s.set(func() { s.servers[host].guests = guests }) }

// reserve books whole hosts from start on.
func (s *scene) reserve(start span.Instant, duration int64, hosts ...string) {
	r := reservation.Reservation{ID: fmt.Sprintf("r%d", start), Status: reservation.Pending, Span: span.Span{Start: start, End: start.Add(duration)}}
	for _, host := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: host, Span: r.Span})
	}
	s.set(func() { s.live = append(s.live, r) })
}

// maintain plans maintenance of hosts from start on.
func (s *scene) maintain(start span.Instant, duration int64, hosts ...string) {
	s.reserve(start, duration, hosts...)
	s.set(func() { s.live[len(s.live)-1].Maintenance = true })
}

// operatingSystem hears when the operating system of a host comes up or goes down.
func (s *scene) operatingSystem(host string, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.servers[host]
	if up {
		one.heard = now()
		return
	}
	if one.guests > 0 {
		s.breaches = append(s.breaches, host+" went off with guests on it")
	}
	for _, r := range s.live {
		for _, c := range r.Claims {
			// A host that does not come up may lose its power while the controller tries again.
			if c.Host == host && c.Span.Contains(now()) && s.ledger.records[host].Phase != energy.Waking {
				s.breaches = append(s.breaches, host+" went off while it was reserved")
			}
		}
	}
}

// beat lets the services of running hosts report every ten seconds, as nova-compute does.
func (s *scene) beat(ctx context.Context) {
	for job.Pause(ctx, 10*time.Second) == nil {
		s.set(func() {
			for _, one := range s.servers {
				if one.machine.Up() {
					one.heard = now()
				}
			}
		})
	}
}

// guard records orders that must never be sent.
func (s *scene) guard(host string, m power.Machine) power.Machine { return guarded{m, s, host} }

type guarded struct {
	power.Machine
	scene *scene
	host  string
}

func (g guarded) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	g.scene.set(func() {
		if one := g.scene.servers[g.host]; to != energy.On && one.guests > 0 {
			g.scene.breaches = append(g.scene.breaches, g.host+" was ordered off with guests on it")
		} else if to != energy.On && one.disabled == "" && g.scene.options.Cloud != nil {
			g.scene.breaches = append(g.scene.breaches, g.host+" was ordered off while it was open to instances")
		}
	})
	return g.Machine.Switch(ctx, to, how)
}

// reach is the scene as the agents.
type reach scene

func (r *reach) lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agentLost
}

func (r *reach) Access() (map[string]energy.Access, map[string]string) {
	if r.lost() {
		return nil, nil
	}
	return r.agent.Access()
}

func (r *reach) Agents() []energy.Agent {
	all := r.agent.Agents()
	all[0].Lost = r.lost()
	return all
}

func (r *reach) Order(ctx context.Context, o energy.Order) (energy.Outcome, error) {
	if r.lost() {
		return energy.Outcome{}, fault.New(fault.Unavailable, "the agent does not answer")
	}
	if r.is(&r.unheard) {
		return energy.Outcome{}, fault.New(fault.Unavailable, "the message broker is away")
	}
	answer, err := r.agent.Order(ctx, o)
	if r.is(&r.unsaid) {
		return energy.Outcome{}, fault.New(fault.Unavailable, "no answer came")
	}
	return answer, err
}

func (r *reach) is(trouble *bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *trouble
}

func (r *reach) Read(ctx context.Context, hosts []string) map[string]energy.Reading {
	if r.lost() {
		return nil
	}
	return r.agent.Read(ctx, hosts)
}

// nova is the scene as the cloud.
type nova scene

// downAfter is how many seconds Nova considers a silent service up.
const downAfter = 60

func (n *nova) Services(context.Context) (map[string]controller.Service, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.novaAway {
		return nil, fault.New(fault.Unavailable, "nova does not answer")
	}
	all := map[string]controller.Service{}
	for name, one := range n.servers {
		all[name] = controller.Service{
			Up: one.heard.Add(downAfter) > now() || one.heard == 0 && one.machine.Up(), Disabled: one.disabled != "", Reason: one.disabled, Reported: one.heard,
		}
	}
	return all, nil
}

func (n *nova) Disable(_ context.Context, host, reason string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.servers[host]
	if one.disabled != "" && !strings.HasPrefix(one.disabled, controller.ReasonPrefix) {
		return fault.New(fault.Conflict, "someone else has disabled it")
	}
	one.disabled = reason
	return nil
}

func (n *nova) Enable(_ context.Context, host, operation string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.servers[host]
	if n.novaStuck {
		return fault.New(fault.Unavailable, "nova answers 503")
	}
	if one.disabled != "" && !strings.HasPrefix(one.disabled, controller.ReasonPrefix+operation) {
		return fault.New(fault.Conflict, "someone else has disabled it")
	}
	one.disabled = ""
	return nil
}

func (n *nova) Occupied(_ context.Context, host string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch one := n.servers[host]; {
	case n.novaAway:
		return "", fault.New(fault.Unavailable, "nova does not answer")
	case one.guests > 0:
		return "there is a server on it", nil
	case one.stray:
		return "Placement has an allocation on it", nil
	}
	return "", nil
}

// bookings is the scene as the port for reservations.
type bookings scene

func (d *bookings) Live(w span.Span) []reservation.Reservation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.live), func(r reservation.Reservation) bool { return r.Span.End <= w.Start })
}

// rack is the scene as the inventory.
type rack scene

func (r *rack) Snapshot() *inventory.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	var hosts []inventory.Host
	for _, one := range r.servers {
		h := one.host
		h.InstanceCount = one.guests
		h.Used = resource.Vector{VCPUs: int64(one.guests)}
		hosts = append(hosts, h)
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rack) Untrusted(span.Instant) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.untrusted
}

// lastWords returns the end of the audit while the scene is locked.
func (s *scene) lastWords() string {
	entries := s.ledger.audit
	var b strings.Builder
	for _, e := range entries[max(0, len(entries)-40):] {
		fmt.Fprintf(&b, "%v %s %s: %s\n", e.At.Time().UTC().Format(time.TimeOnly), e.Host, e.Kind, e.Text)
	}
	return b.String()
}
