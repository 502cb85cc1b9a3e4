// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// third is a third of a host's disk, in GB. Nova does not overcommit disk.
const third = diskOfHost / 3

// Preemptible servers fill every host, also that of a running reservation, before other servers
// arrive.
//
//make:test-cells
func TestNormalServersMakeRoomInACloudFullOfPreemptibleOnes(t *testing.T) {
	b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), "OS_INVENTORY__REFRESH_INTERVAL=10", "OS_PREEMPTIBLE__VICTIM_COST=priority")...)
	built.TakeTopic(t)
	b.unleaked()
	watched := b.watchCapacity()
	hosts := b.cloud.Hosts(t)
	normal := b.sized("normal", third, nil)
	dear := b.sized("dear", diskOfHost, map[string]string{"almanac:preemptible": "true", "almanac:priority": "9"})
	cheap := b.sized("cheap", diskOfHost, map[string]string{"almanac:preemptible": "true", "almanac:priority": "1"})
	b.pool(hosts[0])
	r := b.reserve(b.demo, v1.ReservationRequest{
		Name: "render", HostProperties: among(hosts[0]), Quantity: new(1), StartTime: new(b.soon(2)), Duration: new(v1.Duration(3600)),
	})
	b.becomes(r.ID, "active")

	cheapest := b.placed(b.demo2, hosts[1:], 1, wish{name: "cheapest", flavor: cheap})[0]
	b.cloud.Openstack(t, labtest.Demo2, "server", "create", "--flavor", "preemptible-dear", "--image", "tiny", "--nic", "none",
		"--max", strconv.Itoa(len(hosts)-1), "filler")
	fillers := b.settled(b.named("filler")...)
	b.runOn(hosts, fillers...)
	if n := len(b.on(hosts[0], fillers)); n != 1 {
		t.Errorf("%d of the fillers are on the reserved host, want 1", n)
	}
	b.unplaced(b.demo2, wish{name: "one too many", flavor: dear})
	b.stillThere(append(fillers, cheapest)...)
	b.goesFirst(cheapest, "preemptible-normal")

	b.placed(b.demo, []string{cheapest.Host}, 1, wish{name: "normal", flavor: normal})
	if !b.deleted(cheapest.ID) {
		t.Errorf("%s still exists", cheapest.Name)
	}
	b.stillThere(fillers...)

	b.placed(b.demo, hosts[:1], 1, wish{name: "owner", flavor: normal, hints: map[string]any{"reservation": r.ID}})
	if left := b.remaining(fillers); len(left) != len(fillers)-1 || len(b.on(hosts[0], left)) != 0 {
		t.Errorf("%d fillers remain, %d of them on the owner's host; want one evicted, from there", len(left), len(b.on(hosts[0], left)))
	}

	b.runOn(hosts[1:], b.settled(b.rush(20, normal)...)...)
	if left := b.remaining(fillers); len(left) != 0 {
		t.Errorf("of the fillers %v remain, want none", left)
	}
	b.unleaked()
	b.ownersWereTold(len(hosts))
	if looks := watched(); looks == 0 {
		t.Error("the test has never checked the capacity")
	}
}

// goesFirst checks that operators see which server makes room first for a server of the flavor.
func (b *beside) goesFirst(s server, flavor string) {
	b.t.Helper()
	asks := func(arguments ...string) []string {
		out, stderr, exit := built.Almanac(b.t, b.Folder, append(b.cloud.Environment(labtest.Admin), "ALMANAC_URL="+b.URL), append([]string{"preemptible"}, arguments...)...)
		built.WantExit(b.t, "what would make room", stderr, exit, 0)
		return strings.Fields(out)
	}
	b.await("the list begins with the cheapest server", func() bool {
		list := asks("list", "-f", "value", "-c", "ID", "-c", "Cost")
		return len(list) > 3 && list[0] == s.ID && list[1] == "1" && list[3] == "9"
	})
	if first := asks("cost", "--flavor", flavor, "-f", "value", "-c", "Host", "-c", "Victims"); first[0] != s.Host || !slices.Contains(first[:4], "("+s.ID+")") {
		b.t.Errorf("the victim that operators see is %q", first)
	}
}

// rush requests that many servers from Nova in concurrent requests, and returns their ids.
func (b *beside) rush(servers int, flavor string) []string {
	b.t.Helper()
	ids, image := make([]string, servers), b.image()
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var made struct{ Server struct{ ID string } }
			status := b.demo.Do(http.MethodPost, "compute", "/servers", map[string]any{"server": map[string]any{
				"name": fmt.Sprint("rush-", i), "flavorRef": flavor, "imageRef": image, "networks": "none",
			}}, &made)
			if ids[i] = made.Server.ID; status != http.StatusAccepted {
				b.t.Errorf("Nova refuses server %d of the rush: status %d", i, status)
			}
		})
	}
	all.Wait()
	return ids
}

// ownersWereTold checks the number of evictions of which owners got a notification and metadata.
func (b *beside) ownersWereTold(evictions int) {
	b.t.Helper()
	b.heard.Mu.Lock()
	defer b.heard.Mu.Unlock()
	if n := b.heard.Events[" preemptible.evict"]; n != evictions {
		b.t.Errorf("notifications report %d evictions, want %d", n, evictions)
	}
	if strings.Contains(b.Log.String(), "could not notify the owner") {
		b.t.Error("the log reports an owner without a notification")
	}
}

// sized creates a flavor with that much disk until the test ends.
func (b *beside) sized(name string, disk int, specs map[string]string) (id string) {
	b.t.Helper()
	var made struct{ Flavor struct{ ID string } }
	b.admin.Must(http.MethodPost, "compute", "/flavors", map[string]any{"flavor": map[string]any{
		"name": "preemptible-" + name, "vcpus": 1, "ram": 512, "disk": disk}}, &made)
	b.t.Cleanup(func() { b.admin.Must(http.MethodDelete, "compute", "/flavors/"+made.Flavor.ID, nil, nil) })
	if specs != nil {
		b.admin.Must(http.MethodPost, "compute", "/flavors/"+made.Flavor.ID+"/os-extra_specs", map[string]any{"extra_specs": specs}, nil)
	}
	return made.Flavor.ID
}

// on returns the servers of list that are on the host.
func (b *beside) on(host string, list []server) []server {
	return slices.DeleteFunc(slices.Clone(list), func(s server) bool { return s.Host != host })
}

// remaining returns the servers of list that still exist in Nova.
func (b *beside) remaining(list []server) []server {
	b.t.Helper()
	return slices.DeleteFunc(slices.Clone(list), func(s server) bool { return b.deleted(s.ID) })
}

func (b *beside) stillThere(list ...server) {
	b.t.Helper()
	if left := b.remaining(list); len(left) != len(list) {
		b.t.Errorf("%d of %d servers are left", len(left), len(list))
	}
}

// deleted reports whether Nova has deleted a server. For a moment, Nova shows such a server as
// DELETED.
func (b *beside) deleted(id string) bool {
	b.t.Helper()
	var found struct{ Server struct{ Status string } }
	return b.admin.Do(http.MethodGet, "compute", "/servers/"+id, nil, &found) == http.StatusNotFound || found.Server.Status == "DELETED"
}

// watchCapacity fails the test if Placement ever allocates more of a host than it has. The
// function end stops that and returns the number of checks.
func (b *beside) watchCapacity() (end func() (looks int)) {
	b.t.Helper()
	who := b.cloud.REST(b.t, labtest.Admin)
	var list struct {
		Providers []struct{ UUID, Name string } `json:"resource_providers"`
	}
	who.Must(http.MethodGet, "placement", "/resource_providers", nil, &list)
	type inventories map[string]struct {
		Total, Reserved int64
		Ratio           float64 `json:"allocation_ratio"`
	}
	capacity := map[string]inventories{}
	for _, p := range list.Providers {
		var body struct{ Inventories inventories }
		who.Must(http.MethodGet, "placement", "/resource_providers/"+p.UUID+"/inventories", nil, &body)
		capacity[p.UUID] = body.Inventories
	}
	stop, looks := make(chan struct{}), 0
	var over []string
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			for _, p := range list.Providers {
				var body struct{ Usages map[string]int64 }
				if who.Do(http.MethodGet, "placement", "/resource_providers/"+p.UUID+"/usages", nil, &body) != http.StatusOK {
					continue
				}
				looks++
				for class, used := range body.Usages {
					if most := capacity[p.UUID][class]; float64(used) > float64(most.Total-most.Reserved)*most.Ratio {
						over = append(over, fmt.Sprintf("%s has %d %s allocated", p.Name, used, class))
					}
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	end = sync.OnceValue(func() int {
		close(stop)
		watching.Wait()
		if len(over) > 0 {
			b.t.Errorf("more allocated than there is: %s", strings.Join(slices.Compact(over), "; "))
		}
		return looks
	})
	b.t.Cleanup(func() { end() })
	return end
}

// The victims are not lost.
//
//make:test-cloud
func TestVictimsAreShelvedOrMovedAsConfigured(t *testing.T) {
	labtest.Long(t)
	for action, status := range map[string]string{"shelve": "SHELVED_OFFLOADED", "migrate": "ACTIVE"} {
		t.Run(action, func(t *testing.T) {
			b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), "OS_PREEMPTIBLE__PREEMPT_ACTION="+action, "OS_PREEMPTIBLE__EVICTION_NOTICE=3")...)
			built.TakeTopic(t)
			host := b.cloud.Hosts(t)[2:3]
			normal, cheap := b.sized("normal", third, nil), b.sized("cheap", diskOfHost, map[string]string{"almanac:preemptible": "true"})
			there := map[string]any{"host": host[0]}
			victim := b.placed(b.admin, host, 1, wish{name: "victim", flavor: cheap, fields: there})[0]
			begun := time.Now()
			b.placed(b.admin, host, 1, wish{name: "normal", flavor: normal, fields: there})
			if took := time.Since(begun); took < 3*time.Second {
				t.Errorf("the eviction took %v, less than the notice period", took)
			}
			var now struct{ Server server }
			b.admin.Must(http.MethodGet, "compute", "/servers/"+victim.ID, nil, &now)
			if s := now.Server; s.Status != status || s.Host == host[0] || (s.Host == "") != (action == "shelve") {
				t.Errorf("the victim is %s on %q", s.Status, s.Host)
			}
			told := b.metadata(victim.ID)
			at, err := time.Parse(time.RFC3339, told["almanac:evicted_at"])
			if err != nil || at.Before(begun.Truncate(time.Second)) || at.After(time.Now()) || len(told) != 1 {
				t.Errorf("the metadata of the victim are %v", told)
			}
			b.unleaked()
		})
	}
}

// The victim keeps its resources all the time.
//
//make:test-cloud
func TestAVictimThatIsLockedDuringItsNoticeStaysAndIsToldSo(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), "OS_PREEMPTIBLE__EVICTION_NOTICE=10")...)
	built.TakeTopic(t)
	host := b.cloud.Hosts(t)[2:3]
	normal, cheap := b.sized("normal", third, nil), b.sized("cheap", diskOfHost, map[string]string{"almanac:preemptible": "true"})
	there := map[string]any{"host": host[0]}
	victim := b.placed(b.admin, host, 1, wish{name: "victim", flavor: cheap, fields: there})[0]
	warned := func() bool { return b.metadata(victim.ID)["almanac:evicted_at"] != "" }
	newcomer := b.wishing(b.admin, wish{name: "normal", flavor: normal, fields: there})[0]
	b.await("the victim has its notice", warned)
	b.admin.Must(http.MethodPost, "compute", "/servers/"+victim.ID+"/action", map[string]any{"lock": nil}, nil)
	if b.hasSomething(newcomer) || !b.hasSomething(victim.ID) {
		t.Error("the newcomer has the room of a victim in its notice period")
	}
	b.await("the notice of the victim is withdrawn", func() bool { return !warned() })
	b.settled(newcomer)
	b.stillThere(victim)
	if !b.hasSomething(victim.ID) || b.hasSomething(newcomer) {
		t.Error("the newcomer has the room of a victim that stayed")
	}
}

// The rule holds even if almanacd is killed and restarts.
//
//make:test-cloud
func TestANoticeDoesNotOutliveTheAlmanacdThatGaveIt(t *testing.T) {
	labtest.Long(t)
	b := besideOpenStack(t, append(built.AtTopic(t, built.Replace, ""), "OS_PREEMPTIBLE__EVICTION_NOTICE=15m")...)
	built.TakeTopic(t)
	host := b.cloud.Hosts(t)[2:3]
	normal, cheap := b.sized("normal", third, nil), b.sized("cheap", diskOfHost, map[string]string{"almanac:preemptible": "true"})
	there := map[string]any{"host": host[0]}
	victim := b.placed(b.admin, host, 1, wish{name: "victim", flavor: cheap, fields: there})[0]
	warned := func() bool { return b.metadata(victim.ID)["almanac:evicted_at"] != "" }
	b.wishing(b.admin, wish{name: "normal", flavor: normal, fields: there})
	b.await("the victim has its notice", warned)
	b.crash()
	b.start()
	b.within(5*time.Minute, time.Second, "the notice is taken back", func() bool { return !warned() })
	b.stillThere(victim)
}

// metadata returns the metadata of a server.
func (b *beside) metadata(id string) map[string]string {
	b.t.Helper()
	var found struct{ Metadata map[string]string }
	b.admin.Must(http.MethodGet, "compute", "/servers/"+id+"/metadata", nil, &found)
	return found.Metadata
}

// hasSomething reports whether a consumer has an allocation in Placement.
func (b *beside) hasSomething(consumer string) bool {
	b.t.Helper()
	var found struct{ Allocations map[string]any }
	b.admin.Must(http.MethodGet, "placement", "/allocations/"+consumer, nil, &found)
	return len(found.Allocations) > 0
}
