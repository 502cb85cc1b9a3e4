// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ComputeCapabilities refuses hosts that do not meet the flavor's extra specs: those with a key
// capabilities:X, and those whose key is an attribute of Nova's host state
// (nova/scheduler/filters/compute_capabilities_filter.py). Keys in other namespaces, and other keys
// without a namespace, do not concern hosts.
//
// Nova's API returns only some of the attributes, and none of the statistics that drivers such as
// Ironic's add: a host is refused if an extra spec requires something unknown.
type ComputeCapabilities struct{ oncePerRequest }

func (ComputeCapabilities) Name() string { return "ComputeCapabilitiesFilter" }

func (ComputeCapabilities) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) {
		return nil
	}
	list := capabilities(s, r)
	if list == nil {
		return nil
	}
	return &wants{list: list}
}

// Unsupported names an extra spec that requires something Nova's API does not return.
func (ComputeCapabilities) Unsupported(s *inventory.States, r *placing.Request) string {
	if skipsNovaFilters(r) {
		return ""
	}
	for _, w := range capabilities(s, r) {
		if w.unknown() {
			return fmt.Sprintf("Nova's API does not return what the extra spec %s requires of a host", w.key)
		}
	}
	return ""
}

// fact is a host's value of an attribute: a number or a text.
type fact struct {
	counted bool
	number  int64
	text    string
}

// String returns the value as Nova formats it.
func (f fact) String() string {
	if f.counted {
		return strconv.FormatInt(f.number, 10)
	}
	return f.text
}

// attribute returns a host's value; false if it is unknown.
type attribute func(h *inventory.HostState) (fact, bool)

func text(of func(h *inventory.HostState) string) attribute {
	return func(h *inventory.HostState) (fact, bool) { value := of(h); return fact{text: value}, value != "" }
}

func number(of func(h *inventory.HostState) int64) attribute {
	return func(h *inventory.HostState) (fact, bool) { return fact{counted: true, number: of(h)}, true }
}

// stock returns an attribute of a resource class. Placement counts pinned vCPUs of a host
// separately, Nova's host state does not.
func stock(class string, of func(s inventory.Stock) int64) attribute {
	return func(h *inventory.HostState) (fact, bool) {
		s, there := h.Stocks[class]
		_, split := h.Stocks["PCPU"]
		return fact{counted: true, number: of(s)}, there && !(split && class == "VCPU")
	}
}

// ioWorkload is a statistic, not an attribute.
const ioWorkload = "io_workload"

// attributes are those of Nova's host state (nova/scheduler/host_manager.py HostState), and
// those statistics, that its API returns.
var attributes = map[string]attribute{
	"host":                text(func(h *inventory.HostState) string { return h.Name }),
	"nodename":            text(func(h *inventory.HostState) string { return h.Node }),
	"hypervisor_hostname": text(func(h *inventory.HostState) string { return h.Node }),
	"uuid":                text(func(h *inventory.HostState) string { return h.Provider }),
	"cell_uuid":           text(func(h *inventory.HostState) string { return h.Cell }),
	"host_ip":             text(func(h *inventory.HostState) string { return h.IP }),
	"hypervisor_type":     text(func(h *inventory.HostState) string { return h.HypervisorType }),
	"hypervisor_version": func(h *inventory.HostState) (fact, bool) {
		return fact{counted: true, number: h.HypervisorVersion}, h.HypervisorVersion != 0
	},
	"num_instances":        number(func(h *inventory.HostState) int64 { return int64(len(h.Instances)) }),
	"num_io_ops":           number(func(h *inventory.HostState) int64 { return h.IOOps }),
	ioWorkload:             number(func(h *inventory.HostState) int64 { return h.IOOps }),
	"failed_builds":        number(func(h *inventory.HostState) int64 { return h.FailedBuilds }),
	"vcpus_total":          stock("VCPU", func(s inventory.Stock) int64 { return s.Total }),
	"vcpus_used":           stock("VCPU", func(s inventory.Stock) int64 { return s.Used }),
	"total_usable_ram_mb":  stock("MEMORY_MB", func(s inventory.Stock) int64 { return s.Total }),
	"free_ram_mb":          stock("MEMORY_MB", func(s inventory.Stock) int64 { return s.Total - s.Reserved - s.Used }),
	"total_usable_disk_gb": stock("DISK_GB", func(s inventory.Stock) int64 { return s.Total }),
	"free_disk_mb": func(h *inventory.HostState) (fact, bool) {
		s, there := h.Stocks["DISK_GB"]
		return fact{counted: true, number: (s.Total - s.Reserved - s.Used - h.DiskMissing) * 1024}, there
	},
}

// unknownAttributes are the other attributes of Nova's host state, which a key without a namespace may
// name. Names that begin with __ are attributes too.
var unknownAttributes = []string{
	"_lock_name", "aggregates", "consume_from_request", "cpu_allocation_ratio", "cpu_info", "disk_allocation_ratio", "disk_mb_used",
	"instances", "limits", "metrics", "numa_topology", "pci_stats", "ram_allocation_ratio", "service", "stats",
	"supported_instances", "update", "updated", "_update_from_compute_node", "_locked_consume_from_request",
}

// known reports whether a key without a namespace names an attribute, or a statistic that every
// driver may have (nova/compute/stats.py).
func known(key string) bool {
	return attributes[key] != nil || slices.Contains(unknownAttributes, key) ||
		slices.ContainsFunc([]string{"__", "num_task_", "num_vm_", "num_os_type_", "num_proj_"}, func(p string) bool { return strings.HasPrefix(key, p) })
}

// ofDriver is the attribute for any other key without a namespace. Such a key matters only on hosts
// whose driver adds it to the statistics, as Ironic's does with a node's capabilities.
func ofDriver(h *inventory.HostState) (fact, bool) { return fact{}, h.HypervisorType != "ironic" }

// want is what one extra spec requires of hosts.
type want struct {
	s     *inventory.States
	key   string
	name  string    // of the attribute
	of    attribute // nil if Nova's API does not return it
	inner bool      // the key names a part of an attribute that has no parts
	comparison
}

// wants are the requirements of all extra specs. If two values cannot be compared, Nova fails
// the request, and the filter refuses all hosts.
type wants struct {
	list   []*want
	failed string
}

// capabilities returns the requirements of the extra specs, by key; nil if there are none.
func capabilities(s *inventory.States, r *placing.Request) (list []*want) {
	for _, key := range slices.Sorted(maps.Keys(r.ExtraSpecs)) {
		w := want{s: s, key: key, name: key, of: attributes[key], comparison: compare(r.ExtraSpecs[key])}
		scope := strings.Split(key, ":")
		switch {
		case len(scope) > 1 && scope[0] != "capabilities":
			continue
		case len(scope) > 1:
			w.name, w.of, w.inner = scope[1], attributes[scope[1]], len(scope) > 2
		case !known(key):
			w.of, w.comparison = ofDriver, compare("")
		}
		list = append(list, &w)
	}
	return list
}

func (w *want) unknown() bool {
	if w.of == nil {
		return true
	}
	for i := range w.s.Len() {
		if _, told := w.of(w.s.Host(i)); !told {
			return true
		}
	}
	return false
}

// Keep implements Test. A comparison that fails leaves no host.
func (l *wants) Keep(hosts hostset.Set) {
	for _, w := range l.list {
		if w.of == nil || w.inner {
			clear(hosts)
			return
		}
		var last fact
		passes, asked := false, false
		for i := range hosts.All() {
			value, told := w.of(w.s.Host(i))
			if told && (!asked || value != last) {
				var err error
				if passes, err = w.holds(value.String()); err != nil {
					l.failed = fmt.Sprintf("the extra spec %s cannot be compared with %s of a host: %v", w.key, w.name, err)
					clear(hosts)
					return
				}
				last, asked = value, true
			}
			if !told || !passes {
				hosts.Remove(i)
			}
		}
	}
}

// Why implements Test.
func (l *wants) Why(i int) string {
	for _, w := range l.list {
		if w.of == nil {
			return fmt.Sprintf("the extra spec %s requires %s, which Nova's API does not return", w.key, w.name)
		}
		value, told := w.of(w.s.Host(i))
		if !told {
			return fmt.Sprintf("the extra spec %s requires %s, which is unknown for the host", w.key, w.name)
		}
		if w.inner {
			return fmt.Sprintf("the extra spec %s requires a part of %s, which has none", w.key, w.name)
		}
		if passes, err := w.holds(value.String()); !passes && err == nil {
			return fmt.Sprintf("%s of the host is %q, the extra spec %s requires %q", w.name, value, w.key, w.text)
		}
	}
	return l.failed
}
