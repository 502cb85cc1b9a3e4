package filters_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// driven are the types of hypervisor of the hosts below with what Nova's drivers say
// that these run, and the traits by which it is known here.
var driven = []struct {
	kind      string
	supported [][3]string
	traits    []string
}{
	{"QEMU", [][3]string{{"x86_64", "qemu", "hvm"}, {"x86_64", "kvm", "hvm"}, {"i686", "qemu", "hvm"}}, []string{"HW_CPU_X86_AVX2", "HW_ARCH_I686"}},
	{"QEMU", [][3]string{{"aarch64", "qemu", "hvm"}}, []string{"HW_ARCH_AARCH64"}},
	{"fake", [][3]string{{"x86_64", "fake", "hvm"}}, nil},
	{"VMware vCenter Server", [][3]string{{"i686", "vmware", "hvm"}, {"x86_64", "vmware", "hvm"}}, nil},
	{"LXC", [][3]string{{"x86_64", "lxc", "exe"}}, []string{"HW_ARCH_X86_64"}},
}

// world is hosts and requests for them, as Nova's filters and these read them.
type world struct {
	Hosts      []map[string]any `json:"hosts"`
	Aggregates []map[string]any `json:"aggregates"`
	Requests   []map[string]any `json:"requests"`

	rows       []inventory.HostState
	aggregates []inventory.Aggregate
	requests   []placing.Request
}

func (w *world) addHost(t *rapid.T, n int) {
	d := rapid.SampledFrom(driven).Draw(t, "driver")
	number := func(label string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, label) }
	vcpus, ram, disk := number("vcpus", 8), number("ram", 4)*1024, number("disk", 100)
	h := inventory.HostState{
		Name: fmt.Sprintf("h%d", n), Node: fmt.Sprintf("n%d", n), Provider: fmt.Sprintf("u%d", n), Cell: "cell1", Up: true, Enabled: true, Zone: "nova",
		HypervisorType: d.kind, HypervisorVersion: rapid.SampledFrom([]int64{1000, 1002003, 7002000, 2_000_000}).Draw(t, "version"),
		Traits: d.traits, IOOps: number("io", 3), FailedBuilds: number("failed", 2),
		Stocks: map[string]inventory.Stock{
			"VCPU": {Total: 8, Ratio: 4, Used: vcpus}, "MEMORY_MB": {Total: 8192, Reserved: 512, Ratio: 1, Used: ram}, "DISK_GB": {Total: 100, Ratio: 1, Used: disk},
		},
	}
	ids := []string{}
	for id := range 6 {
		if rapid.IntRange(0, 3).Draw(t, "is on it") == 0 {
			ids = append(ids, fmt.Sprintf("i%d", id))
			h.Instances = append(h.Instances, inventory.Instance{ID: ids[len(ids)-1]})
		}
	}
	w.rows = append(w.rows, h)
	w.Hosts = append(w.Hosts, map[string]any{
		"name": h.Name, "node": h.Node, "cell": h.Cell, "instances": ids, "attributes": map[string]any{
			"uuid": h.Provider, "hypervisor_type": h.HypervisorType, "hypervisor_version": h.HypervisorVersion, "supported_instances": d.supported,
			"num_io_ops": h.IOOps, "failed_builds": h.FailedBuilds, "num_instances": len(ids), "vcpus_total": 8, "vcpus_used": vcpus,
			"total_usable_ram_mb": 8192, "free_ram_mb": 8192 - 512 - ram, "total_usable_disk_gb": 100,
		},
	})
}

func (w *world) addAggregate(t *rapid.T, n int) {
	metadata := rapid.MapOfN(
		rapid.SampledFrom([]string{"filter_tenant_id", "other"}), rapid.SampledFrom([]string{"p1", "p1, p2", "p2 ,p3", "", "p9"}), 0, 2).Draw(t, "metadata")
	zone := rapid.SampledFrom([]string{"", "az1", "az2"}).Draw(t, "zone")
	if zone != "" {
		metadata["availability_zone"] = zone
	}
	a := inventory.Aggregate{UUID: fmt.Sprint(n), Zone: zone, Metadata: metadata, Hosts: []string{}}
	for i := range w.rows {
		h := &w.rows[i]
		free := h.Zone == "nova" || h.Zone == zone || zone == "" // Nova lets a host be in one zone only
		if free && rapid.IntRange(0, 3).Draw(t, "is in it") == 0 {
			a.Hosts = append(a.Hosts, h.Name)
			if zone != "" {
				h.Zone = zone
			}
		}
	}
	w.aggregates = append(w.aggregates, a)
	w.Aggregates = append(w.Aggregates, map[string]any{"metadata": metadata, "hosts": a.Hosts})
}

var (
	specKeys = rapid.SampledFrom([]string{
		"vcpus_total", "capabilities:vcpus_used", "free_ram_mb", "capabilities:hypervisor_type", "hypervisor_version", "capabilities:io_workload",
		"num_instances", "capabilities:host:x", "hw:cpu_policy", "quota", "trait:X", "capabilities", "nodename", "uuid", "total_usable_ram_mb",
	})
	specValues = rapid.SampledFrom([]string{">= 2", "== 8", "<= 4000", "QEMU", "<or> QEMU <or> fake", "<in> EM", "s== n1", "8", ">= x", "!= 1000", "<or>", ""})
)

func (w *world) addRequest(t *rapid.T) {
	maybe := func(m map[string]string, key string, values ...string) {
		if value := rapid.SampledFrom(append(values, "-", "-")).Draw(t, key); value != "-" {
			m[key] = value
		}
	}
	r := placing.Request{
		Instances: []string{rapid.SampledFrom([]string{"i0", "i1", "new"}).Draw(t, "instance")}, ProjectID: rapid.SampledFrom([]string{"p1", "p2", "p3"}).Draw(t, "project"),
		Zone: rapid.SampledFrom([]string{"", "nova", "az1", "az3"}).Draw(t, "zone"), ExtraSpecs: map[string]string{}, ImageProperties: map[string]string{},
	}
	maps.Copy(r.ExtraSpecs, rapid.MapOfN(specKeys, specValues, 0, 2).Draw(t, "extra specs"))
	maybe(r.ImageProperties, "hw_architecture", "x86_64", "AMD64", "aarch64", "i586", "z80")
	maybe(r.ImageProperties, "img_hv_type", "qemu", "FAKE", "vmware", "lxc", "xen", "kvm")
	maybe(r.ImageProperties, "hw_vm_mode", "hvm", "hv", "exe", "xen")
	maybe(r.ImageProperties, "img_hv_requested_version", ">=1.0", ">=1.2, !=1.2.3", "<7.2a1", "> 1.2.3,<=7.2", "==2.0", "7", "~1.0", ">=1.0,")
	var group any
	if policy := rapid.SampledFrom([]string{"", "affinity", "anti-affinity", "soft-affinity"}).Draw(t, "policy"); policy != "" {
		names := func(prefix string) []string {
			return rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, 5), func(n int) string { return fmt.Sprint(prefix, n) }), 0, 4, rapid.ID).Draw(t, prefix)
		}
		r.Group = &placing.Group{ID: "g", Policy: policy, Hosts: names("h"), Members: names("i"), MaxPerHost: rapid.IntRange(0, 3).Draw(t, "most")}
		group = map[string]any{"id": "00000000-0000-0000-0000-000000000001", "policy": policy, "hosts": r.Group.Hosts, "members": r.Group.Members, "most": r.Group.MaxPerHost}
	}
	w.requests = append(w.requests, r)
	w.Requests = append(w.Requests, map[string]any{
		"extra_specs": r.ExtraSpecs, "image": r.ImageProperties, "group": group, "instance": r.Instances[0], "zone": r.Zone, "project": r.ProjectID,
	})
}

// TestFiltersAnswerAsNovas asks Nova's own filters the same. Where these let a host
// pass Nova does, where Nova fails the request these refuse it, and they refuse what
// Nova lets pass only where they say that they cannot tell.
func TestFiltersAnswerAsNovas(t *testing.T) {
	w := rapid.Custom(func(t *rapid.T) *world {
		w := &world{}
		for n := range 30 {
			w.addHost(t, n)
		}
		for n := range 6 {
			w.addAggregate(t, n)
		}
		for range 1500 {
			w.addRequest(t)
		}
		return w
	}).Example(1)
	var answers []map[string][]string
	nova(t, w, &answers)
	s := states(t, w.rows, w.aggregates...)
	place := map[string]int{}
	for n := range w.rows {
		place[w.rows[n].Name] = n // as Nova has them
	}
	enabled := []string{
		"ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter", "AvailabilityZoneFilter", "AggregateMultiTenancyIsolation",
	}
	list, err := filters.New(enabled, filters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list[len(list)-len(enabled):] {
		count := map[string]int{}
		for n, r := range w.requests {
			names, why := left(t, f, s, r, 0)
			beyond := filters.Beyond([]filters.Filter{f}, s, &r)
			for i := range s.Len() {
				name := s.Host(i).Name
				_, refused := why[name]
				want := answers[n][f.Name()][place[name]]
				unsure := strings.Contains(why[name], "does not tell") || strings.Contains(why[name], "not known")
				switch {
				case unsure && beyond == "":
					t.Fatalf("%s is refused since %q, and nothing is said to be beyond: %+v", name, why[name], r)
				case unsure:
					count["unsure"]++
				case refused == (want == "yes"):
					t.Fatalf("%s leaves %q of %s: %q; Nova says %s: %+v", f.Name(), names, name, why[name], want, r)
				default:
					count[want]++
				}
			}
		}
		t.Logf("%s: %v", f.Name(), count)
		if count["yes"] < 1000 || count["no"] < 1000 {
			t.Errorf("%s was hardly asked: %v", f.Name(), count)
		}
	}
}
