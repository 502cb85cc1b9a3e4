// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim/cloud"
	"github.com/almanac-cloud/almanac/pkg/span"
	bestworks "github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// site is a simulated cloud with three hosts, whose clock the test sets. Its placer puts each server
// on the host of next, or finds none if next is empty.
type site struct {
	*cloud.Cloud
	t      *testing.T
	clock  atomic.Int64 // nanoseconds since 1970
	next   atomic.Value // string
	source *cloud.Source
	fence  cloud.Fence
}

// few are the hosts of a site.
type few []inventory.Host

func (f few) Hosts(context.Context) ([]inventory.Host, error) { return f, nil }

// noRecords are the records of a site: nothing was stored about instances.
type noRecords struct{}

func (noRecords) InstanceRecords(context.Context, ...string) (map[string]inventory.InstanceRecord, error) {
	return nil, nil
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	s.clock.Store(1_900_000_000 * int64(time.Second))
	s.next.Store("n1")
	var hosts few
	for _, name := range []string{"n1", "n2", "n3"} {
		hosts = append(hosts, inventory.Host{
			Name: name, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 4096, DiskGB: 100}, Zone: "az1", Aggregates: []string{"general"}, Reservable: true,
		})
	}
	ids := 0
	second := time.Second
	s.Cloud = cloud.New(cloud.Options{
		Hosts: hosts, Ratio: 2, Rate: 100,
		Flavors: []inventory.Flavor{{ID: "1", Name: "small", Resources: resource.Vector{VCPUs: 2, MemoryMB: 1024, DiskGB: 10}}},
		Images:  []cloud.Image{{ID: "00000000-0000-4000-8000-00000000000a", Name: "debian", Bytes: 1000}},
		Times: cloud.Times{
			Boot: 5 * second, Delete: 2 * second, Stop: second, Shelve: second, Suspend: second, Resume: second, Migrate: 3 * second, Snapshot: second,
		},
		Preemptible: inventory.PreemptibleRule{Hint: "preemptible"},
		NewID: func() string {
			ids++
			return fmt.Sprintf("00000000-0000-4000-8000-%012d", ids)
		},
		Now: s.now, Log: slog.New(slog.DiscardHandler),
	})
	s.source = &cloud.Source{Cloud: s.Cloud, LiveState: inventory.NewLiveState(), Records: noRecords{}}
	s.fence = cloud.Fence{Cloud: s.Cloud, Records: noRecords{}}
	s.read()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Conduct(ctx, s) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// Place implements cloud.Placer: it claims the room on the host of next.
func (s *site) Place(ctx context.Context, r placing.Request) (p dispatch.Placed, err error) {
	states := s.source.LiveState.Load()
	i, there := states.Index(s.next.Load().(string))
	if !there {
		return p, fault.New(fault.Conflict, "There is no room.")
	}
	h := states.Host(i)
	of := claiming.AllocationsOn(h, r.Resources)
	if err := (cloud.Allocations{Cloud: s.Cloud}).Claim(ctx, []placing.Claim{{Consumer: r.Instances[0], Allocations: of}}); err != nil {
		return p, err
	}
	return dispatch.Placed{Selections: [][]dispatch.Selection{{{Host: h, Allocations: of}}}}, nil
}

// Return implements cloud.Placer.
func (s *site) Return(dispatch.Placed) {}

// read reads the cloud and returns its hosts by name.
func (s *site) read() map[string]inventory.Host {
	s.t.Helper()
	list, err := s.source.Hosts(s.t.Context())
	s.must(err)
	hosts := map[string]inventory.Host{}
	for _, h := range list {
		hosts[h.Name] = h
	}
	return hosts
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// pass lets time pass.
func (s *site) pass(d time.Duration) { s.clock.Add(int64(d)) }

func (s *site) now() time.Time { return time.Unix(0, s.clock.Load()) }

// create creates a server and returns it when it has a host, or none.
func (s *site) create(hints map[string][]string) cloud.Server {
	s.t.Helper()
	made, err := s.Create(s.t.Context(), cloud.ServerRequest{
		Name: "web", ProjectID: "p", UserID: "u", Flavor: "small", Image: "debian", Hints: hints,
	})
	s.must(err)
	placed, err := s.Placed(s.t.Context(), made.ID)
	s.must(err)
	return placed
}

// running creates a server and returns it when it runs.
func (s *site) running() cloud.Server {
	s.t.Helper()
	made := s.create(nil)
	s.pass(time.Minute)
	return s.is(made.ID, "ACTIVE", "", made.Host)
}

// is checks the state of a server.
func (s *site) is(id, status, task, host string) cloud.Server {
	s.t.Helper()
	now, err := s.Server(s.t.Context(), id)
	s.must(err)
	if now.Status != status || now.Task != task || now.Host != host {
		s.t.Errorf("the server is %s (%s) on %q, want %s (%s) on %q", now.Status, now.Task, now.Host, status, task, host)
	}
	return now
}

// used checks how many VCPU of a host are allocated.
func (s *site) used(host string, want int64) {
	s.t.Helper()
	if got := s.read()[host].Used.VCPUs; got != want {
		s.t.Errorf("%d VCPU of %s are allocated, want %d", got, host, want)
	}
}

func TestAServerRunsWhenItsImageIsOnItsHostAndItHasBooted(t *testing.T) {
	s := newSite(t)
	first := s.create(nil)
	s.is(first.ID, "BUILD", "spawning", "n1")
	s.pass(14 * time.Second) // 10 of them for the image
	s.is(first.ID, "BUILD", "spawning", "n1")
	s.pass(time.Second)
	s.is(first.ID, "ACTIVE", "", "n1")
	second := s.create(nil)
	s.pass(5 * time.Second)
	s.is(second.ID, "ACTIVE", "", "n1")
	s.used("n1", 4)
}

func TestAServerWithoutAHostIsInErrorWithTheReason(t *testing.T) {
	s := newSite(t)
	s.next.Store("")
	if made := s.create(nil); made.Status != "ERROR" || made.Fault != "There is no room." || made.Host != "" {
		t.Errorf("the server is %+v", made)
	}
}

func TestADeletedServerLeavesNothing(t *testing.T) {
	s := newSite(t)
	made := s.running()
	s.must(s.Delete(t.Context(), made.ID, "p"))
	s.is(made.ID, "ACTIVE", "deleting", "n1")
	s.used("n1", 2)
	s.pass(2 * time.Second)
	if _, err := s.Server(t.Context(), made.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the server is still there: %v", err)
	}
	s.used("n1", 0)
	queue := cloud.Queue{Cloud: s.Cloud}
	for project, want := range map[string]bool{"p": true, "q": false} {
		if by, err := queue.EndedByOwner(t.Context(), made.ID, project); err != nil || by != want {
			t.Errorf("project %s deleted it: %v, %v", project, by, err)
		}
	}
}

func TestAnOrderTakesItsTimeAndIsCarriedOutOnce(t *testing.T) {
	for order, want := range map[upkeep.Order]struct{ status, host string }{
		upkeep.OrderStop: {"SHUTOFF", "n1"}, upkeep.OrderShelve: {"SHELVED_OFFLOADED", ""}, upkeep.OrderWait: {"ACTIVE", "n1"},
	} {
		s := newSite(t)
		made := s.running()
		for range 2 {
			s.must(s.fence.Order(t.Context(), made.Instance, order))
		}
		s.pass(time.Second)
		s.is(made.ID, want.status, "", want.host)
		s.must(s.fence.Order(t.Context(), made.Instance, order))
		s.is(made.ID, want.status, "", want.host)
	}
}

func TestAMigrationHoldsBothHostsUntilItEnds(t *testing.T) {
	s := newSite(t)
	made := s.running()
	moves := cloud.Moves{Cloud: s.Cloud}
	s.next.Store("n2")
	s.must(moves.Move(t.Context(), made.ID, "n2"))
	s.await("the host is chosen", func() bool { return s.read()["n2"].Used.VCPUs == 2 })
	s.used("n1", 2)
	for _, host := range []string{"n1", "n2"} {
		if by, err := (cloud.Power{Cloud: s.Cloud}).Occupied(t.Context(), host); err != nil || by == "" {
			t.Errorf("host %s is not occupied: %v", host, err)
		}
		if on, err := s.fence.On(t.Context(), host); err != nil || len(on) != 1 {
			t.Errorf("on host %s are %v, %v", host, on, err)
		}
	}
	s.await("the move has begun", func() bool {
		sight, err := moves.Look(t.Context(), made.ID)
		s.must(err)
		return sight.Migration.Status == "running"
	})
	s.pass(3 * time.Second)
	s.is(made.ID, "ACTIVE", "", "n2")
	s.used("n1", 0)
	s.used("n2", 2)
	if sight, err := moves.Look(t.Context(), made.ID); err != nil || !sight.Migration.Over || sight.Migration.Status != "completed" {
		t.Errorf("the migration is %+v, %v", sight.Migration, err)
	}
}

func TestAMigrationWithoutAHostOrThatIsAbortedChangesNothing(t *testing.T) {
	for _, abort := range []bool{false, true} {
		s := newSite(t)
		made := s.running()
		moves := cloud.Moves{Cloud: s.Cloud}
		s.next.Store(map[bool]string{true: "n2", false: ""}[abort])
		s.must(moves.Move(t.Context(), made.ID, "n2"))
		if abort {
			s.await("the move has begun", func() bool { return moves.Abort(t.Context(), made.ID) == nil })
		}
		s.await("the move is over", func() bool {
			sight, err := moves.Look(t.Context(), made.ID)
			s.must(err)
			return sight.Migration.Over
		})
		s.is(made.ID, "ACTIVE", "", "n1")
		s.used("n1", 2)
		s.used("n2", 0)
	}
}

func TestASuspendedServerGivesUpItsAllocationAndGetsItBack(t *testing.T) {
	s := newSite(t)
	made := s.running()
	queue := cloud.Queue{Cloud: s.Cloud, Now: func() span.Instant { return span.At(s.now()) }}
	s.must(queue.Do(t.Context(), bestworks.ActionSuspend, made.ID, ""))
	s.pass(time.Second)
	s.is(made.ID, "SUSPENDED", "", "n1")
	held, generation, err := queue.Allocation(t.Context(), made.ID)
	s.must(err)
	s.must(queue.Remove(t.Context(), made.ID, held, generation))
	s.used("n1", 0)
	s.must(queue.Restore(t.Context(), made.ID, held))
	s.used("n1", 2)
	s.must(queue.Do(t.Context(), bestworks.ActionResume, made.ID, ""))
	s.pass(time.Second)
	s.is(made.ID, "ACTIVE", "", "n1")
}

func TestAHostThatIsSwitchedOffOrClosedTakesNoInstances(t *testing.T) {
	s := newSite(t)
	power := cloud.Power{Cloud: s.Cloud}
	ours := controller.ReasonPrefix + "1: idle"
	s.must(power.Disable(t.Context(), "n1", ours))
	s.SetUp("n2", false)
	s.must(power.Disable(t.Context(), "n3", ours))
	s.must(power.Enable(t.Context(), "n3", ""))
	for name, h := range s.read() {
		i, _ := s.source.LiveState.Load().Index(name)
		state := s.source.LiveState.Load().Host(i)
		takes := name == "n3"
		if (h.Problem == "") != takes || (state.Up && state.Enabled) != takes {
			t.Errorf("host %s: problem %q, up %v, enabled %v", name, h.Problem, state.Up, state.Enabled)
		}
	}
	if by, err := power.Occupied(t.Context(), "n1"); by != "" || err != nil {
		t.Errorf("the empty host is occupied: %q, %v", by, err)
	}
}

func TestAnImageReachesTheHostsOfACallOneAfterTheOther(t *testing.T) {
	s := newSite(t)
	store := cloud.ImageStore{Cloud: s.Cloud}
	image := s.Images()[0].ID
	s.SetUp("n3", false)
	asked, err := store.Cache(t.Context(), "req-1", image, []string{"n1", "n2", "n3"})
	if !asked || err == nil {
		t.Errorf("a host that is down is not left out: %v, %v", asked, err)
	}
	heard := func() (hosts []string) {
		for _, w := range store.Words() {
			hosts = append(hosts, w.Host)
		}
		return hosts
	}
	for _, want := range []string{"[]", "[n1]", "[n2]", "[]"} {
		if got := fmt.Sprint(heard()); got != want {
			t.Errorf("at %v: heard of %s, want %s", s.now(), got, want)
		}
		s.pass(10 * time.Second)
	}
	made := s.create(nil)
	s.pass(5 * time.Second)
	s.is(made.ID, "ACTIVE", "", "n1")
}

// await waits until a condition holds: the goroutines of the cloud have done their part.
func (s *site) await(what string, is func() bool) {
	s.t.Helper()
	if !labtest.Poll(time.Minute, time.Millisecond, is) {
		s.t.Fatalf("waited a minute until %s", what)
	}
}

func TestZonesAreAggregatesAndAChangeIsAnnounced(t *testing.T) {
	s := newSite(t)
	s.create(nil)
	hosts := 0
	for _, a := range s.source.LiveState.Load().Aggregates() {
		if a.Zone == "az1" {
			hosts += len(a.Hosts)
		}
	}
	if hosts != 3 {
		t.Errorf("zone az1 has %d hosts, want 3", hosts)
	}
	select {
	case <-s.Changed():
	default:
		t.Error("nobody hears that a server has begun")
	}
}
