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
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// model is Nova, Placement, Keystone and the database in memory, on a clock that the test
// sets. Nova takes time to carry out orders.
type model struct {
	now     span.Instant
	hosts   []string
	room    int64 // vCPUs of each host
	servers map[string]*server
	booked  []reservation.Reservation
	stored  map[string]*state.Request
	trusts  map[string]bool
	epoch   int64
	ids     int

	// trouble returns the mishap of each call, by the call's name; nil means none.
	trouble func(call string) mishap
	// slow lists servers whose suspension never ends.
	slow map[string]bool
	// builds is how long a server takes to become ACTIVE; lateness how long after a lost
	// answer it appears; takes how long an order takes.
	builds, lateness, takes int64
	refuses                 func() error // if not nil, returns why Nova refuses to create a server
	made                    map[string]int
	orders                  []string
}

// mishap is what happens to a call.
type mishap int

const (
	fine     mishap = iota
	unsent          // it fails without an effect
	lost            // it has its effect, but the answer is lost
	killed          // almanacd is killed before it
	killedBy        // almanacd is killed after it
)

// kill is the value of the panic that stands for the end of almanacd.
type kill struct{}

type server struct {
	state.Server
	project   string
	since     span.Instant // the start of its task, or of its existence
	allocated bool
	claims    int64 // the generation of its allocation
	gone      bool
	byOwner   bool
	hidden    span.Instant // the server does not appear before
}

func newModel(room int64, hosts ...string) *model {
	return &model{
		now: 1000, hosts: hosts, room: room, servers: map[string]*server{}, stored: map[string]*state.Request{}, trusts: map[string]bool{},
		slow: map[string]bool{}, made: map[string]int{}, builds: 2, lateness: 3, takes: 1,
	}
}

var errLost = fault.New(fault.Unavailable, "no answer")

// call runs do, unless a mishap prevents it.
func (m *model) call(name string, do func() error) error {
	what := fine
	if m.trouble != nil {
		what = m.trouble(name)
	}
	switch what {
	case unsent:
		return errLost
	case killed:
		panic(kill{})
	}
	err := do()
	switch what {
	case lost:
		return errLost
	case killedBy:
		panic(kill{})
	}
	return err
}

// submit stores a request of that many VMs of vcpus vCPUs each.
func (m *model) submit(vms int, duration, vcpus int64, parallel bool) string {
	m.ids++
	id := fmt.Sprintf("request-%d", m.ids)
	r := &state.Request{
		ID: id, ProjectID: "demo", Name: id, Place: int64(m.ids), Created: m.now, Shape: resource.Vector{VCPUs: vcpus, MemoryMB: 100},
		Image: state.Named{ID: "image"}, Duration: duration, Parallel: parallel, Trust: "trust of " + id,
	}
	for n := range vms {
		r.VMs = append(r.VMs, state.VM{ID: fmt.Sprintf("%s/%d", id, n), Number: n, Phase: besteffort.Waiting, Since: m.now})
	}
	m.stored[id], m.trusts[r.Trust] = r, true
	return id
}

// reserve books hosts.
func (m *model) reserve(start, seconds int64, hosts ...string) {
	r := reservation.Reservation{ID: fmt.Sprintf("reservation-%d", len(m.booked)), Status: reservation.Pending, Span: span.New(span.Instant(start), seconds)}
	for _, host := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: host, Span: r.Span})
	}
	m.booked = append(m.booked, r)
}

func (m *model) live() []reservation.Reservation {
	return slices.DeleteFunc(slices.Clone(m.booked), func(r reservation.Reservation) bool { return r.Span.End <= m.now })
}

func (m *model) snapshot() *inventory.Snapshot {
	var hosts []inventory.Host
	for _, name := range m.hosts {
		h := inventory.Host{Name: name, Reservable: true, Capacity: resource.Vector{VCPUs: m.room, MemoryMB: 1 << 20}, Instances: []inventory.Instance{}}
		hosts = append(hosts, h)
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		panic(err)
	}
	return s
}

func (m *model) view() state.ClusterView {
	return state.ClusterView{Hosts: m.snapshot(), Live: m.live(), Clear: clearing}
}

// Methods of the records.

func clone(r *state.Request) state.Request {
	c := *r
	c.VMs = slices.Clone(r.VMs)
	for i := range c.VMs {
		if h := c.VMs[i].Held; h != nil {
			c.VMs[i].Held = new(*h)
		}
	}
	return c
}

func (m *model) OpenBestEffort(context.Context) (list []state.Request, err error) {
	err = m.call("read", func() error {
		for _, r := range m.stored {
			if r.Over == 0 {
				list = append(list, clone(r))
			}
		}
		slices.SortFunc(list, func(a, b state.Request) int { return cmp.Compare(a.Place, b.Place) })
		return nil
	})
	return list, err
}

func (m *model) SaveBestEffortVMs(_ context.Context, lease job.Lease, vms []state.VM) error {
	return m.call("save", func() error {
		if lease.Epoch != m.epoch {
			return errors.New("the lease was lost")
		}
		for _, v := range vms {
			for _, r := range m.stored {
				for i := range r.VMs {
					if r.VMs[i].ID == v.ID {
						r.VMs[i] = v
					}
				}
			}
		}
		return nil
	})
}

func (m *model) CloseBestEffort(_ context.Context, lease job.Lease, id string, at span.Instant) error {
	return m.call("close", func() error {
		m.stored[id].Over = at
		return nil
	})
}

// leases grants every lease to this process.
type leases struct{ of *model }

func (l leases) Take(context.Context, string, time.Duration) (job.Lease, bool, error) {
	return job.Lease{Name: "besteffort", Epoch: l.of.epoch}, true, nil
}

// Methods of Nova.

func (m *model) Marked(_ context.Context, known map[string][]string) (found map[string][]state.Server, err error) {
	found = map[string][]state.Server{}
	err = m.call("list", func() error {
		for _, id := range slices.Sorted(maps.Keys(m.servers)) {
			s := m.servers[id]
			if _, asked := known[s.project]; asked && !s.gone && s.hidden <= m.now {
				found[s.project] = append(found[s.project], s.Server)
			}
		}
		return nil
	})
	return found, err
}

func (m *model) EndedByOwner(_ context.Context, id, _ string) (bool, error) {
	return m.servers[id] != nil && m.servers[id].byOwner, nil
}

func (m *model) Create(_ context.Context, r *state.Request, vm *state.VM) (string, error) {
	id := fmt.Sprintf("server-%d", len(m.servers))
	before := len(m.servers)
	err := m.call("create", func() error {
		if m.refuses != nil {
			if err := m.refuses(); err != nil {
				return err
			}
		}
		m.made[vm.ID]++
		m.servers[id] = &server{Server: state.Server{
			ID: id, Status: "BUILD", Task: "scheduling", VM: vm.ID, Attempt: vm.Attempt, Created: m.now, Host: "", Image: r.Image.ID,
		}, project: r.ProjectID, since: m.now}
		m.servers[id].Host = vm.Node // pinned to its node
		m.servers[id].allocated = m.free(vm.Node) >= r.Shape.VCPUs
		return nil
	})
	if err != nil && len(m.servers) > before {
		m.servers[id].hidden = m.now.Add(m.lateness)
	}
	return id, err
}

func (m *model) Remember(context.Context, string) error {
	return m.call("remember", func() error { return nil })
}

func (m *model) Do(_ context.Context, o controller.Action, id, _ string) error {
	return m.call(string(o), func() error {
		s := m.servers[id]
		if s == nil || s.gone {
			return nil
		}
		m.orders = append(m.orders, fmt.Sprintf("%s %s", o, s.VM))
		busy := fault.New(fault.Conflict, "Nova is busy with it")
		switch o {
		case controller.ActionLock, controller.ActionUnlock:
			s.Locked = o == controller.ActionLock
		case controller.ActionDelete:
			if s.Task != "deleting" {
				s.Task, s.since = "deleting", m.now
			}
		case controller.ActionSuspend:
			if s.Task != "" || s.Status != "ACTIVE" {
				return busy
			}
			s.Task, s.since = "suspending", m.now
		case controller.ActionResume:
			if s.Task != "" || s.Status != "SUSPENDED" {
				return busy
			}
			s.Task, s.since = "resuming", m.now
		}
		return nil
	})
}

// Methods of Placement.

func (m *model) Allocation(_ context.Context, id string) (had *state.Held, generation int64, err error) {
	err = m.call("held", func() error {
		if s := m.servers[id]; s != nil && s.allocated {
			had = &state.Held{ProjectID: s.project, Allocations: placing.Allocations{s.Host: {"VCPU": m.size(s)}}}
			generation = s.claims
		}
		return nil
	})
	return had, generation, err
}

func (m *model) Remove(_ context.Context, id string, _ *state.Held, generation int64) error {
	return m.call("take", func() error {
		if m.servers[id].claims != generation {
			return placing.ErrConsumerChanged
		}
		m.servers[id].allocated = false
		return nil
	})
}

func (m *model) Restore(_ context.Context, id string, had *state.Held) error {
	return m.call("give", func() error {
		s := m.servers[id]
		if m.taken(s.Host) || m.free(s.Host) < had.Allocations[s.Host]["VCPU"] {
			return &placing.ErrNoCapacity{Provider: s.Host}
		}
		s.allocated, s.claims = true, s.claims+1
		return nil
	})
}

// Methods of Keystone.

func (m *model) End(_ context.Context, trust string) error {
	return m.call("end", func() error {
		delete(m.trusts, trust)
		return nil
	})
}

// size returns the vCPUs of a server.
func (m *model) size(s *server) int64 {
	for _, r := range m.stored {
		for i := range r.VMs {
			if r.VMs[i].ID == s.VM {
				return r.Shape.VCPUs
			}
		}
	}
	return 0
}

// free returns the vCPUs that Placement has left on a host.
func (m *model) free(host string) int64 {
	free := m.room
	for _, s := range m.servers {
		if s.allocated && s.Host == host {
			free -= m.size(s)
		}
	}
	return free
}

// taken reports whether a reservation has the host now.
func (m *model) taken(host string) bool {
	return slices.ContainsFunc(m.booked, func(r reservation.Reservation) bool {
		return r.Span.Contains(m.now) && slices.Contains(r.HostNames(), host)
	})
}

// tick advances Nova by one second.
func (m *model) tick() {
	m.now++
	for _, s := range m.servers {
		switch {
		case s.gone:
		case s.Task == "deleting" && m.now >= s.since.Add(m.takes):
			s.gone, s.allocated, s.Task = true, false, ""
		case s.Task == "scheduling" && !s.allocated:
			s.Status, s.Task, s.Fault = "ERROR", "", "No valid host was found"
		case s.Task == "scheduling" && m.now >= s.since.Add(m.builds):
			s.Status, s.Task = "ACTIVE", ""
		case s.Task == "suspending" && m.now >= s.since.Add(m.takes) && !m.slow[s.VM]:
			s.Status, s.Task = "SUSPENDED", ""
		case s.Task == "resuming" && m.now >= s.since.Add(m.takes):
			s.Status, s.Task = "ACTIVE", ""
		}
	}
}

// alive returns the existing servers of a VM.
func (m *model) alive(vm string) (list []*server) {
	for _, id := range slices.Sorted(maps.Keys(m.servers)) {
		if s := m.servers[id]; s.VM == vm && !s.gone {
			list = append(list, s)
		}
	}
	return list
}

// broken returns which invariant is broken, or "".
func (m *model) broken() string {
	for _, r := range m.stored {
		for i := range r.VMs {
			if n := len(m.alive(r.VMs[i].ID)); n > 1 {
				return fmt.Sprintf("VM %s has %d servers", r.VMs[i].ID, n)
			}
		}
	}
	for _, host := range m.hosts {
		if m.free(host) < 0 {
			return fmt.Sprintf("host %s is oversold", host)
		}
		for _, s := range m.servers {
			if m.taken(host) && s.Host == host && !s.gone && (s.allocated || s.Status == "ACTIVE") {
				return fmt.Sprintf("server %s of VM %s, %s %s, is on host %s, which is reserved", s.ID, s.VM, s.Status, s.Task, host)
			}
		}
	}
	return ""
}

// vm returns a stored VM.
func (m *model) vm(request string, n int) *state.VM { return &m.stored[request].VMs[n] }

// server returns the only server of a VM, or nil.
func (m *model) server(request string, n int) *server {
	list := m.alive(m.vm(request, n).ID)
	if len(list) != 1 {
		return nil
	}
	return list[0]
}

const clearing = 20

var quick = besteffort.Overheads{Boot: 2, Operation: 3, SuspendRate: 100, ResumeRate: 100}

// starts returns an almanacd that has just started.
func (m *model) starts(rules besteffort.Rules) *controller.Controller {
	m.epoch++
	return controller.New(controller.Options{
		Records: m, Servers: m, Actions: m, Allocations: m, Trusts: m, Planner: rules, Leases: leases{m},
		View: func() state.ClusterView {
			return state.ClusterView{Hosts: m.snapshot(), Live: m.live(), Clear: clearing}
		}, Untrusted: func() string { return "" },
		Limits:    state.Limits{Build: 30, Order: 20, Unanswered: 8, Retries: 50, Backoff: 2},
		StepEvery: time.Second, Now: func() span.Instant { return m.now }, Log: slog.New(slog.DiscardHandler),
	})
}

// steps does one step and reports whether almanacd is still alive after it.
func (m *model) steps(ctx context.Context, c *controller.Controller) (alive bool) {
	defer func() {
		if what := recover(); what != nil {
			if _, is := what.(kill); !is {
				panic(what)
			}
		}
	}()
	_ = c.Step(ctx) // an error is part of the test
	return true
}

// testingT is a *testing.T or a *rapid.T.
type testingT interface{ Context() context.Context }
