package tests

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// stock is who serves Nova's topic where Almanac does not: nova-scheduler.
const stock = "nova-scheduler"

// placing starts almanacd beside the lab's OpenStack, in the place of nova-scheduler
// unless the way is stock; behind it is a nova-scheduler with further options of Nova.
func placing(t *testing.T, way string, novaOptions []string, settings ...string) *beside {
	t.Helper()
	if way == stock {
		return besideOpenStack(t, settings...)
	}
	behind := labtest.SchedulerBehind(t, novaOptions...)
	b := besideOpenStack(t, append(atTopic(t, way, behind), settings...)...)
	takeTopic(t)
	return b
}

// TestServersArePlacedAsNovaSchedulerPlacesThem has the same outcomes from
// nova-scheduler and from Almanac in its place.
func TestServersArePlacedAsNovaSchedulerPlacesThem(t *testing.T) {
	for _, way := range []string{stock, interpose, replace} {
		t.Run(way, func(t *testing.T) {
			b := placing(t, way, nil)
			b.placesServers()
			b.placesGroups()
			b.placesWhereAsked()
			b.createsByOpenstack()
			b.deletesAll()
			b.followsZones()
			b.followsIsolation()
			b.deletesAll()
		})
	}
}

// wish is a request for servers.
type wish struct {
	name   string
	count  int            // 0 is 1
	flavor string         // "" is m1.tiny
	fields map[string]any // further ones of Nova's `server`
	hints  map[string]any
}

// wishes counts them, so that no server has the name of another.
var wishes int

// wished has Nova make the servers, and gives them when it has or has failed to.
func (b *beside) wished(who *tenant, w wish) []server {
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
	ids := b.named(name)
	if len(ids) != count {
		b.t.Fatalf("%s: Nova has %d servers of %d", w.name, len(ids), count)
	}
	return b.settled(ids...)
}

// named gives the ids of the servers of that name, or with it and a number.
func (b *beside) named(name string) (ids []string) {
	b.t.Helper()
	var list struct{ Servers []struct{ ID string } }
	b.admin.Must(http.MethodGet, "compute", "/servers?all_tenants=1&name=^"+name+"(-[0-9]%2B)%3F$", nil, &list)
	for _, s := range list.Servers {
		ids = append(ids, s.ID)
	}
	return ids
}

// placed has the servers made on some of the hosts, and on so many different ones; 0 is
// any number.
func (b *beside) placed(who *tenant, hosts []string, different int, w wish) []server {
	b.t.Helper()
	list := b.wished(who, w)
	b.runOn(hosts, list...)
	if n := len(hostsOf(list)); different != 0 && n != different {
		b.t.Errorf("%s: the servers are on %d hosts, want %d", w.name, n, different)
	}
	return list
}

// unplaced has Nova find no host for the servers, and gives what it says of that.
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
		who.Must(http.MethodGet, "compute", "/servers/"+s.ID, nil, &found)
		sentence = found.Server.Fault.Message
		if code := found.Server.Fault.Code; code != http.StatusInternalServerError || !strings.HasPrefix(sentence, noValidHost) {
			b.t.Errorf("%s: the fault is %d %q, want that of Nova's NoValidHost", w.name, code, sentence)
		}
	}
	return strings.TrimPrefix(sentence, noValidHost)
}

// noValidHost begins the sentence of every refusal.
const noValidHost = "No valid host was found."

// hostsOf gives the different hosts of servers.
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

// placesServers: any host does that is large enough, for all or for none of the servers
// that are asked for together.
func (b *beside) placesServers() {
	b.t.Helper()
	hosts := b.cloud.Hosts(b.t)
	b.placed(b.demo, hosts, 1, wish{name: "one"})
	b.remove(b.placed(b.demo2, hosts, 0, wish{name: "five at once", count: 5})...)
	full := b.placed(b.demo, hosts, len(hosts), wish{name: "one on each", count: len(hosts), flavor: big})
	b.unplaced(b.demo2, wish{name: "one too many", flavor: big})
	b.remove(full[0])
	b.unplaced(b.demo2, wish{name: "two for one host", count: 2, flavor: big})
	b.placed(b.demo2, []string{full[0].Host}, 1, wish{name: "one for one host", flavor: big})
	b.deletesAll()
}

// big is the id of the flavor m1.large, of which a host holds one.
const big = "4"

// group makes a server group until the end of the test.
func (b *beside) group(who *tenant, policy string) (id string) {
	b.t.Helper()
	var made struct {
		Group struct{ ID string } `json:"server_group"`
	}
	who.Must(http.MethodPost, "compute", "/os-server-groups", map[string]any{"server_group": map[string]string{"name": policy, "policy": policy}}, &made)
	b.t.Cleanup(func() { who.Must(http.MethodDelete, "compute", "/os-server-groups/"+made.Group.ID, nil, nil) })
	return made.Group.ID
}

// placesGroups: of servers that are asked for together and of those that come later.
func (b *beside) placesGroups() {
	b.t.Helper()
	hosts := b.cloud.Hosts(b.t)
	together := map[string]any{"group": b.group(b.demo, "affinity")}
	first := b.placed(b.demo, hosts, 1, wish{name: "affinity", count: 3, hints: together})
	b.placed(b.demo, hostsOf(first), 1, wish{name: "affinity later", hints: together})

	apart := map[string]any{"group": b.group(b.demo, "anti-affinity")}
	three := b.placed(b.demo, hosts, 3, wish{name: "anti-affinity", count: 3, hints: apart})
	rest := slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return slices.Contains(hostsOf(three), host) })
	b.placed(b.demo, rest, 1, wish{name: "anti-affinity later", hints: apart})
	b.unplaced(b.demo, wish{name: "anti-affinity of one too many", count: len(rest), hints: apart})
	b.deletesAll()
}

// placesWhereAsked: in an availability zone, and on a host that an admin asks for.
func (b *beside) placesWhereAsked() {
	b.t.Helper()
	hosts := b.cloud.Hosts(b.t)
	b.placed(b.demo, hosts, 0, wish{name: "zone", count: 2, fields: map[string]any{"availability_zone": "nova"}})
	for i, fields := range []map[string]any{
		{"host": hosts[2]}, {"hypervisor_hostname": hosts[3]}, {"availability_zone": "nova:" + hosts[4]},
	} {
		b.placed(b.admin, hosts[2+i:3+i], 1, wish{name: "forced", count: 2, fields: fields})
	}
	full := map[string]any{"host": hosts[5]}
	b.placed(b.admin, hosts[5:6], 1, wish{name: "fills the host", flavor: big, fields: full})
	b.unplaced(b.admin, wish{name: "forced to a full host", flavor: big, fields: full})
	b.unplaced(b.admin, wish{name: "forced to a full host of a zone", flavor: big, fields: map[string]any{"availability_zone": "nova:" + hosts[5]}})
}

// followsZones: a host that is moved between zones counts where it is. Nova moves only
// hosts without servers.
func (b *beside) followsZones() {
	b.t.Helper()
	hosts, name := b.cloud.Hosts(b.t), "far"
	zone := map[string]any{"availability_zone": name}
	b.aggregate(name)
	b.change(name, "set_metadata", map[string]any{"metadata": zone})
	for _, host := range hosts[6:8] {
		b.change(name, "add_host", map[string]any{"host": host})
		b.remove(b.placed(b.demo, []string{host}, 1, wish{name: "in the zone", count: 2, fields: zone})...)
		b.remove(b.placed(b.demo, hosts[:6], 0, wish{name: "in the other zone", fields: map[string]any{"availability_zone": "nova"}})...)
		b.change(name, "remove_host", map[string]any{"host": host})
	}
	b.deleteAggregate(name)
}

// followsIsolation: an aggregate is for instances with a trait, for a while.
func (b *beside) followsIsolation() {
	b.t.Helper()
	hosts, name, trait := b.cloud.Hosts(b.t), "isolated", "CUSTOM_FOR_SOME"
	host := hosts[:1]
	b.admin.Must(http.MethodPut, "placement", "/traits/"+trait, nil, nil)
	b.t.Cleanup(func() { b.admin.Do(http.MethodDelete, "placement", "/traits/"+trait, nil, nil) })
	b.aggregate(name)
	b.change(name, "add_host", map[string]any{"host": host[0]})
	forced := map[string]any{"host": host[0]}
	b.placed(b.admin, host, 1, wish{name: "before the isolation", fields: forced})
	b.change(name, "set_metadata", map[string]any{"metadata": map[string]any{"trait:" + trait: "required"}})
	b.unplaced(b.admin, wish{name: "forced into the isolation", fields: forced})
	b.placed(b.demo, hosts[1:], 2, wish{name: "beside the isolation", count: 2, flavor: big})
	b.change(name, "set_metadata", map[string]any{"metadata": map[string]any{"trait:" + trait: nil}})
	b.placed(b.admin, host, 1, wish{name: "after the isolation", fields: forced})
	b.deleteAggregate(name)
}

// aggregate makes one of Nova's, until the end of the test at the latest.
func (b *beside) aggregate(name string) {
	b.t.Helper()
	remove := func() {
		if b.aggregateID(name) != 0 {
			b.deleteAggregate(name)
		}
	}
	remove() // what a test that was killed has left
	b.t.Cleanup(remove)
	b.admin.Must(http.MethodPost, "compute", "/os-aggregates", map[string]any{"aggregate": map[string]string{"name": name}}, nil)
}

// change has Nova do something with an aggregate.
func (b *beside) change(name, action string, body map[string]any) {
	b.t.Helper()
	b.admin.Must(http.MethodPost, "compute", fmt.Sprintf("/os-aggregates/%d/action", b.aggregateID(name)), map[string]any{action: body}, nil)
}

// createsByOpenstack is what the guide tells to do.
func (b *beside) createsByOpenstack() {
	b.t.Helper()
	b.cloud.Openstack(b.t, labtest.Demo, "server", "create", "--flavor", "m1.tiny", "--image", "tiny", "--nic", "none",
		"--max", "5", "--wait", "by-openstack")
	ids := b.named("by-openstack")
	if len(ids) != 5 {
		b.t.Errorf("openstack has made %d servers, want 5", len(ids))
	}
	b.runOn(b.cloud.Hosts(b.t), b.settled(ids...)...)
}

// deletesAll: then nothing is claimed any more.
func (b *beside) deletesAll() {
	b.t.Helper()
	b.unleaked()
	var list struct{ Servers []server }
	b.admin.Must(http.MethodGet, "compute", "/servers/detail?all_tenants=1", nil, &list)
	b.remove(list.Servers...)
	b.unleaked()
}

// unleaked waits until no allocation is left that belongs to no server.
func (b *beside) unleaked() {
	b.t.Helper()
	b.await("all allocations are those of servers", func() bool { return len(b.cloud.Stray(b.t)) == 0 })
}
