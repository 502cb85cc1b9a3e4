// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// land is the lab's Placement with hosts of the test's own, of 10 VCPU each.
type land struct {
	t         *testing.T
	rest      *labtest.REST
	providers []string
	guests    *guests // nil means none
}

func newLand(t *testing.T, hosts int) *land {
	t.Helper()
	labtest.OpenStack(t)
	l := &land{t: t, rest: labtest.Keystone(t).REST(t, labtest.Almanac)}
	for range hosts {
		id := uuid.NewString()
		l.rest.Must("POST", "placement", "/resource_providers", map[string]string{"name": "test-" + id, "uuid": id}, nil)
		l.rest.Must("PUT", "placement", "/resource_providers/"+id+"/inventories", map[string]any{
			"resource_provider_generation": 0, "inventories": map[string]any{"VCPU": map[string]int{"total": 10}},
		}, nil)
		l.providers = append(l.providers, id)
	}
	made := slices.Clone(l.providers)
	t.Cleanup(func() {
		for _, id := range made {
			for consumer := range l.taken(id) {
				l.rest.Must("DELETE", "placement", "/allocations/"+consumer, nil, nil)
			}
			l.rest.Must("DELETE", "placement", "/resource_providers/"+id, nil, nil)
		}
	})
	return l
}

// taken returns the VCPU that each consumer has of a provider.
func (l *land) taken(provider string) map[string]int64 {
	var body struct {
		Allocations map[string]struct{ Resources map[string]int64 }
	}
	l.rest.Must("GET", "placement", "/resource_providers/"+provider+"/allocations", nil, &body)
	taken := map[string]int64{}
	for consumer, a := range body.Allocations {
		taken[consumer] = a.Resources["VCPU"]
	}
	return taken
}

// scout is a replica: a Looker, a Board and a Dispatcher.
type scout struct {
	*dispatch.Dispatcher
	*eviction.Evictor
	land   *land
	client *placement.Client
	board  *inventory.LiveState
}

// unkept keeps no decisions.
type unkept struct{}

func (unkept) Keep(placing.Decision) {}

// newScout returns a replica that reaches Placement at address; "" means the catalog's.
func (l *land) newScout(address string) *scout {
	l.t.Helper()
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.Keystone(l.t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		l.t.Fatal(err)
	}
	s := &scout{land: l, board: inventory.NewLiveState()}
	if s.client, err = placement.New(session, openstack.Options{Override: address}); err != nil {
		l.t.Fatal(err)
	}
	var rows []inventory.HostState
	for i, provider := range l.providers {
		rows = append(rows, inventory.HostState{Name: cloudtest.Host(i), Provider: provider, Stocks: stock(provider, 0), Instances: l.guests.instancesOn(i)})
	}
	states, err := inventory.NewStates(rows, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	s.board.Replace(s.board.BeginRead(), states, nil)
	log := slog.New(slog.DiscardHandler)
	s.Evictor = eviction.New(eviction.Options{Board: s.board, Placement: s.client, Looker: s, Now: time.Now, Log: log})
	s.Dispatcher = dispatch.New(dispatch.Options{
		Board: s.board, Planner: cloudtest.FirstFit{}, Placement: claiming.NewGatherer(s.client), Looker: s, Evictor: s.Evictor, Decisions: unkept{},
		Now: time.Now, Draw: func(int) int { return 0 }, Log: log,
	})
	return s
}

func stock(provider string, used int64) map[string]inventory.Stock {
	return map[string]inventory.Stock{"VCPU": {Provider: provider, Total: 10, Ratio: 1, Used: used}}
}

// Look implements dispatch.Looker.
func (s *scout) Look(ctx context.Context, hosts []string) error {
	for i, provider := range s.land.providers {
		if !slices.Contains(hosts, cloudtest.Host(i)) {
			continue
		}
		mark := s.board.BeginRead()
		used, err := s.client.Usages(ctx, provider)
		if err != nil {
			return err
		}
		holds, err := s.client.Allocations(ctx, provider)
		if err != nil {
			return err
		}
		s.board.CorrectHost(mark, cloudtest.Host(i), stock(provider, used["VCPU"]), holds)
	}
	return nil
}

// fill places requests of one to three instances until there is no room for one, and returns the
// allocations that it was told.
func (s *scout) fill(t *testing.T) map[string]placing.Allocations {
	told := map[string]placing.Allocations{}
	for size := 3; size > 0; {
		instances := make([]string, size)
		for i := range instances {
			instances[i] = uuid.NewString()
		}
		placed, err := s.Place(t.Context(), cloudtest.Request(1, instances...))
		switch {
		case err == nil:
			for i, instance := range instances {
				told[instance] = placed.Selections[i][0].Allocations
			}
		case fault.Is(err, fault.Conflict) && !strings.Contains(err.Error(), "others took"):
			size--
		case !fault.Is(err, fault.Conflict):
			t.Error(err)
			return told
		}
	}
	return told
}

// fillAll lets several replicas fill the hosts at the same time and checks that Placement has
// what they were told. It returns how many VCPU are taken, by provider.
func (l *land) fillAll(scouts ...*scout) map[string]int {
	l.t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	told := map[string]placing.Allocations{}
	for _, s := range scouts {
		all.Go(func() {
			its := s.fill(l.t)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(told, its)
		})
	}
	all.Wait()
	taken, want, has := map[string]int{}, map[string]map[string]int64{}, map[string]map[string]int64{}
	for _, provider := range l.providers {
		has[provider], want[provider] = l.taken(provider), map[string]int64{}
		taken[provider] = len(has[provider])
		for instance, a := range told {
			if n := a[provider]["VCPU"]; n > 0 {
				want[provider][instance] = n
			}
		}
	}
	if diff := cmp.Diff(want, has); diff != "" {
		l.t.Errorf("Placement does not have what callers were told (-told +has):\n%s", diff)
	}
	return taken
}

func TestAReplicaFillsTheHostsAndNoneTooFull(t *testing.T) {
	l := newLand(t, 8)
	s := l.newScout("")
	for provider, n := range l.fillAll(s, s, s, s) {
		if n != 10 {
			t.Errorf("%d VCPU of provider %s are taken, want 10", n, provider)
		}
	}
}

// One of the replicas loses some answers, and another one some requests.
func TestReplicasFillTheHostsTogetherAndNothingIsLost(t *testing.T) {
	l := newLand(t, 8)
	lossy, deaf := labtest.Interpose(t, l.rest.Endpoint("placement")), labtest.Interpose(t, l.rest.Endpoint("placement"))
	lossy.MeddleTimes(3, "POST /allocations", labtest.Lose)
	deaf.MeddleTimes(3, "POST /allocations", labtest.Status(http.StatusServiceUnavailable))
	for provider, n := range l.fillAll(l.newScout(""), l.newScout(""), l.newScout(lossy.URL), l.newScout(deaf.URL)) {
		if n != 10 {
			t.Errorf("%d VCPU of provider %s are taken, want 10", n, provider)
		}
	}
	if lossy.Count("POST /allocations") < 4 || deaf.Count("POST /allocations") < 4 {
		t.Error("a replica with trouble has hardly claimed")
	}
}

// The planner chooses the provider first, and Placement does not know it.
func TestAProviderThatIsGoneIsLeftOut(t *testing.T) {
	l := newLand(t, 1)
	l.providers = append([]string{uuid.NewString()}, l.providers...)
	s := l.newScout("")
	instances := []string{uuid.NewString(), uuid.NewString()}
	if _, err := s.Place(t.Context(), cloudtest.Request(1, instances...)); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{instances[0]: 1, instances[1]: 1}
	if diff := cmp.Diff(want, l.taken(l.providers[1])); diff != "" {
		t.Errorf("allocations (-want +got):\n%s", diff)
	}
}
