// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// state returns the state of a host and its index in the live state.
func (s *scene) state(host string) (*inventory.HostState, int) {
	s.t.Helper()
	states := s.board.Load()
	i, there := states.Index(host)
	if !there {
		s.t.Fatalf("host %s is not in the live state", host)
	}
	return states.Host(i), i
}

func TestTheStatesOfTheCloudAreWhatPlacementSays(t *testing.T) {
	s := newScene(t, setting{})
	hosts, usages := s.undisturbed()
	states := s.board.Load()
	if states.Len() != len(hosts) || len(hosts) == 0 {
		t.Fatalf("%d states of %d hosts", states.Len(), len(hosts))
	}
	for i := range states.Len() {
		h := states.Host(i)
		if h.Name != hosts[i].Name || h.Node == "" || !h.Up || !h.Enabled || h.Zone != "nova" || h.HypervisorType == "" || h.HypervisorVersion == 0 || h.Unsupported != "" || h.Split != nil {
			t.Errorf("got %+v", h)
		}
		path := "/resource_providers/" + h.Provider
		inventories := s.ask(path + "/inventories")["inventories"].(object)
		for class, entry := range inventories {
			has, stock := entry.(object), h.Stocks[class]
			want := []any{has["total"], has["reserved"], has["allocation_ratio"], has["min_unit"], has["max_unit"], has["step_size"], usages[h.Provider][class]}
			got := []any{float64(stock.Total), float64(stock.Reserved), stock.Ratio, float64(stock.Min), float64(stock.Max), float64(stock.Step), float64(stock.Used)}
			if diff := cmp.Diff(want, got); diff != "" || stock.Provider != h.Provider {
				t.Errorf("%s of %s (-want +got):\n%s", class, h.Name, diff)
			}
		}
		var traits []string
		for _, trait := range s.ask(path + "/traits")["traits"].([]any) {
			traits = append(traits, trait.(string))
		}
		slices.Sort(traits)
		if !slices.Equal(h.Traits, traits) || len(inventories) < 3 {
			t.Errorf("%s has %v and %d classes, Placement has %v", h.Name, h.Traits, len(inventories), traits)
		}
	}
}

// undisturbed reads the hosts, and the usages of all providers in Placement, while no usage changes:
// Nova releases the allocations of a server some moments after the server is gone.
func (s *scene) undisturbed() (hosts []inventory.Host, usages map[string]object) {
	s.t.Helper()
	read := func() map[string]object {
		all := map[string]object{}
		for _, provider := range s.ask("/resource_providers")["resource_providers"].([]any) {
			id := provider.(object)["uuid"].(string)
			all[id] = s.ask("/resource_providers/" + id + "/usages")["usages"].(object)
		}
		return all
	}
	if !labtest.Poll(patience, 100*time.Millisecond, func() bool {
		usages = read()
		hosts = s.must()
		return cmp.Equal(usages, read())
	}) {
		s.t.Fatalf("the usages in Placement still change after %v", patience)
	}
	return hosts, usages
}

func TestAServerThatIsCreatedIsOnTheBoard(t *testing.T) {
	s := newScene(t, setting{})
	s.must()
	before := s.board.Load()
	id := s.boot(nil)
	var host string
	s.await("it runs", func(hosts []inventory.Host) bool {
		names, i := where(hosts, id)
		host = strings.Join(names, "")
		return i.Status == "ACTIVE" && i.Task == ""
	})
	h, i := s.state(host)
	if !slices.ContainsFunc(h.Instances, func(i inventory.Instance) bool { return i.ID == id }) || h.IOOps != 0 {
		t.Errorf("its instances are %+v, with %d heavy operations", h.Instances, h.IOOps)
	}
	was, is := before.Column("VCPU"), s.board.Load().Column("VCPU")
	if is.Used[i] != was.Used[i]+1 || is.Limit[i] != was.Limit[i] || h.Stocks["VCPU"].Used != is.Used[i] {
		t.Errorf("%d of %d VCPUs are used, earlier %d of %d", is.Used[i], is.Limit[i], was.Used[i], was.Limit[i])
	}
}

func TestAClaimCountsOnceFromThePlanOn(t *testing.T) {
	s := newScene(t, setting{})
	host := s.must()[0]
	used := func() int64 {
		h, _ := s.state(host.Name)
		return h.Stocks["VCPU"].Used
	}
	before, consumer := used(), "/allocations/"+uuid.NewString()
	hold, err := s.board.Place(t.Context(), "project", func(states *inventory.States) ([]inventory.Take, error) {
		i, _ := states.Index(host.Name)
		return []inventory.Take{{Host: i, Instance: consumer, Resources: map[string]int64{"VCPU": 1}}}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	claimed := func(when string) {
		t.Helper()
		if got := used(); got != before+1 {
			t.Errorf("%s %d VCPUs are used, earlier %d", when, got, before)
		}
	}
	claimed("before the claim")
	s.must()
	claimed("with a reading before the claim")
	s.tell(http.MethodPut, consumer, object{
		"allocations": object{host.Provider: object{"resources": object{"VCPU": 1}}},
		"project_id":  s.prefix, "user_id": s.prefix, "consumer_generation": nil,
	})
	t.Cleanup(func() { s.tell(http.MethodDelete, consumer, nil) })
	hold.Confirm()
	claimed("after the claim")
	s.must()
	claimed("with a reading after the claim")
	if err := s.Look(t.Context(), []string{host.Name}); err != nil {
		t.Fatal(err)
	}
	claimed("after a look")
}

func TestTheUnitsOfAReservationAreOnTheBoardAndNoCapacityOfTheHost(t *testing.T) {
	s := newScene(t, setting{})
	hosts := s.must()
	host := hosts[len(hosts)-1]
	class, child := fence.OwnName(s.prefix), fence.ProviderPrefix+s.prefix
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.client.EnsureClass(t.Context(), class))
	t.Cleanup(func() { must(s.client.DeleteClass(context.WithoutCancel(t.Context()), class)) })
	must(s.client.SetUnits(t.Context(), host.Provider, child, map[string]int64{class: 3}))
	provider, err := s.client.ProviderNamed(t.Context(), child)
	must(err)
	t.Cleanup(func() { must(s.client.DeleteProvider(context.WithoutCancel(t.Context()), provider)) })

	after := s.must()
	h, i := s.state(host.Name)
	want := inventory.Stock{Provider: provider, Total: 3, Ratio: 1, Min: 1, Max: 1, Step: 1}
	if diff := cmp.Diff(want, h.Stocks[class]); diff != "" || s.board.Load().Column(class).Limit[i] != 3 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(host.Capacity, after[len(after)-1].Capacity); diff != "" {
		t.Errorf("the capacity of the host (-want +got):\n%s", diff)
	}

	must(s.client.SetUnits(t.Context(), host.Provider, child, map[string]int64{class: 5}))
	before := s.Calls()
	must(s.Look(t.Context(), []string{host.Name, "gone"}))
	if h, _ := s.state(host.Name); h.Stocks[class].Total != 5 || h.Stocks["VCPU"].Total == 0 || s.Calls()-before != 5 {
		t.Errorf("after a look with %d calls the host has %+v", s.Calls()-before, h.Stocks)
	}
}

func TestWhatAnotherProviderSharesWithAHostIsSplit(t *testing.T) {
	s := newScene(t, setting{})
	hosts := s.must()
	host := hosts[0]
	const disk, aggregate = "7a3c1f8e-52b4-4d0a-9a6e-0a1b2c3d4e5f", "7a3c1f8e-52b4-4d0a-9a6e-0a1b2c3d4e60"
	join := func(provider string, aggregates ...string) {
		t.Helper()
		path := "/resource_providers/" + provider
		list := []string{}
		for _, one := range s.ask(path + "/aggregates")["aggregates"].([]any) {
			if one != aggregate {
				list = append(list, one.(string))
			}
		}
		s.tell(http.MethodPut, path+"/aggregates", object{"aggregates": append(list, aggregates...),
			"resource_provider_generation": s.ask(path + "/inventories")["resource_provider_generation"]})
	}
	s.tell(http.MethodPost, "/resource_providers", object{"uuid": disk, "name": s.prefix})
	t.Cleanup(func() { s.tell(http.MethodDelete, "/resource_providers/"+disk, nil) })
	s.tell(http.MethodPut, "/resource_providers/"+disk+"/inventories", object{"resource_provider_generation": 0, "inventories": object{"DISK_GB": object{"total": 100}}})
	s.tell(http.MethodPut, "/resource_providers/"+disk+"/traits", object{"resource_provider_generation": 1, "traits": []string{"MISC_SHARES_VIA_AGGREGATE"}})
	join(disk, aggregate)
	join(host.Provider, aggregate)
	t.Cleanup(func() { join(host.Provider) })

	s.must()
	h, _ := s.state(host.Name)
	other, _ := s.state(hosts[1].Name)
	if _, has := h.Stocks["DISK_GB"]; has || !slices.Equal(h.Split, []string{"DISK_GB"}) || h.Stocks["VCPU"].Total == 0 || other.Split != nil {
		t.Errorf("the host has %+v, split %v; another host split %v", h.Stocks, h.Split, other.Split)
	}
	if err := s.Look(t.Context(), []string{host.Name}); err != nil {
		t.Fatal(err)
	}
	if h, _ := s.state(host.Name); len(h.Stocks) == 0 || h.Stocks["DISK_GB"].Total != 0 {
		t.Errorf("after a look the host has %+v", h.Stocks)
	}
	before := s.Calls()
	s.must()
	if calls := s.Calls() - before; calls > 5+1+8 {
		t.Errorf("%d calls although nothing has changed", calls)
	}
}

// guestbook implements inventory.InstanceRecords.
type guestbook struct {
	guests map[string]inventory.InstanceRecord
	err    error
}

func (g *guestbook) InstanceRecords(context.Context, ...string) (map[string]inventory.InstanceRecord, error) {
	return g.guests, g.err
}

// yields returns how much of some resource classes is evictable on a host.
func (s *scene) yields(host string) map[string]int64 {
	_, i := s.state(host)
	all := map[string]int64{}
	for _, class := range []string{"VCPU", "MEMORY_MB", "DISK_GB"} {
		all[class] = s.board.Load().Column(class).Evictable[i]
	}
	return all
}

func TestAPreemptibleInstanceYieldsWhatPlacementHasOfIt(t *testing.T) {
	book := &guestbook{}
	s := newScene(t, setting{rule: inventory.PreemptibleRule{Protect: "almanac:protected"}, records: book})
	var asked atomic.Int64 // calls for the allocations of a provider
	s.place.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/allocations") {
			asked.Add(1)
		}
		return false
	})
	id := s.boot(nil)
	var host string
	s.await("it runs", func(hosts []inventory.Host) bool {
		names, i := where(hosts, id)
		host = strings.Join(names, "")
		return i.Status == "ACTIVE" && i.Task == ""
	})
	s.clock.advance(time.Minute) // so that no recent change touches the host
	s.must()
	h, _ := s.state(host)
	if asked.Load() > 0 {
		t.Error("the source reads allocations although no instance is preemptible")
	}
	all, none := map[string]int64{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}, map[string]int64{"VCPU": 0, "MEMORY_MB": 0, "DISK_GB": 0}
	expect := func(when string, want map[string]int64) {
		t.Helper()
		if diff := cmp.Diff(want, s.yields(host)); diff != "" {
			t.Errorf("%s, evictable on the host (-want +got):\n%s", when, diff)
		}
	}
	expect("while it is normal", none)

	book.guests = map[string]inventory.InstanceRecord{id: {Preemptible: true}}
	s.must()
	expect("after it is known to be preemptible", all)
	book.guests, book.err = nil, errors.New("the database is away")
	s.must()
	expect("while it is unknown that it is preemptible", all)
	if !strings.Contains(s.log.String(), "the database is away") {
		t.Errorf("the log does not report it: %s", s.log)
	}
	book.guests, book.err = map[string]inventory.InstanceRecord{id: {Preemptible: true}}, nil

	server := "/servers/" + id
	become := func(what string, want map[string]int64, method, path string, body any) {
		t.Helper()
		s.call(s.session, method, server+path, body)
		s.await(what, func([]inventory.Host) bool { return maps.Equal(s.yields(host), want) })
	}
	become("it is protected, or its status does not allow it to leave", none, http.MethodPost, "/metadata", object{"metadata": object{"almanac:protected": "true"}})
	become("it is not protected", all, http.MethodDelete, "/metadata/almanac:protected", nil)
	become("it is locked", none, http.MethodPost, "/action", object{"lock": nil})
	become("it is not locked", all, http.MethodPost, "/action", object{"unlock": nil})

	s.evictedByAnother(host, h.Provider, id, all, expect)
}

// evictedByAnother moves what an instance holds to another consumer in one transaction, and
// then back to the instance.
func (s *scene) evictedByAnother(host, provider, id string, held map[string]int64, expect func(when string, want map[string]int64)) {
	s.t.Helper()
	_, place := s.state(host)
	before := s.board.Load().Column("VCPU").Used[place]
	claim := func(project, user string, generation, amounts any) object {
		on := object{}
		if amounts != nil {
			on[provider] = object{"resources": amounts}
		}
		return object{"allocations": on, "project_id": project, "user_id": user, "consumer_generation": generation}
	}
	was := s.ask("/allocations/" + id)
	project, user := was["project_id"].(string), was["user_id"].(string)
	other := uuid.NewString()
	s.t.Cleanup(func() { s.send(s.session, http.MethodDelete, s.placement+"/allocations/"+other, "placement 1.36", nil) })
	look := func(when string, want map[string]int64) {
		s.t.Helper()
		if err := s.Look(s.t.Context(), []string{host}); err != nil {
			s.t.Fatal(err)
		}
		expect(when, want)
		if used := s.board.Load().Column("VCPU").Used[place]; used != before {
			s.t.Errorf("%s %d VCPUs are used, earlier %d", when, used, before)
		}
	}
	s.tell(http.MethodPost, "/allocations", object{
		id: claim(project, user, was["consumer_generation"], nil), other: claim(s.prefix, s.prefix, nil, held),
	})
	none := map[string]int64{"VCPU": 0, "MEMORY_MB": 0, "DISK_GB": 0}
	look("after another has evicted it", none)
	s.must()
	expect("with a reading after that", none)
	s.tell(http.MethodPost, "/allocations", object{
		id: claim(project, user, nil, held), other: claim(s.prefix, s.prefix, s.ask("/allocations/" + other)["consumer_generation"], nil),
	})
	look("when it has its room back", held)
	s.must()
	expect("with a reading after that", held)
}
