// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// patient holds the default limits.
var patient = state.Limits{Build: 600, Order: 120, Unanswered: 62, Retries: 3, Backoff: 30}

// startsWith returns an almanacd with these limits and server actions.
func (m *model) startsWith(orders controller.ServerActions, limits state.Limits) *controller.Controller {
	o := m.starts(suspending).Options
	o.Actions, o.Limits = orders, limits
	return controller.New(o)
}

// held is a lease that several holders take in turn, for as long as each asks.
type held struct {
	mu     sync.Mutex
	holder int
	until  time.Time
	of     *model
}

// holder is one holder of the lease.
type holder struct {
	*held
	me int
}

func (h holder) Take(_ context.Context, name string, ttl time.Duration) (job.Lease, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held.holder != h.me {
		if time.Now().Before(h.until) {
			return job.Lease{}, false, nil
		}
		h.of.epoch++
	}
	h.held.holder, h.until = h.me, time.Now().Add(ttl)
	return job.Lease{Name: name, Epoch: h.of.epoch}, true, nil
}

// slow is a model that takes time to list servers.
type slow struct {
	*model
	takes time.Duration
}

func (s slow) Marked(ctx context.Context, known map[string][]string) (map[string][]state.Server, error) {
	time.Sleep(s.takes)
	return s.model.Marked(ctx, known)
}

func TestAStepThatTakesLongKeepsItsLease(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(2, "a")
			id := m.submit(1, 60, 2, false)
			lease, begin := &held{holder: -1, of: m}, time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			options := m.starts(suspending).Options
			for i := range replicas {
				o := options
				o.Leases, o.Servers, o.Limits = holder{lease, i}, slow{m, 20 * time.Second}, patient
				o.Now = func() span.Instant { return 1000 + span.Instant(time.Since(begin)/time.Second) }
				all.Go(func() {
					time.Sleep(time.Duration(i) * 3 * time.Second)
					controller.New(o).Job().Run(ctx, slog.New(slog.DiscardHandler))
				})
			}
			all.Wait()
			if v := m.vm(id, 0); m.made[v.ID] != 1 {
				t.Errorf("%d replicas that list for 20 s created %d servers; the VM is %+v", replicas, m.made[v.ID], v)
			}
		})
	}
}

func TestServersLeaveInTimeWhileManyAreMade(t *testing.T) {
	m := newModel(200, "a", "b")
	id := m.submit(1, 6000, 200, false)
	c := m.starts(suspending)
	runs(t, m, c, 8)
	m.reserve(int64(m.now)+120, 50, m.vm(id, 0).Node)
	for range 2 {
		m.submit(100, 600, 1, false)
	}
	m.trouble = func(call string) mishap {
		if call == "create" { // each takes a second
			m.tick()
			if broken := m.broken(); broken != "" {
				t.Fatalf("at %d %s", m.now, broken)
			}
		}
		return fine
	}
	for m.now < 1135 {
		runs(t, m, c, 1)
	}
	if v := m.vm(id, 0); v.Phase != besteffort.Suspended || m.made[v.ID] != 1 {
		t.Errorf("at %d the VM is %+v", m.now, v)
	}
}

// A process stands still right before it deletes a server's allocation, until another
// process has resumed the server.
func TestAProcessThatStoodStillTakesNoRoom(t *testing.T) {
	m := newModel(4, "a", "b")
	m.submit(2, 5000, 1, false)
	id := m.submit(1, 6000, 2, false)
	a := m.starts(suspending)
	runs(t, m, a, 8)
	m.reserve(int64(m.now)+30, 500, m.vm(id, 0).Node)
	stood := false
	m.trouble = func(call string) mishap {
		if call == "take" && !stood {
			stood, m.booked = true, nil
			b := m.starts(suspending)
			for range 90 {
				m.steps(t.Context(), b)
				m.tick()
			}
		}
		return fine
	}
	for n := 0; n < 60 && !stood; n++ {
		m.steps(t.Context(), a)
		m.tick()
	}
	if s := m.server(id, 0); !stood || s.Status != "ACTIVE" || !s.allocated {
		t.Errorf("the server is %+v, the VM %+v", s, m.vm(id, 0))
	}
	orders := len(m.orders)
	m.steps(t.Context(), a)
	if len(m.orders) != orders {
		t.Errorf("the process without the lease orders %v", m.orders[orders:])
	}
}

func TestAServerThatRunsWithoutItsRoomGetsItBack(t *testing.T) {
	m := newModel(2, "a")
	id := m.submit(1, 6000, 2, false)
	m.reserve(1060, 50, "a")
	c := m.starts(suspending)
	runs(t, m, c, 150)
	if s := m.server(id, 0); s.Status != "ACTIVE" || s.Locked {
		t.Fatalf("the server is %+v, the VM %+v", s, m.vm(id, 0))
	}
	m.server(id, 0).allocated = false
	runs(t, m, c, 3)
	if s := m.server(id, 0); !s.allocated || m.vm(id, 0).Phase != besteffort.Running {
		t.Errorf("the server is %+v, the VM %+v", s, m.vm(id, 0))
	}
}

// badHost is a model in which host a has no room for any server.
type badHost struct{ *model }

func (b badHost) Create(ctx context.Context, r *state.Request, vm *state.VM) (string, error) {
	id, err := b.model.Create(ctx, r, vm)
	if err == nil && vm.Node == "a" {
		b.servers[id].allocated = false
	}
	return id, err
}

//make:test-drawn
func TestOneBadHostEmptiesNoQueue(t *testing.T) {
	m := newModel(2, "a", "b")
	for range 30 {
		m.submit(1, 300, 1, false)
	}
	c := m.startsWith(badHost{m}, patient)
	runs(t, m, c, 6000)
	for id, r := range m.stored {
		if r.Status() != state.StatusDone {
			t.Errorf("%s is %s: %+v", id, r.Status(), r.VMs[0])
		}
	}
}

// refusing is a model that refuses to create servers for one request.
type refusing struct {
	*model
	request string
	why     error
	asked   *int
}

func (o refusing) Create(ctx context.Context, r *state.Request, vm *state.VM) (string, error) {
	if r.ID == o.request {
		*o.asked++
		return "", fmt.Errorf("%w: %w", controller.ErrNotSent, o.why)
	}
	return o.model.Create(ctx, r, vm)
}

func TestARequestOfWhichNovaCannotBeAskedHoldsNoHost(t *testing.T) {
	for says, why := range map[string]error{
		"its owner is gone":    fault.New(fault.Denied, "its owner is gone"),
		"there is no such row": fault.New(fault.NotFound, "there is no such row"),
		"something went wrong": errors.New("the database is away"),
	} {
		m := newModel(4, "a")
		waits, asked := m.submit(4, 3600, 1, false), 0
		other := m.submit(1, 60, 1, false)
		c := m.startsWith(refusing{m, waits, why, &asked}, patient)
		runs(t, m, c, 600)
		if v := m.vm(other, 0); v.Phase != besteffort.Done {
			t.Errorf("%s: the VM of the other request is %+v", says, v)
		}
		v := m.vm(waits, 0)
		if v.Phase != besteffort.Waiting || v.Failures != 0 || asked > 6 || !strings.HasPrefix(v.Reason, "Nova was not asked for its server: "+says) {
			t.Errorf("after %d attempts the VM is %+v, want %q", asked, v, says)
		}
	}
}

func TestAServerThatSomebodyMarkedIsNotTaken(t *testing.T) {
	for name, other := range map[string]state.Server{
		"made before the request": {Created: 1, Image: "image"},
		"another user's":          {Created: 1001, Image: "image", UserID: "other"},
		"of another flavor":       {Created: 1001, Image: "image", Flavor: "huge"},
		"of another image":        {Created: 1001, Image: "other"},
		"from a volume":           {Created: 1001},
	} {
		m := newModel(4, "a", "b")
		id := m.submit(1, 60, 1, false)
		other.ID, other.Host, other.Status, other.VM, other.Attempt = "precious", "b", "ACTIVE", m.vm(id, 0).ID, 1
		m.servers["precious"] = &server{Server: other, project: "demo", allocated: true}
		m.refuses = func() error { return errLost }
		c := m.starts(suspending)
		for range 100 {
			m.steps(t.Context(), c)
			m.tick()
		}
		if m.servers["precious"].gone || m.vm(id, 0).Server == "precious" {
			t.Errorf("%s: the controller treats it as the VM's server: %+v", name, m.vm(id, 0))
		}
	}
}

func TestFailuresCountNoMoreAfterItHasRunForAWhile(t *testing.T) {
	m := newModel(4, "a")
	id := m.submit(1, 100000, 1, false)
	c := m.startsWith(m, patient)
	for n := range 6 {
		runs(t, m, c, 1000)
		if v := m.vm(id, 0); v.Phase != besteffort.Running || v.Failures != 0 {
			t.Fatalf("after failure %d the VM is %+v", n, v)
		}
		m.server(id, 0).Status = "ERROR"
	}
}
