// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// small returns a cloud of the hosts a and b.
func small(change func(c *cloud)) *cloud {
	c := &cloud{
		services: []nova.Service{{ID: "sa", Host: "a", Zone: "nova", Up: true}, {ID: "sb", Host: "b", Zone: "east", Up: true}},
		hypervisors: []nova.Hypervisor{
			{ID: "pb", Name: "b.example.org", Host: "b", Type: "QEMU"}, {ID: "pa", Name: "a.example.org", Host: "a", Type: "QEMU"},
		},
		providers: []placement.Provider{{ID: "pa", Root: "pa"}, {ID: "pb", Root: "pb"}},
		holdings: map[string]holding{
			"pa": {
				inventories: map[string]placement.Inventory{
					"VCPU": {Total: 16, Ratio: 4}, "MEMORY_MB": {Total: 8192, Reserved: 512, Ratio: 1}, "DISK_GB": {Total: 100, Ratio: 0.5},
				},
				used: map[string]int64{"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 0}, traits: []string{"COMPUTE_NODE", "CUSTOM_FAST"},
			},
			"pb": {
				inventories: map[string]placement.Inventory{"VCPU": {Total: 4, Ratio: 1}, "PCPU": {Total: 8, Ratio: 1}, "MEMORY_MB": {Total: 2048, Ratio: 1}, "CUSTOM_FPGA": {Total: 2, Ratio: 1}},
				used:        map[string]int64{"PCPU": 3},
			},
		},
		servers: map[string]nova.Server{},
	}
	if change != nil {
		change(c)
	}
	return c
}

func run(c *cloud, id, host string, more func(i *inventory.Instance)) {
	i := inventory.Instance{ID: id, Host: host, Status: "ACTIVE", ProjectID: "p"}
	if more != nil {
		more(&i)
	}
	c.servers[id] = nova.Server{Instance: i}
}

func host(t *testing.T, hosts []inventory.Host, name string) inventory.Host {
	t.Helper()
	i := slices.IndexFunc(hosts, func(h inventory.Host) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("there is no host %s", name)
	}
	return hosts[i]
}

func TestCapacityIsWithoutOvercommitmentAndWithoutWhatIsReserved(t *testing.T) {
	hosts, _ := assemble(small(nil), inventory.PreemptibleRule{})
	for name, want := range map[string][2]resource.Vector{
		"a": {{VCPUs: 16, MemoryMB: 7680, DiskGB: 50}, {VCPUs: 2, MemoryMB: 1024}},
		"b": {{VCPUs: 12, MemoryMB: 2048, Custom: map[string]int64{"CUSTOM_FPGA": 2}}, {VCPUs: 3}},
	} {
		h := host(t, hosts, name)
		if diff := cmp.Diff(want, [2]resource.Vector{h.Capacity, h.Used}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAHostKnowsItsHypervisor(t *testing.T) {
	hosts, _ := assemble(small(func(c *cloud) { c.hypervisors[0].Version = 9002000 }), inventory.PreemptibleRule{})
	if got, want := host(t, hosts, "b").Hypervisor, (inventory.Hypervisor{Name: "b.example.org", Type: "QEMU", Version: 9002000}); got != want {
		t.Errorf("the hypervisor of b is %+v, want %+v", got, want)
	}
}

func TestAHostHasWhatTheProvidersBelowItHave(t *testing.T) {
	hosts, _ := assemble(small(func(c *cloud) {
		c.providers = append(c.providers, placement.Provider{ID: "gpu", Root: "pa", Parent: "pa"})
		c.holdings["gpu"] = holding{
			inventories: map[string]placement.Inventory{"CUSTOM_GPU": {Total: 4, Ratio: 1}, "VGPU": {Total: 9, Ratio: 1}},
			used:        map[string]int64{"CUSTOM_GPU": 1}, traits: []string{"CUSTOM_A100", "COMPUTE_NODE"},
		}
	}), inventory.PreemptibleRule{})
	a := host(t, hosts, "a")
	if a.Capacity.Custom["CUSTOM_GPU"] != 4 || a.Used.Custom["CUSTOM_GPU"] != 1 || len(a.Capacity.Custom) != 1 {
		t.Errorf("capacity %v, used %v", a.Capacity, a.Used)
	}
	if want := []string{"COMPUTE_NODE", "CUSTOM_A100", "CUSTOM_FAST"}; !slices.Equal(a.Traits, want) {
		t.Errorf("traits %v", a.Traits)
	}
}

func TestInstancesAreOnTheirHostsById(t *testing.T) {
	hosts, _ := assemble(small(func(c *cloud) {
		run(c, "2", "a", func(i *inventory.Instance) { i.Flavor.ExtraSpecs = map[string]string{"almanac:preemptible": "yes"} })
		run(c, "1", "a", func(i *inventory.Instance) { i.Status = "SHUTOFF" })
		run(c, "3", "", nil)
		run(c, "4", "elsewhere", nil)
	}), inventory.PreemptibleRule{ExtraSpec: "almanac:preemptible"})
	a := host(t, hosts, "a")
	if len(a.Instances) != 2 || a.Instances[0].ID != "1" || a.Instances[1].ID != "2" || a.InstanceCount != 2 {
		t.Errorf("%d guests, instances %+v", a.InstanceCount, a.Instances)
	}
	if a.Instances[0].Preemptible || !a.Instances[1].Preemptible {
		t.Errorf("preemptible: %v and %v", a.Instances[0].Preemptible, a.Instances[1].Preemptible)
	}
	if b := host(t, hosts, "b"); b.InstanceCount != 0 || b.Instances != nil {
		t.Errorf("b has %v", b.Instances)
	}
}

func TestTroubleSaysWhyAHostTakesNoInstances(t *testing.T) {
	for want, change := range map[string]func(c *cloud){
		"":                                nil,
		"its nova-compute is down":        func(c *cloud) { c.services[0].Up = false },
		"its nova-compute is forced down": func(c *cloud) { c.services[0].Up, c.services[0].ForcedDown = false, true },
		"it is disabled":                  func(c *cloud) { c.services[0].Disabled = true },
		"it is disabled: kernel update":   func(c *cloud) { c.services[0].Disabled, c.services[0].Reason = true, "kernel update" },
		"it has no nova-compute":          func(c *cloud) { c.services = c.services[1:] },
		"Placement does not know it":      func(c *cloud) { c.providers = c.providers[1:] },
		"Placement has no inventory of it": func(c *cloud) {
			c.holdings["pa"].inventories["MEMORY_MB"] = placement.Inventory{Total: 8192, Reserved: 8192, Ratio: 1}
		},
	} {
		hosts, _ := assemble(small(change), inventory.PreemptibleRule{})
		if got := host(t, hosts, "a").Problem; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := host(t, hosts, "b").Problem; got != "" {
			t.Errorf("b, which has no trouble, reports %q", got)
		}
	}
}

func TestWhatIsNoSingleHostIsLeftOutAndSaidSo(t *testing.T) {
	hosts, notes := assemble(small(func(c *cloud) {
		c.hypervisors = append(c.hypervisors,
			nova.Hypervisor{ID: "n1", Name: "node-1", Host: "bare", Type: "ironic"},
			nova.Hypervisor{ID: "v1", Name: "vc-1", Host: "vcenter", Type: "VMware"}, nova.Hypervisor{ID: "v2", Name: "vc-2", Host: "vcenter", Type: "VMware"})
	}), inventory.PreemptibleRule{})
	if len(hosts) != 2 || hosts[0].Name != "a" || hosts[1].Name != "b" {
		t.Errorf("got %+v", hosts)
	}
	want := []string{"host bare is left out: its hypervisors are nodes of Ironic", "host vcenter is left out: it has 2 hypervisors"}
	if !slices.Equal(notes, want) {
		t.Errorf("notes %v", notes)
	}
}

func TestAHostWithoutAnyInventoryHasNoRoom(t *testing.T) {
	hosts, _ := assemble(small(func(c *cloud) { c.holdings["pa"] = holding{} }), inventory.PreemptibleRule{})
	if got := host(t, hosts, "a").Problem; got != "Placement has no inventory of it" {
		t.Errorf("got %q", got)
	}
}

func TestWhoseHostItIsIsNotAmongItsFacts(t *testing.T) {
	own := fence.OwnName("6f1c")
	hosts, notes := assemble(small(func(c *cloud) {
		c.aggregates = []inventory.Aggregate{
			{Name: fence.Aggregate, Hosts: []string{"a"}, Metadata: map[string]string{"trait:" + fence.Reserved: "required"}},
			{Name: "6f1c", Hosts: []string{"a"}, Metadata: map[string]string{fence.MirrorMark: "6f1c", fence.OwnerKey: "p", "note": "for p"}},
			{Name: fence.AggregatePrefix + "6f1c", Hosts: []string{"a"}, Metadata: map[string]string{fence.ProjectMark: "p", "note": "for p"}},
			{Name: "ssd", Hosts: []string{"a"}},
		}
		h := c.holdings["pa"]
		h.traits = append(h.traits, fence.Reserved, fence.Shared, own)
		h.inventories[own], h.used[own] = placement.Inventory{Total: 4, Ratio: 1}, 1
		c.holdings["pa"] = h
	}), inventory.PreemptibleRule{})
	a := host(t, hosts, "a")
	if !slices.Equal(a.Aggregates, []string{"ssd"}) || !slices.Equal(a.Traits, []string{"COMPUTE_NODE", "CUSTOM_FAST"}) || len(a.Properties) != 0 {
		t.Errorf("host a is in %v, with traits %v and properties %v", a.Aggregates, a.Traits, a.Properties)
	}
	if a.Capacity.Custom != nil || a.Used.Custom != nil || len(notes) != 0 {
		t.Errorf("host a has %v and uses %v; notes %v", a.Capacity, a.Used, notes)
	}
}

func TestMetadataBecomesPropertiesOfOneKind(t *testing.T) {
	number, word := inventory.NumberValue, inventory.StringValue
	for name, tc := range map[string]struct {
		aggregates []inventory.Aggregate
		a, b       map[string]inventory.Value
		aggregated []string // aggregates of a
		note       string
	}{
		"a number on all hosts": {
			aggregates: []inventory.Aggregate{
				{Name: "x", Hosts: []string{"a"}, Metadata: map[string]string{"watts": "90.5"}},
				{Name: "y", Hosts: []string{"b", "gone"}, Metadata: map[string]string{"watts": "1e2"}},
			},
			a: map[string]inventory.Value{"watts": number(90.5)}, b: map[string]inventory.Value{"watts": number(100)}, aggregated: []string{"x"},
		},
		"a word on one of them": {
			aggregates: []inventory.Aggregate{
				{Name: "x", Hosts: []string{"a"}, Metadata: map[string]string{"rack": "7"}},
				{Name: "y", Hosts: []string{"b"}, Metadata: map[string]string{"rack": "7b"}},
			},
			a: map[string]inventory.Value{"rack": word("7")}, b: map[string]inventory.Value{"rack": word("7b")}, aggregated: []string{"x"},
		},
		"what only looks like a number": {
			aggregates: []inventory.Aggregate{{Name: "x", Hosts: []string{"a"}, Metadata: map[string]string{"p": "NaN", "q": "inf", "r": ""}}},
			a:          map[string]inventory.Value{"p": word("NaN"), "q": word("inf"), "r": word("")}, aggregated: []string{"x"},
		},
		"what is Nova's or ours": {
			aggregates: []inventory.Aggregate{{Name: "x", Hosts: []string{"a"}, Metadata: map[string]string{
				"availability_zone": "east", "filter_tenant_id": "p", "filter_tenant_id2": "q", "trait:CUSTOM_X": "required", "almanac:reservation": "r",
			}}},
			aggregated: []string{"x"},
		},
		"the name of a built-in property": {
			aggregates: []inventory.Aggregate{{Name: "x", Hosts: []string{"a"}, Metadata: map[string]string{"memory_mb": "5", "gpu": "yes"}}},
			a:          map[string]inventory.Value{"gpu": word("yes")}, aggregated: []string{"x"},
			note: "metadata memory_mb of aggregate x is left out: a property of that name is built in",
		},
		"two aggregates that differ": {
			aggregates: []inventory.Aggregate{
				{Name: "z", Hosts: []string{"a"}, Metadata: map[string]string{"gpu": "h100"}},
				{Name: "x", Hosts: []string{"a"}, Metadata: map[string]string{"gpu": "a100"}},
			},
			a: map[string]inventory.Value{"gpu": word("a100")}, aggregated: []string{"x", "z"},
			note: "host a has different values of gpu: that of aggregate z is ignored, since an aggregate before it by name has one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, notes := assemble(small(func(c *cloud) { c.aggregates = tc.aggregates }), inventory.PreemptibleRule{})
			a, b := host(t, hosts, "a"), host(t, hosts, "b")
			if !equal(a.Properties, tc.a) || !equal(b.Properties, tc.b) || !slices.Equal(a.Aggregates, tc.aggregated) {
				t.Errorf("a has %v in %v, b has %v", a.Properties, a.Aggregates, b.Properties)
			}
			if got := strings.Join(notes, "\n"); got != tc.note {
				t.Errorf("notes %q", got)
			}
			if _, err := inventory.NewSnapshot(hosts, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func equal(a, b map[string]inventory.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for name, value := range a {
		if other, ok := b[name]; !ok || !value.Equal(other) || value.Kind() != other.Kind() {
			return false
		}
	}
	return true
}
