// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// stock is the service on Nova's topic without Almanac: nova-scheduler.
const stock = "nova-scheduler"

// placing starts almanacd beside the lab's OpenStack, in the place of nova-scheduler unless the
// way is stock. Readings are rare, so almanacd has to learn of changes from Nova's casts, or with
// several cells, which the casts of nova-compute do not leave, from notifications. The
// nova-scheduler behind it requests at most half of the hosts from Placement and does not
// isolate aggregates, so that only Almanac narrows the candidates; of several cells it requests all
// hosts, since it looks for those of a server's cell among them.
func placing(t *testing.T, way string, settings ...string) *beside {
	t.Helper()
	cells := labtest.OpenStack(t).Cells(t)
	settings = append(settings, "OS_RESERVATION__LEAD_TIME=2h", "OS_INVENTORY__REFRESH_INTERVAL=30", fmt.Sprint("OS_NOVA__NOTIFICATIONS=", cells > 1))
	if way == stock {
		return besideOpenStack(t, settings...)
	}
	behind := labtest.SchedulerBehind(t, fmt.Sprintf("scheduler.max_placement_results=%d", 4*cells), "scheduler.enable_isolated_aggregate_filtering=false")
	b := besideOpenStack(t, append(built.AtTopic(t, way, behind), settings...)...)
	built.TakeTopic(t)
	return b
}

// nova-scheduler and Almanac in its place have the same outcomes, except that Almanac also keeps
// reserved hosts.
//
//make:test-cloud
func TestServersArePlacedAsNovaSchedulerPlacesThem(t *testing.T) {
	for _, way := range []string{stock, built.Interpose, built.Replace} {
		t.Run(way, func(t *testing.T) {
			if way == stock {
				labtest.Long(t)
			}
			b := placing(t, way)
			unlessByNova := func(t *testing.T) { // nova-scheduler decides in interpose mode, too
				if way != built.Replace {
					labtest.Long(t)
				}
			}
			t.Run("together and apart", func(t *testing.T) { unlessByNova(t); b.with(t).placesGroups() })
			t.Run("where asked", func(t *testing.T) { unlessByNova(t); b.with(t).placesWhereAsked() })
			t.Run("zones", func(t *testing.T) { unlessByNova(t); b.with(t).followsZones() })
			if way != built.Interpose { // which would test only the other nova-scheduler
				t.Run("isolation", func(t *testing.T) { b.with(t).followsIsolation() })
			}
			if way != stock {
				t.Run("reserved hosts", func(t *testing.T) { b.with(t).keepsReservedHosts() })
			}
		})
	}
}

// wish is a request for servers.
type wish struct {
	name   string
	count  int            // 0 stands for 1
	flavor string         // empty stands for m1.tiny
	fields map[string]any // further fields of Nova's `server`
	hints  map[string]any
}

// wishes counts the wishes, so that each server has its own name.
var wishes int

// wished requests servers from Nova, and returns them when they are created or have failed.
func (b *beside) wished(who *tenant, w wish) []server {
	b.t.Helper()
	return b.settled(b.wishing(who, w)...)
}

// wishing requests servers from Nova, and returns their ids at once.
func (b *beside) wishing(who *tenant, w wish) (ids []string) {
	b.t.Helper()
	wishes++
	name, count := fmt.Sprintf("%s-%d", strings.ReplaceAll(w.name, " ", "-"), wishes), max(w.count, 1)
	wanted := map[string]any{
		"name": name, "flavorRef": tiny, "imageRef": b.image(), "networks": "none", "min_count": count, "max_count": count,
	}
	if w.flavor != "" {
		wanted["flavorRef"] = w.flavor
	}
	maps.Copy(wanted, w.fields)
	body := map[string]any{"server": wanted}
	if w.hints != nil {
		body["os:scheduler_hints"] = w.hints
	}
	if status := who.Do(http.MethodPost, "compute", "/servers", body, nil); status != http.StatusAccepted {
		b.t.Fatalf("%s: Nova refuses the servers: status %d", w.name, status)
	}
	if ids = b.named(name); len(ids) != count {
		b.t.Fatalf("%s: Nova has %d servers of %d", w.name, len(ids), count)
	}
	return ids
}

// named returns the ids of the servers of that name, with or without a number after it.
func (b *beside) named(name string) (ids []string) {
	b.t.Helper()
	var list struct{ Servers []struct{ ID string } }
	b.admin.Must(http.MethodGet, "compute", "/servers?all_tenants=1&name=^"+name+"(-[0-9]%2B)%3F$", nil, &list)
	for _, s := range list.Servers {
		ids = append(ids, s.ID)
	}
	return ids
}

// placed creates servers and checks that they run on some of the hosts, and on as many different
// hosts as different states; 0 stands for any number.
func (b *beside) placed(who *tenant, hosts []string, different int, w wish) []server {
	b.t.Helper()
	list := b.wished(who, w)
	b.runOn(hosts, list...)
	if n := len(hostsOf(list)); different != 0 && n != different {
		b.t.Errorf("%s: the servers are on %d hosts, want %d", w.name, n, different)
	}
	return list
}

// unplaced checks that Nova finds no host for the servers, and returns the message of the fault.
func (b *beside) unplaced(who *tenant, w wish) (sentence string) {
	b.t.Helper()
	for _, s := range b.wished(who, w) {
		if s.Status != "ERROR" {
			b.t.Errorf("%s: server %s is %s on %s, want no host for it", w.name, s.Name, s.Status, s.Host)
			continue
		}
		var found struct {
			Server struct {
				Fault struct {
					Code    int
					Message string
				}
			}
		}
		// Nova stores the fault a moment after the status.
		b.await("server "+s.Name+" has a fault", func() bool {
			who.Must(http.MethodGet, "compute", "/servers/"+s.ID, nil, &found)
			return found.Server.Fault.Message != ""
		})
		sentence = found.Server.Fault.Message
		if code := found.Server.Fault.Code; code != http.StatusInternalServerError || !strings.HasPrefix(sentence, noValidHost) {
			b.t.Errorf("%s: the fault is %d %q, want that of Nova's NoValidHost", w.name, code, sentence)
		}
	}
	return strings.TrimPrefix(sentence, noValidHost)
}

// noValidHost is the start of every refusal's message.
const noValidHost = "No valid host was found."

// hostsOf returns the different hosts of servers.
func hostsOf(list []server) (hosts []string) {
	for _, s := range list {
		hosts = append(hosts, s.Host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func (b *beside) remove(list ...server) {
	b.t.Helper()
	for _, s := range list {
		b.admin.Must(http.MethodDelete, "compute", "/servers/"+s.ID, nil, nil)
	}
	for _, s := range list {
		b.reach("", s.ID)
	}
}

// big is the id of the flavor m1.large; a host has room for one.
const big = "4"

// group creates a server group until the test ends.
func (b *beside) group(who *tenant, policy string) (id string) {
	b.t.Helper()
	var made struct {
		Group struct{ ID string } `json:"server_group"`
	}
	who.Must(http.MethodPost, "compute", "/os-server-groups", map[string]any{"server_group": map[string]string{"name": policy, "policy": policy}}, &made)
	b.t.Cleanup(func() { who.Must(http.MethodDelete, "compute", "/os-server-groups/"+made.Group.ID, nil, nil) })
	return made.Group.ID
}

// placesGroups places groups of servers that are requested together or one after the other.
func (b *beside) placesGroups() {
	b.t.Helper()
	hosts := b.cloud.Hosts(b.t)
	together := map[string]any{"group": b.group(b.admin, "affinity")}
	first := hostsOf(b.placed(b.admin, hosts, 1, wish{name: "affinity", count: 2, hints: together}))
	b.placed(b.admin, first, 1, wish{name: "affinity later", hints: together})
	b.unplaced(b.admin, wish{name: "affinity elsewhere", hints: together, fields: map[string]any{"host": others(hosts, first)[0]}})

	apart := map[string]any{"group": b.group(b.admin, "anti-affinity")}
	two := hostsOf(b.placed(b.admin, hosts, 2, wish{name: "anti-affinity", count: 2, hints: apart}))
	b.placed(b.admin, others(hosts, two), 1, wish{name: "anti-affinity later", hints: apart})
	b.unplaced(b.admin, wish{name: "anti-affinity on the same", hints: apart, fields: map[string]any{"host": two[0]}})
	b.deletesAll()
}

// others returns the hosts that are not among some.
func others(hosts, some []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return slices.Contains(some, host) })
}

// placesWhereAsked places servers on hosts that an admin names, as long as they have room. A
// server's resources count when it runs, and are free when it is gone.
func (b *beside) placesWhereAsked() {
	b.t.Helper()
	hosts := b.cloud.Hosts(b.t)
	b.placed(b.admin, hosts[3:4], 1, wish{name: "forced to a node", fields: map[string]any{"hypervisor_hostname": hosts[3]}})
	host, ofZone := map[string]any{"host": hosts[5]}, map[string]any{"availability_zone": "nova:" + hosts[5]}
	full := b.placed(b.admin, hosts[5:6], 1, wish{name: "fills the host", flavor: big, fields: host})
	b.unplaced(b.admin, wish{name: "forced to a full host", flavor: big, fields: host})
	b.unplaced(b.admin, wish{name: "forced to a full host of a zone", flavor: big, fields: ofZone})
	b.remove(full...)
	b.unleaked()
	b.placed(b.admin, hosts[5:6], 1, wish{name: "fills it again", flavor: big, fields: ofZone})
	b.deletesAll()
}

// followsZones checks that hosts that enter and leave a zone count where they are. Nova moves
// only hosts without servers, and does not restrict requests for its default zone.
func (b *beside) followsZones() {
	b.t.Helper()
	hosts, name := b.cloud.Hosts(b.t), "far"
	far := map[string]any{"availability_zone": name}
	b.aggregate(name)
	b.change(name, "set_metadata", map[string]any{"metadata": far})
	b.change(name, "add_host", map[string]any{"host": hosts[6]})
	b.remove(b.placed(b.demo, hosts[6:7], 1, wish{name: "in the zone", count: 2, fields: far})...)
	b.change(name, "remove_host", map[string]any{"host": hosts[6]})
	b.change(name, "add_host", map[string]any{"host": hosts[7]})
	b.remove(b.placed(b.demo, hosts[7:], 1, wish{name: "in the zone elsewhere", fields: far})...)
	b.deleteAggregate(name)
	b.placed(b.admin, hosts[7:], 1, wish{name: "after the zone", fields: map[string]any{"availability_zone": "nova:" + hosts[7]}})
	b.deletesAll()
}

// followsIsolation reserves an aggregate for instances with a trait, for a while.
func (b *beside) followsIsolation() {
	b.t.Helper()
	hosts, name, trait := b.cloud.Hosts(b.t), "isolated", "CUSTOM_FOR_SOME"
	forced := map[string]any{"host": hosts[0]}
	b.admin.Must(http.MethodPut, "placement", "/traits/"+trait, nil, nil)
	b.t.Cleanup(func() { b.admin.Do(http.MethodDelete, "placement", "/traits/"+trait, nil, nil) })
	b.aggregate(name)
	b.change(name, "add_host", map[string]any{"host": hosts[0]})
	b.change(name, "set_metadata", map[string]any{"metadata": map[string]any{"trait:" + trait: "required"}})
	b.unplaced(b.admin, wish{name: "forced into the isolation", fields: forced})
	b.change(name, "set_metadata", map[string]any{"metadata": map[string]any{"trait:" + trait: nil}})
	b.placed(b.admin, hosts[:1], 1, wish{name: "after the isolation", fields: forced})
	b.deleteAggregate(name)
	b.deletesAll()
}

// aggregate creates an aggregate in Nova, until the test ends at the latest.
func (b *beside) aggregate(name string) {
	b.t.Helper()
	remove := func() {
		if b.aggregateID(name) != 0 {
			b.deleteAggregate(name)
		}
	}
	remove() // left by a test that was killed
	b.t.Cleanup(remove)
	b.admin.Must(http.MethodPost, "compute", "/os-aggregates", map[string]any{"aggregate": map[string]string{"name": name}}, nil)
}

// change carries out an action on an aggregate in Nova.
func (b *beside) change(name, action string, body map[string]any) {
	b.t.Helper()
	b.admin.Must(http.MethodPost, "compute", fmt.Sprintf("/os-aggregates/%d/action", b.aggregateID(name)), map[string]any{action: body}, nil)
}

// deletesAll deletes all servers; then no allocation may be left.
func (b *beside) deletesAll() {
	b.t.Helper()
	b.unleaked()
	var list struct{ Servers []server }
	b.admin.Must(http.MethodGet, "compute", "/servers/detail?all_tenants=1", nil, &list)
	b.remove(list.Servers...)
	b.unleaked()
}

// unleaked waits until every allocation belongs to a server.
func (b *beside) unleaked() {
	b.t.Helper()
	b.await("all allocations are those of servers", func() bool { return len(b.cloud.Stray(b.t)) == 0 })
}
