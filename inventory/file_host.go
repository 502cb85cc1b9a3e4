// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// The keys of a hosts file.
var (
	fileKeys = []string{"hosts"}
	hostKeys = []string{
		"name", "vcpus", "memory_mb", "disk_gb", "custom", "zone", "aggregates", "traits",
		"properties", "reservable", "used", "instance_count", "power",
	}
	usedKeys  = []string{"vcpus", "memory_mb", "disk_gb", "custom"}
	powerKeys = []string{"state", "flops_per_watt", "gflops", "watts_max", "boot_seconds"}
)

// hostsReader converts the document to hosts, and records the lines at which it found names and
// properties.
type hostsReader struct {
	*yamlReader
	names map[string]int          // line by host name
	kinds map[string]propertyKind // by property name
}

type propertyKind struct {
	kind Kind
	line int
}

// readHosts reads the content of a hosts file; path is for messages.
func readHosts(path string, raw []byte) ([]Host, error) {
	r := hostsReader{&yamlReader{path: path}, make(map[string]int), make(map[string]propertyKind)}
	var hosts []Host
	if root := r.document(raw); root != nil {
		file := r.section(root, "the file", fileKeys)
		file.require("hosts")
		for _, node := range file.list("hosts") {
			hosts = append(hosts, r.host(node)...)
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return hosts, nil
}

// host reads one entry, which stands for several hosts if its name has a range.
func (r *hostsReader) host(node ast.Node) []Host {
	problems := len(r.problems)
	entry := r.section(node, "a host", hostKeys)
	entry.require("name", "vcpus", "memory_mb")
	if len(r.problems) > problems {
		return nil
	}
	used := entry.section("used", usedKeys)
	h := Host{
		Capacity:      r.amounts(entry, 1),
		Used:          r.amounts(used, 0),
		Zone:          entry.text("zone"),
		Aggregates:    entry.texts("aggregates"),
		Traits:        entry.texts("traits"),
		Properties:    r.properties(entry),
		Reservable:    entry.truth("reservable", true),
		InstanceCount: int(entry.whole("instance_count", 0)),
	}
	r.power(entry.section("power", powerKeys), &h)
	names := r.hostNames(entry)
	if len(r.problems) > problems {
		return nil
	}
	if !h.Used.Fits(h.Capacity) {
		r.fail(used.node, "used is more than the host has: %v of %v", h.Used, h.Capacity)
	}
	hosts := make([]Host, len(names))
	for i, name := range names {
		hosts[i] = h
		hosts[i].Name = name
	}
	return hosts
}

// hostNames returns the names of the hosts of an entry; none after an error, which it notes.
func (r *hostsReader) hostNames(entry section) []string {
	node := entry.fields["name"]
	names, err := ExpandNames(entry.text("name"))
	if err != nil {
		r.fail(node, "%v", err)
		return nil
	}
	for _, name := range names {
		if name == "." || name == ".." {
			r.fail(node, "%q is not a host name: in the address of a request it is a folder", name)
			return nil
		}
		if line, taken := r.names[name]; taken {
			r.fail(node, "there is a host %s already, on line %d", name, line)
			return nil
		}
		r.names[name] = lineOf(node)
	}
	return names
}

// amounts reads a resource vector, which must have at least that many vCPUs and MB of memory.
func (r *hostsReader) amounts(s section, least int64) resource.Vector {
	v := resource.Vector{
		VCPUs:    s.whole("vcpus", least),
		MemoryMB: s.whole("memory_mb", least),
		DiskGB:   s.whole("disk_gb", 0),
	}
	custom := s.section("custom", nil)
	for _, class := range slices.Sorted(maps.Keys(custom.fields)) {
		if !resource.IsCustomClass(class) {
			r.fail(custom.fields[class], "%q is not a custom resource class: CUSTOM_ and then capitals, digits or _", class)
			continue
		}
		if v.Custom == nil {
			v.Custom = make(map[string]int64)
		}
		v.Custom[class] = custom.whole(class, 0)
	}
	return v
}

// properties returns the properties of an entry. It notes an error for one that has another type on
// another host.
func (r *hostsReader) properties(entry section) map[string]Value {
	properties := entry.section("properties", nil)
	if len(properties.fields) == 0 {
		return nil
	}
	values := make(map[string]Value, len(properties.fields))
	for _, name := range slices.Sorted(maps.Keys(properties.fields)) {
		node := properties.fields[name]
		if name == "" {
			r.fail(node, "a property has no name")
			continue
		}
		if builtInNamed(name) != nil {
			r.fail(node, "property %s is built in: Almanac fills it itself; choose another name", name)
			continue
		}
		value := properties.value(name)
		known, seen := r.kinds[name]
		switch {
		case value.kind == "":
		case !seen:
			r.kinds[name] = propertyKind{value.kind, lineOf(node)}
		case known.kind != value.kind:
			r.fail(node, "property %s is a %s here and a %s on line %d; a property has one type on all hosts",
				name, value.kind, known.kind, known.line)
		}
		values[name] = value
	}
	return values
}

// stateWords are the power states that messages to the operator list.
var stateWords = []string{"on", "off", "sleeping", "waking", "failed"}

// powerStates maps the spellings of a power state. true and false are among them because YAML 1.1
// reads the words on and off as these.
var powerStates = map[string]Power{
	"on": PowerOn, "true": PowerOn,
	"off": PowerSleeping, "false": PowerSleeping,
	"sleeping": PowerSleeping, "waking": PowerWaking, "failed": PowerFailed,
}

// power reads the section power of an entry into h.
func (r *hostsReader) power(power section, h *Host) {
	h.Power = PowerOn
	if node, given := power.fields["state"]; given {
		word := strings.ToLower(node.GetToken().Value)
		state, known := powerStates[word]
		if !known {
			r.fail(node, "%s; the states are %s", fault.Unknown("power state", word, stateWords), strings.Join(stateWords, ", "))
		}
		h.Power = state
	}
	h.BootSeconds = power.whole("boot_seconds", 0)
	h.FlopsPerWatt = power.number("flops_per_watt")
	gigaflops, watts := power.number("gflops"), power.number("watts_max")
	switch {
	case !power.has("gflops") && !power.has("watts_max"):
	case power.has("flops_per_watt"):
		r.fail(power.node, "power has flops_per_watt and its parts; set either it, or gflops and watts_max")
	case !power.has("gflops") || !power.has("watts_max"):
		r.fail(power.node, "power needs both gflops and watts_max to tell FLOPS per watt")
	case watts < 1:
		r.fail(power.fields["watts_max"], "power.watts_max must be at least 1")
	default:
		h.FlopsPerWatt = gigaflops * 1e9 / watts
	}
}
