// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// driven lists the hypervisor types of the drawn hosts: what Nova's drivers report that each
// supports, and the traits by which Almanac recognizes it.
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

// world holds hosts and requests in the form of Nova's filters and in Almanac's.
type world struct {
	Hosts      []map[string]any `json:"hosts"`
	Aggregates []map[string]any `json:"aggregates"`
	Options    map[string]any   `json:"options"`
	Filters    []string         `json:"filters"`
	Requests   []map[string]any `json:"requests"`
	Chains     []chain          `json:"chains"`

	options    filters.Options
	rows       []inventory.HostState
	aggregates []inventory.Aggregate
	requests   []placing.Request
}

// chain is a request for several instances and the filters that judge it.
type chain struct {
	Request   int      `json:"request"`
	Filters   []string `json:"filters"`
	Instances []string `json:"instances"`
}

// newWorld draws a world with that many requests and one chain for every four of them.
func newWorld(t *rapid.T, enabled []string, requests int) *world {
	w := &world{Filters: enabled, Chains: []chain{}}
	for n := range 8 {
		w.addHost(t, n)
	}
	for n := range 6 {
		w.addAggregate(t, n)
	}
	w.setOptions(t)
	for n := range requests {
		w.addRequest(t)
		if n%4 == 0 {
			some := rapid.SliceOfNDistinct(rapid.SampledFrom(enabled), 1, 5, rapid.ID).Draw(t, "filters of the chain")
			w.Chains = append(w.Chains, chain{n, some, []string{"first", "second", "third"}})
		}
	}
	return w
}

func (w *world) setOptions(t *rapid.T) {
	o := filters.Options{
		IsolatedImages: someOf(t, "isolated images", "image1", "image2"), IsolatedHosts: someOf(t, "isolated hosts", "h0", "h1", "h2", "H3", "h99"),
		RestrictIsolatedHostsToIsolatedImages: rapid.Bool().Draw(t, "restrict"),
		MaxIOOpsPerHost:                       rapid.Int64Range(0, 4).Draw(t, "most operations"), MaxInstancesPerHost: rapid.Int64Range(1, 4).Draw(t, "most instances"),
		AggregateImagePropertiesIsolationNamespace: rapid.SampledFrom([]string{"", "", "os", "hw"}).Draw(t, "namespace"),
		AggregateImagePropertiesIsolationSeparator: rapid.SampledFrom([]string{"_", "."}).Draw(t, "separator"),
	}
	w.options = o
	w.Options = map[string]any{
		"isolated_images": o.IsolatedImages, "isolated_hosts": o.IsolatedHosts,
		"restrict_isolated_hosts_to_isolated_images":     o.RestrictIsolatedHostsToIsolatedImages,
		"max_io_ops_per_host":                            o.MaxIOOpsPerHost,
		"max_instances_per_host":                         o.MaxInstancesPerHost,
		"aggregate_image_properties_isolation_namespace": o.AggregateImagePropertiesIsolationNamespace,
		"aggregate_image_properties_isolation_separator": o.AggregateImagePropertiesIsolationSeparator,
	}
}

// someOf draws some of the values; it never returns nil.
func someOf(t *rapid.T, label string, values ...string) []string {
	return append([]string{}, rapid.SliceOfNDistinct(rapid.SampledFrom(values), 0, 3, rapid.ID).Draw(t, label)...)
}

func (w *world) addHost(t *rapid.T, n int) {
	d := rapid.SampledFrom(driven).Draw(t, "driver")
	number := func(label string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, label) }
	vcpus, ram, disk, missing := number("vcpus", 8), number("ram", 4)*1024, number("disk", 100), number("missing", 10)
	h := inventory.HostState{
		Name: fmt.Sprintf("h%d", n), Node: fmt.Sprintf("n%d", n), Provider: fmt.Sprintf("u%d", n), Cell: "cell1", Up: true, Enabled: number("enabled", 4) > 0, Zone: "nova",
		IP:             rapid.SampledFrom([]string{"10.0.0.7", "10.0.1.7", "10.1.0.9", "fe80::7", "fe80:0:0:1::7"}).Draw(t, "address"),
		HypervisorType: d.kind, HypervisorVersion: rapid.SampledFrom([]int64{1000, 1002003, 7002000, 2_000_000}).Draw(t, "version"),
		Traits: d.traits, IOOps: number("io", 3), FailedBuilds: number("failed", 2), DiskMissing: missing,
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
			"uuid": h.Provider, "host_ip": h.IP, "hypervisor_type": h.HypervisorType, "hypervisor_version": h.HypervisorVersion, "supported_instances": d.supported,
			"num_io_ops": h.IOOps, "failed_builds": h.FailedBuilds, "num_instances": len(ids), "vcpus_total": 8, "vcpus_used": vcpus,
			"total_usable_ram_mb": 8192, "free_ram_mb": 8192 - 512 - ram, "total_usable_disk_gb": 100, "free_disk_mb": (100 - disk - missing) * 1024,
		},
	})
}

func (w *world) addAggregate(t *rapid.T, n int) {
	metadata := map[string]string{}
	values := map[string][]string{
		"filter_tenant_id":       {"p1", "p1, p2", "p2 ,p3", "", "p9"},
		"max_io_ops_per_host":    {"0", "2", " 3 ", "-1", "x", "1_0", "99999999999999999999", "2.5", ""},
		"max_instances_per_host": {"1", "3", "+2", "many", "0"},
		"instance_type":          {"m1.small", "m1.tiny, m1.small", "m1.large ,x", ""},
		"os_distro":              {"debian", "debian,ubuntu", "", "0"},
		"hw_cpu_cores":           {"2", "4, 2", "0"},
		"hw_boot_menu":           {"True", "False", "true"},
		"ssd":                    {"true", "false, true", "", "4", "x,5"},
		"size":                   {"4", "8", "2,9", "big", "16,big"},
		"other":                  {"a", "b"},
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if rapid.IntRange(0, 3).Draw(t, "has "+key) == 0 {
			metadata[key] = rapid.SampledFrom(values[key]).Draw(t, key)
		}
	}
	zone := rapid.SampledFrom([]string{"", "az1", "az2"}).Draw(t, "zone")
	if zone != "" {
		metadata["availability_zone"] = zone
	}
	a := inventory.Aggregate{UUID: fmt.Sprint(n), Zone: zone, Metadata: metadata, Hosts: []string{}}
	for i := range w.rows {
		h := &w.rows[i]
		free := h.Zone == "nova" || h.Zone == zone || zone == "" // Nova allows one zone per host
		if free && rapid.IntRange(0, 2).Draw(t, "is in it") == 0 {
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
		"ssd", "size", "aggregate_instance_extra_specs:ssd", "aggregate_instance_extra_specs:size", "aggregate_instance_extra_specs:a:b",
		"capabilities:free_disk_mb", "aggregate_instance_extra_specs:other",
	})
	specValues = rapid.SampledFrom([]string{
		">= 2", "== 8", "<= 4000", "QEMU", "<or> QEMU <or> fake", "<in> EM", "s== n1", "8", ">= x", "!= 1000", "<or>", "", "true", "<or> a <or> true", "s!= false", "= 4",
	})
)

func (w *world) addRequest(t *rapid.T) {
	one := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	r := placing.Request{
		Instances: []string{one("instance", "i0", "i1", "new")}, ProjectID: one("project", "p1", "p2", "p3"), Zone: one("zone", "", "nova", "az1", "az3"),
		FlavorName: one("flavor", "m1.tiny", "m1.small", "m1.large", "x"), ImageID: one("image", "image1", "image2", "image3", ""),
		Resources:  map[string]int64{"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1},
		ExtraSpecs: rapid.MapOfN(specKeys, specValues, 0, 2).Draw(t, "extra specs"), Hints: map[string][]string{},
	}
	var image map[string]any
	r.ImageProperties, image = drawImage(t)
	w.addHints(t, &r)
	r.Rebuild = slices.Equal(r.Hints["_nova_check_type"], []string{"rebuild"})
	var group any
	if policy := one("policy", "", "affinity", "anti-affinity", "anti-affinity", "soft-affinity"); policy != "" {
		r.Group = &placing.Group{
			ID: "g", Policy: policy, Hosts: someOf(t, "hosts", "h0", "h1", "h2", "h3", "h4", "h5"),
			Members: append(someOf(t, "members", "i0", "i1", "i2", "i3", "i4"), "first", "second", "third"), MaxPerHost: rapid.IntRange(0, 3).Draw(t, "most"),
		}
		group = map[string]any{"id": "00000000-0000-0000-0000-000000000001", "policy": policy, "hosts": r.Group.Hosts, "members": r.Group.Members, "most": r.Group.MaxPerHost}
	}
	w.requests = append(w.requests, r)
	w.Requests = append(w.Requests, map[string]any{
		"extra_specs": r.ExtraSpecs, "flavor": r.FlavorName, "image": image, "image_id": r.ImageID, "group": group, "instance": r.Instances[0],
		"zone": r.Zone, "project": r.ProjectID, "hints": r.Hints,
	})
}

// drawImage draws the properties of an image, as texts and in Nova's form.
func drawImage(t *rapid.T) (texts map[string]string, image map[string]any) {
	values := map[string][]any{
		"hw_architecture": {"x86_64", "AMD64", "aarch64", "i586", "z80"}, "img_hv_type": {"qemu", "FAKE", "vmware", "lxc", "xen", "kvm"},
		"hw_vm_mode":               {"hvm", "hv", "exe", "xen"},
		"img_hv_requested_version": {">=1.0", ">=1.2, !=1.2.3", "<7.2a1", "> 1.2.3,<=7.2", "==2.0", "7", "~1.0", ">=1.0,"},
		"os_distro":                {"debian", "ubuntu", "arch", "", "0"}, "hw_cpu_cores": {0, 2, 4, 8}, "hw_boot_menu": {true, false},
	}
	image = map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if rapid.IntRange(0, 2).Draw(t, "has "+key) == 0 {
			image[key] = rapid.SampledFrom(values[key]).Draw(t, key)
		}
	}
	texts = map[string]string{}
	for key, value := range image {
		switch v := value.(type) {
		case string:
			texts[key] = v
		case int:
			texts[key] = strconv.Itoa(v)
		case bool:
			texts[key] = map[bool]string{true: "True", false: "False"}[v]
		}
	}
	return texts, image
}

func (w *world) addHints(t *rapid.T, r *placing.Request) {
	add := func(name string, one bool, values ...string) {
		switch rapid.IntRange(0, 9).Draw(t, "hint "+name) {
		case 0, 1, 2, 3:
			r.Hints[name] = []string{rapid.SampledFrom(values).Draw(t, name)}
		case 4:
			if !one {
				r.Hints[name] = someOf(t, name, values...)
			}
		}
	}
	add("same_host", false, "i0", "i1", "i2", "i3", "nobody", "")
	add("different_host", false, "i0", "i1", "i2", "i3", "nobody", "")
	add("build_near_host_ip", false, "10.0.0.5", "10.0", "10", "fe80::1", "::ffff:10.0.0.7", "", "x", "010.0.0.1", " 10.1", "10.0.0.256", "10.0.0.1.2", "fe80::1%1")
	add("cidr", false, "/24", "/16", "24", "/33", "/64", "/255.255.0.0", "/0.0.255.255", "/0", "", "/ffff::", "/ 1_6", "/255.0.255.0", "/24/1")
	if rapid.IntRange(0, 3).Draw(t, "has a query") > 0 {
		r.Hints["query"] = []string{drawQuery(t)}
	} else {
		add("query", false, "", "[]", "{}", "0", "5", "true", "null", `{"a":1}`, `"abc"`, `"=aa"`, `"=ab"`, `"<"`, "[", "nope", "[] 1", `["=", 1`, `""`, " [ ] ")
	}
	switch rapid.IntRange(0, 9).Draw(t, "check") {
	case 0:
		r.Hints["_nova_check_type"] = []string{"rebuild"}
	case 1:
		r.Hints["_nova_check_type"] = []string{"resize"}
	}
}

// drawQuery draws a query. Nova can answer most of them.
func drawQuery(t *rapid.T) string { return drawTerm(t, 0) }

func drawTerm(t *rapid.T, depth int) string {
	if depth > 0 && rapid.IntRange(0, 30).Draw(t, "empty") == 0 {
		return "[]"
	}
	compare := []string{"=", "<", ">", "in", "<=", ">="}
	operator := rapid.SampledFrom(append(compare, "not", "or", "and")).Draw(t, "operator")
	terms := []string{strconv.Quote(operator)}
	if rapid.IntRange(0, 60).Draw(t, "odd operator") == 0 {
		terms[0] = rapid.SampledFrom([]string{`"nope"`, "1", "null", `["="]`, `"AND"`}).Draw(t, "operator")
	}
	plain := slices.Contains(compare, operator) && rapid.IntRange(0, 3).Draw(t, "plain") > 0
	for n := range rapid.IntRange(0, 3).Draw(t, "arguments") {
		switch {
		case plain && n == 0:
			terms = append(terms, rapid.SampledFrom(told).Draw(t, "attribute"))
		case plain:
			terms = append(terms, rapid.SampledFrom(numbers).Draw(t, "number"))
		case depth < 3 && rapid.IntRange(0, 2).Draw(t, "deeper") > 0:
			terms = append(terms, drawTerm(t, depth+1))
		default:
			terms = append(terms, rapid.SampledFrom(atoms).Draw(t, "argument"))
		}
	}
	return "[" + strings.Join(terms, ", ") + "]"
}

var (
	told = strings.Fields(`"$free_ram_mb" "$free_disk_mb" "$vcpus_used" "$num_instances" "$num_io_ops" "$hypervisor_version" "$vcpus_total" "$failed_builds"`)
	// numbers holds numbers and texts in the spelling of a query.
	numbers = []string{
		"0", "1", "2", "3", "8", "1024", "4096", "51200", "7002000", "2.5", "1e3", "-0.0", "1.0", "true", "false", "null", `"$vcpus_used"`, `"$missing"`,
		"123456789012345678901234567890", "-123456789012345678901234567890", "1e400", "9007199254740993", "9007199254740992.0",
	}
	atoms = append(slices.Clip(numbers), `"QEMU"`, `"$hypervisor_type"`, `"$host"`, `"h1"`, `"$nodename"`, `"$host_ip"`, `"n1"`, `""`, `"$"`, `"a"`, `{}`, `{"a": [1, null]}`,
		`{"a": [1.0, null]}`, `{"a": 1}`, `"$stats.io_workload"`, `"$hypervisor_type.x"`, `"$io_workload"`, `"$missing.a"`, `"$uuid"`, `"\u00e9"`, `"é"`)
)
