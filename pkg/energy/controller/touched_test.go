// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// A controller that is told which hosts have changed does and reports the same as one that looks at all hosts in each step,
// whatever happens to the hosts.
//
//make:test-drawn
func TestToLookAtTheHostsThatHaveChangedIsToLookAtAll(t *testing.T) {
	most := 80
	if testing.Short() {
		most = 30
	}
	rapid.Check(t, func(t *rapid.T) {
		rules := energy.Rules{
			Horizon: 900, IdleNeeded: 2, BootMargin: 60, SpareHosts: rapid.IntRange(0, 1).Draw(t, "spare"),
			MostSwitches: rapid.SampledFrom([]int{0, 4}).Draw(t, "switches"), MinOff: rapid.SampledFrom([]int64{0, 600}).Draw(t, "off"),
		}
		told, all := newPlant(rules, true), newPlant(rules, false)
		for range rapid.IntRange(20, most).Draw(t, "steps") {
			wait := rapid.SampledFrom([]int64{5, 5, 20, 60, 60, 300, 3600}).Draw(t, "wait")
			changes := rapid.SliceOfN(rapid.Custom(drawChange), 0, 3).Draw(t, "changes")
			for _, p := range []*plant{told, all} {
				p.at = p.at.Add(wait)
				for _, change := range changes {
					change.make(p)
				}
				p.err = p.step(context.Background())
			}
			if fmt.Sprint(told.err) != fmt.Sprint(all.err) {
				t.Fatalf("the steps end with %v and %v", told.err, all.err)
			}
			if diff := gocmp.Diff(all.seen(), told.seen()); diff != "" {
				t.Fatalf("at %v, all hosts -, those that have changed +\n%s", told.at, diff)
			}
		}
	})
}

// plant is a cloud that changes only when a test changes it, and knows what has changed.
type plant struct {
	ledger
	mu        sync.Mutex
	at        span.Instant
	hosts     []inventory.Host
	snapshot  *inventory.Snapshot
	access    map[string]energy.Access
	machines  map[string]energy.Reading
	services  map[string]controller.Service
	orders    map[string]energy.Outcome // the outcome of the last order of a host
	live      []reservation.Reservation
	untrusted string
	touched   []string
	unknown   bool // something has changed that is not about one host
	step      func(context.Context) error
	err       error
}

var plantHosts = []string{"a", "b", "c", "d"}

func newPlant(rules energy.Rules, tells bool) *plant {
	p := &plant{
		ledger: ledger{records: map[string]energy.Record{}}, at: 1_000_000, access: map[string]energy.Access{}, machines: map[string]energy.Reading{},
		services: map[string]controller.Service{}, orders: map[string]energy.Outcome{},
	}
	for i, name := range plantHosts {
		p.hosts = append(p.hosts, inventory.Host{Name: name, Capacity: resource.Vector{VCPUs: 8}, Reservable: true, FlopsPerWatt: float64(i % 3)})
		p.access[name] = energy.Access{Host: name, Agent: "agent", Driver: "d", States: []energy.State{energy.On, energy.Off}}
		p.machines[name] = energy.Reading{Host: name, State: energy.On}
		p.services[name] = controller.Service{Up: true, Reported: p.at}
		p.orders[name] = energy.Outcome{Progress: energy.OrderAccepted}
	}
	o := controller.Options{
		Records: p, Settings: p, History: p, Reports: p, Agents: p, Cloud: p, Vacancy: p, Promises: p, Hosts: p, Leases: lessee{&p.ledger, "one"},
		Rules: rules, Switching: energy.Switching{Settle: 30, OffPatience: 120, BootTimeout: 600, Retries: 1, Backoff: 30, Probe: 3600},
		Admission: energy.Admission{Aggregates: []string{"green"}, Property: "managed"}, Mode: energy.ModeAuto, MostFailed: 3, BootTime: 120,
		Efficiency: func(string) energy.Efficiency { return energy.Efficiency{} },
		Forecaster: func() (energy.Forecaster, error) { return energy.NewForecaster("last_value") }, Keep: 86400,
		StepEvery: 5 * time.Second, MeasureEvery: 60, PlanEvery: 120, Replica: "one",
		Now: func() span.Instant { return p.at }, NewID: func() string { return "id" }, Log: slog.New(slog.DiscardHandler),
	}
	for i := range p.hosts {
		p.hosts[i].Aggregates = []string{"green"}
	}
	if tells {
		o.Touched = func() ([]string, bool) {
			hosts, known := p.touched, !p.unknown
			p.touched, p.unknown = nil, false
			return hosts, known
		}
	}
	p.step = controller.New(o).Job().Step
	return p
}

// touch notes that something about a host changes.
func (p *plant) touch(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.touched, p.snapshot = append(p.touched, host), nil
}

// ChangePower replaces that of the ledger.
func (p *plant) ChangePower(ctx context.Context, lease job.Lease, hosts []string, change func(map[string]energy.Record) ([]energy.Entry, error)) error {
	for _, host := range hosts {
		p.touch(host)
	}
	return p.ledger.ChangePower(ctx, lease, hosts, change)
}

func (p *plant) Access() (map[string]energy.Access, map[string]string) { return p.access, nil }

func (p *plant) Agents() []energy.Agent { return nil }

func (p *plant) Order(_ context.Context, o energy.Order) (energy.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.orders[o.Host], nil
}

func (p *plant) Read(_ context.Context, hosts []string) map[string]energy.Reading {
	all := map[string]energy.Reading{}
	for _, host := range hosts {
		all[host] = p.machines[host]
	}
	return all
}

func (p *plant) Services(context.Context) (map[string]controller.Service, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.services), nil
}

func (p *plant) Disable(_ context.Context, host, reason string) error { return p.close(host, reason) }

func (p *plant) Enable(_ context.Context, host, _ string) error { return p.close(host, "") }

func (p *plant) close(host, reason string) error {
	p.touch(host)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.services[host]
	s.Disabled, s.Reason = reason != "", reason
	p.services[host] = s
	return nil
}

func (p *plant) Occupied(_ context.Context, host string) (string, error) {
	if i := slices.Index(plantHosts, host); p.hosts[i].InstanceCount > 0 {
		return "there is an instance on it", nil
	}
	return "", nil
}

func (p *plant) Live(w span.Span) []reservation.Reservation { return p.live }

func (p *plant) Snapshot() *inventory.Snapshot {
	if p.snapshot == nil {
		p.snapshot, _ = inventory.NewSnapshot(p.hosts, nil, nil)
	}
	return p.snapshot
}

func (p *plant) Untrusted(span.Instant) string { return p.untrusted }

// picture is all that a controller has done and reported.
type picture struct {
	Records  map[string]energy.Record
	Settings energy.Settings
	Demand   []energy.Demand
	Audit    []string // sorted, since hosts advance at the same time
	Report   energy.Report
}

func (p *plant) seen() picture {
	var audit []string
	for _, e := range p.audit {
		audit = append(audit, fmt.Sprint(int64(e.At), " ", e.Host, " ", e.Kind, " ", e.Text))
	}
	slices.Sort(audit)
	return picture{p.records, p.settings, p.demand, audit, p.report}
}

// event is one change of a plant.
type event struct {
	What string
	Host string
	N    int
}

func drawChange(t *rapid.T) event {
	return event{
		rapid.SampledFrom([]string{
			"guests", "guests", "machine", "machine", "machine", "service", "service", "beat", "outcome", "hold", "release", "reserve", "reserve", "cancel",
			"maintain", "agent", "watts", "problem", "property", "untrusted", "stopped", "mode", "untouchable", "reset",
		}).Draw(t, "what"), rapid.SampledFrom(plantHosts).Draw(t, "host"), rapid.IntRange(0, 3).Draw(t, "n"),
	}
}

// make makes the change.
func (e event) make(p *plant) {
	i := slices.Index(plantHosts, e.Host)
	h, m, s, r := &p.hosts[i], p.machines[e.Host], p.services[e.Host], p.records[e.Host]
	switch e.What {
	case "untrusted":
		p.untrusted = []string{"", "", "", "hosts are gone"}[e.N]
		return
	case "reserve", "maintain":
		start := p.at.Add(int64(e.N) * 700)
		r := reservation.Reservation{ID: "r", Span: span.Span{Start: start, End: start.Add(900)}}
		r.Maintenance = e.What == "maintain"
		r.Claims = []reservation.Claim{{Host: e.Host, Span: r.Span}}
		p.live = append(slices.Clone(p.live), r)
		return
	case "cancel":
		p.live = slices.Clone(p.live[min(len(p.live), 1):])
		return
	case "stopped":
		p.settings.Stopped = nil
		if e.N == 3 {
			p.settings.Stopped = &energy.Stop{At: p.at}
		}
		return
	case "reset":
		p.settings.Breaker = nil
		return
	case "mode":
		p.settings.Mode, p.unknown = energy.Modes[max(e.N, 1)], true
		return
	}
	p.touch(e.Host)
	switch e.What {
	case "guests":
		if h.InstanceCount = max(0, e.N-2); r.Phase != energy.Awake {
			h.InstanceCount = 0
		}
	case "machine":
		m.State = cmp.Or(r.Target, energy.On)
		if e.N == 3 {
			m.State = []energy.State{energy.On, energy.Off}[int(p.at)%2]
		}
		p.orders[e.Host] = energy.Outcome{Progress: energy.OrderDone}
		s.Up, s.Reported = m.State == energy.On, p.at
	case "service":
		s.Up, s.Reported = m.State == energy.On, p.at
	case "beat":
		s.Reported = p.at
	case "outcome":
		p.orders[e.Host] = energy.Outcome{Progress: []energy.Progress{energy.OrderAccepted, energy.OrderDone, energy.OrderFailed, energy.OrderRefused}[e.N]}
	case "hold":
		r.Hold = &energy.Hold{Action: []energy.ManualAction{energy.HoldOn, energy.HoldOff, energy.Test, energy.HoldOff}[e.N], At: p.at, Until: []span.Instant{0, p.at.Add(400), 0, p.at.Add(900)}[e.N]}
	case "release":
		r.Hold, r.Quarantine = nil, ""
	case "agent":
		p.access = maps.Clone(p.access)
		delete(p.access, e.Host)
		if e.N > 0 {
			p.access[e.Host] = energy.Access{Host: e.Host, Agent: "agent", Driver: "d", States: []energy.State{energy.On, energy.Off}}
		}
	case "watts":
		m.Watts = float64(100 * e.N)
	case "untouchable":
		m.Untouchable = []string{"", "", "", "somebody works on it"}[e.N]
	case "problem":
		h.Problem = []string{"", "", "", "its nova-compute is down"}[e.N]
	case "property":
		h.Properties = map[string]inventory.Value{"managed": inventory.BoolValue(e.N > 0)}
	}
	r.Host = e.Host
	p.machines[e.Host], p.services[e.Host], p.records[e.Host] = m, s, r
}
