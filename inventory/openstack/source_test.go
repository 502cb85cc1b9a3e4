// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
)

// microversions lists the microversions at which Nova reports least and most: the last one
// that reports capacity, and the highest that it supports.
var microversions = map[string]string{"2.87": "2.87", "the highest": ""}

func TestAnInstanceIsShownOnItsHostAndLeavesWithIt(t *testing.T) {
	for name, version := range microversions {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, setting{maxMicroversion: version, rule: inventory.PreemptibleRule{Projects: []string{"another"}}})
			s.must()
			before := time.Now()
			id := s.boot(nil)
			hosts := s.await("it runs", func(hosts []inventory.Host) bool {
				_, i := where(hosts, id)
				return i.Status == "ACTIVE"
			})
			names, i := where(hosts, id)
			if len(names) != 1 || i.Host != names[0] {
				t.Errorf("the source shows the instance on %v, it is on %s", names, i.Host)
			}
			if i.Name != s.prefix || i.ProjectID == "" || i.UserID == "" || i.Metadata["made by"] != s.prefix || i.Preemptible || i.Locked {
				t.Errorf("got %+v", i)
			}
			if i.Flavor.Name != "m1.tiny" || i.Flavor.Resources.VCPUs != 1 || i.Flavor.Resources.MemoryMB != 512 || i.Flavor.Resources.DiskGB != 1 {
				t.Errorf("its flavor is %+v", i.Flavor)
			}
			if age := i.Launched.Time().Sub(before); age < -5*time.Second || age > patience || i.Created > i.Launched {
				t.Errorf("created %v, launched %v; requested at %v", i.Created, i.Launched, before)
			}
			s.remove(id)
			s.await("it has left", func(hosts []inventory.Host) bool {
				names, _ := where(hosts, id)
				return names == nil
			})
			s.await("the source reports the same usage as Placement", func(hosts []inventory.Host) bool {
				at := slices.IndexFunc(hosts, func(h inventory.Host) bool { return h.Name == names[0] })
				return hosts[at].Used.MemoryMB == s.usedMemory(hosts[at].Provider)
			})
		})
	}
}

func TestAHostIsAsPlacementHasIt(t *testing.T) {
	for name, version := range microversions {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, setting{maxMicroversion: version})
			hosts := s.must()
			if len(hosts) < 8 || !slices.IsSortedFunc(hosts, func(a, b inventory.Host) int { return strings.Compare(a.Name, b.Name) }) {
				t.Fatalf("%d hosts, or not sorted by name", len(hosts))
			}
			for _, h := range hosts {
				inventories := s.ask("/resource_providers/" + h.Provider + "/inventories")["inventories"].(object)
				real := func(class string) int64 {
					i := inventories[class].(object)
					return int64((i["total"].(float64) - i["reserved"].(float64)) * min(1, i["allocation_ratio"].(float64)))
				}
				if h.Capacity.VCPUs != real("VCPU") || h.Capacity.MemoryMB != real("MEMORY_MB") || h.Capacity.DiskGB != real("DISK_GB") {
					t.Errorf("%s has capacity %v, inventories %v", h.Name, h.Capacity, inventories)
				}
				if h.Zone == "" || !slices.Contains(h.Traits, "COMPUTE_NODE") || !slices.IsSorted(h.Traits) || h.Reservable || h.InstanceCount != len(h.Instances) {
					t.Errorf("%s: zone %q, traits %v, reservable %v, %d guests, %d instances", h.Name, h.Zone, h.Traits, h.Reservable, h.InstanceCount, len(h.Instances))
				}
			}
		})
	}
}

func TestAnInstanceThatMovesIsAlwaysOnOneHost(t *testing.T) {
	s := newScene(t, setting{})
	id := s.boot(nil)
	var from string
	s.await("it runs", func(hosts []inventory.Host) bool {
		names, i := where(hosts, id)
		from = strings.Join(names, "")
		return i.Status == "ACTIVE"
	})
	s.call(s.session, http.MethodPost, "/servers/"+id+"/action", object{"os-migrateLive": object{"host": nil, "block_migration": "auto"}})
	s.await("it has moved", func(hosts []inventory.Host) bool {
		names, _ := where(hosts, id)
		if len(names) != 1 {
			t.Fatalf("the source shows the instance on %v", names)
		}
		return names[0] != from
	})
}

func TestAnInstanceIsPreemptibleByItsProject(t *testing.T) {
	s := newScene(t, setting{})
	id := s.boot(nil)
	var project string
	s.await("it is shown", func(hosts []inventory.Host) bool {
		names, i := where(hosts, id)
		project = i.ProjectID
		return names != nil
	})
	s = newScene(t, setting{rule: inventory.PreemptibleRule{Projects: []string{project}}})
	if _, i := where(s.must(), id); !i.Preemptible {
		t.Errorf("got %+v", i)
	}
}

func TestAnAggregatesMetadataArePropertiesOfItsHosts(t *testing.T) {
	s := newScene(t, setting{})
	host := s.must()[0].Name
	made := s.call(s.session, http.MethodPost, "/os-aggregates", object{"aggregate": object{"name": s.prefix}})["aggregate"].(object)
	path := "/os-aggregates/" + number(made["id"])
	t.Cleanup(func() { s.call(s.session, http.MethodDelete, path, nil) })
	s.call(s.session, http.MethodPost, path+"/action", object{"add_host": object{"host": host}})
	t.Cleanup(func() {
		s.call(s.session, http.MethodPost, path+"/action", object{"remove_host": object{"host": host}})
	})
	s.call(s.session, http.MethodPost, path+"/action", object{"set_metadata": object{"metadata": object{s.prefix: "2.5", "vcpus": "3"}}})

	for _, h := range s.must() {
		value, has := h.Properties[s.prefix]
		if in := slices.Contains(h.Aggregates, s.prefix); in != (h.Name == host) || has != in {
			t.Errorf("%s is in %v and has %v", h.Name, h.Aggregates, h.Properties)
		}
		if has && !value.Equal(inventory.NumberValue(2.5)) {
			t.Errorf("%s has %v", h.Name, value.Any())
		}
	}
	s.must()
	if got := strings.Count(s.log.String(), "metadata vcpus of aggregate "+s.prefix); got != 1 {
		t.Errorf("the log reports the reserved name %d times:\n%s", got, s.log)
	}
	if _, err := inventory.NewSnapshot(s.must(), nil, nil); err != nil {
		t.Error(err)
	}
}

func TestInBetweenOnlyAFewCallsAreMade(t *testing.T) {
	s := newScene(t, setting{})
	hosts := int64(len(s.must()))
	first := s.Calls()
	s.clock.advance(10 * time.Second)
	s.must()
	between := s.Calls() - first
	t.Logf("%d hosts: %d calls at first, %d in between", hosts, first, between)
	// Two calls for each host; and the lists of versions, services, aggregates, servers,
	// hypervisors and providers. Some lists come in pages, and the last page is empty.
	if first > 2*hosts+10 {
		t.Errorf("%d calls at first for %d hosts", first, hosts)
	}
	// Four lists and one more of the services. Others use the lab at the same time, so that some hosts may need a look.
	if between > 5+1+8 {
		t.Errorf("%d calls between full readings", between)
	}
	before := s.Calls()
	s.clock.advance(time.Hour)
	s.must()
	if full := s.Calls() - before; full <= 5 {
		t.Errorf("%d calls for a full reading", full)
	}
}
