// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// guests are preemptible instances of 2 VCPU each on the hosts of a land. The stubborn ones do
// not leave.
type guests struct {
	land *land

	mu       sync.Mutex
	on       map[string]int // host by id
	stubborn map[string]bool
}

func (l *land) fillWithGuests() *guests {
	l.t.Helper()
	g := &guests{land: l, on: map[string]int{}, stubborn: map[string]bool{}}
	for i, provider := range l.providers {
		for n := range 5 {
			id := uuid.NewString()
			l.rest.Must("PUT", "placement", "/allocations/"+id, map[string]any{
				"allocations": map[string]any{provider: map[string]any{"resources": map[string]int{"VCPU": 2}}},
				"project_id":  "theirs", "user_id": "they", "consumer_generation": nil, "consumer_type": "INSTANCE",
			}, nil)
			g.on[id], g.stubborn[id] = i, n == 0
		}
	}
	l.guests = g
	return g
}

// instancesOn returns the guests of host i.
func (g *guests) instancesOn(i int) (all []inventory.Instance) {
	if g == nil {
		return nil
	}
	for id, on := range g.on {
		if on == i {
			all = append(all, inventory.Instance{ID: id, Host: cloudtest.Host(i), Status: "ACTIVE", Preemptible: true})
		}
	}
	slices.SortFunc(all, func(a, b inventory.Instance) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (g *guests) Server(_ context.Context, id string) (inventory.Instance, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, there := g.on[id]
	if !there {
		return inventory.Instance{}, fault.New(fault.NotFound, "there is no server %s", id)
	}
	return inventory.Instance{ID: id, Host: cloudtest.Host(i), Status: "ACTIVE", Preemptible: true}, nil
}

func (*guests) Warn(context.Context, eviction.Warning) error { return nil }

// Leave removes a guest at once, with its allocation in Placement.
func (g *guests) Leave(_ context.Context, i inventory.Instance) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stubborn[i.ID] {
		return nil
	}
	delete(g.on, i.ID)
	g.land.rest.Do(http.MethodDelete, "placement", "/allocations/"+i.ID, nil, nil) // usually the claim has removed it already
	return nil
}

// evicts lets a replica place instances of 2 VCPU until no more victims make room.
func (s *scout) evicts(t *testing.T, told func(instances ...string)) {
	for size := 2; size > 0; {
		instances := make([]string, size)
		for i := range instances {
			instances[i] = uuid.NewString()
		}
		_, err := s.Place(t.Context(), cloudtest.Request(2, instances...))
		switch {
		case err == nil:
			told(instances...)
		case fault.Is(err, fault.Conflict) && !strings.Contains(err.Error(), "others took"):
			size--
		case !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Unavailable):
			t.Error(err)
			return
		}
	}
}

// waits is a clock on which only waiting takes time: the time that a slow machine needs for
// requests does not count.
type waits struct {
	mu sync.Mutex
	at time.Time
}

func (w *waits) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	w.at = w.at.Add(d)
	w.mu.Unlock()
	return job.Pause(ctx, d)
}

// Three replicas choose among the same victims. One of them loses answers, and another one
// requests. Placement decides, and never grants more than there is.
func TestReplicasThatRaceForVictimsTakeEachOnceAndGiveBackWhoStays(t *testing.T) {
	l := newLand(t, 3)
	g := l.fillWithGuests()
	lossy, deaf := labtest.Interpose(t, l.rest.Endpoint("placement")), labtest.Interpose(t, l.rest.Endpoint("placement"))
	lossy.MeddleTimes(2, "POST /allocations", labtest.Lose)
	deaf.MeddleTimes(2, "POST /allocations", labtest.Status(http.StatusServiceUnavailable))
	want := map[string]int64{}
	var mu sync.Mutex
	var all sync.WaitGroup
	var scouts []*scout
	for _, address := range []string{"", lossy.URL, deaf.URL} {
		s := l.newScout(address)
		waits := &waits{at: time.Now()}
		s.Servers, s.Timeout, s.Evictor.Now, s.Evictor.Wait = g, 300*time.Millisecond, waits.now, waits.wait
		s.Dispatcher.Now, s.Dispatcher.Wait = waits.now, waits.wait
		if err := s.Look(t.Context(), []string{cloudtest.Host(0), cloudtest.Host(1), cloudtest.Host(2)}); err != nil {
			t.Fatal(err)
		}
		scouts = append(scouts, s)
	}
	for _, s := range scouts { // together, when the last of them has looked
		all.Go(func() {
			s.evicts(t, func(instances ...string) {
				mu.Lock()
				defer mu.Unlock()
				for _, instance := range instances {
					want[instance] = 2
				}
			})
		})
	}
	all.Wait()
	for _, s := range scouts {
		if err := s.Ledger.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(want) != 12 {
		t.Errorf("%d instances have been placed, want 12", len(want))
	}
	for id := range g.on {
		if !g.stubborn[id] {
			t.Error("an instance that is not stubborn has stayed")
		}
		want[id] = 2
	}
	has := map[string]int64{}
	for _, provider := range l.providers {
		for consumer, n := range l.taken(provider) {
			has[consumer] = n
		}
	}
	if diff := cmp.Diff(want, has); diff != "" {
		t.Errorf("what Placement has (-want +has):\n%s", diff)
	}
}
