// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Unsupported lists, as sentences, what Almanac cannot judge about a request, so that
// nova-scheduler must; empty if it can judge all.
type Unsupported []string

// Matter is something that a request may require and that Almanac cannot judge, because it
// depends on more than the host's resources and traits, or because Nova translates it
// (nova/scheduler/utils.py ResourceRequest, request_filter.py, virt/hardware.py).
type Matter struct {
	What string // "PCI devices"
	// ExtraSpecs of the flavor, ImageProperties and fields of the RequestSpec require it; * at
	// the end matches any ending.
	ExtraSpecs, ImageProperties, Fields []string
	// Unless are values, in lower case, that do not require it. Nor do empty values.
	Unless []string
	// judged is the part of Nova that translates it into traits: Almanac can judge it beside the
	// releases that have the part; Always means that it never can.
	judged release.Part
}

// Matters returns everything that Almanac cannot judge, in the order of the documentation. An
// unknown extra spec "hw:…" that no Matter names counts as well.
func Matters() []Matter { return slices.Clone(matters) }

// untrue are the words for false (oslo_utils/strutils.py bool_from_string).
var untrue = []string{"0", "f", "false", "off", "n", "no"}

var matters = []Matter{
	{What: "a NUMA topology", ExtraSpecs: []string{"hw:numa_*"}, ImageProperties: []string{"hw_numa_*"}, Fields: []string{"numa_topology"}},
	{
		What: "pinned CPUs", Unless: []string{"shared"},
		ExtraSpecs:      []string{"hw:cpu_policy", "hw:cpu_thread_policy", "hw:cpu_dedicated_mask"},
		ImageProperties: []string{"hw_cpu_policy", "hw_cpu_thread_policy"},
	},
	{What: "realtime CPUs", Unless: untrue, ExtraSpecs: []string{"hw:cpu_realtime*"}, ImageProperties: []string{"hw_cpu_realtime*"}},
	{What: "CPUs for emulator threads", ExtraSpecs: []string{"hw:emulator_threads_policy"}},
	{What: "a memory page size", ExtraSpecs: []string{"hw:mem_page_size"}, ImageProperties: []string{"hw_mem_page_size"}},
	{What: "persistent memory", ExtraSpecs: []string{"hw:pmem"}},
	{What: "encrypted memory", Unless: untrue, ExtraSpecs: []string{"hw:mem_encryption*"}, ImageProperties: []string{"hw_mem_encryption*"}},
	{What: "an address width", ExtraSpecs: []string{"hw:maxphysaddr_*"}, ImageProperties: []string{"hw_maxphysaddr_*"}},
	{
		What: "PCI devices", ExtraSpecs: []string{"pci_passthrough:alias", "hw:pci_numa_affinity_policy"},
		ImageProperties: []string{"hw_pci_numa_affinity_policy"}, Fields: []string{"pci_requests"},
	},
	{What: "accelerators", ExtraSpecs: []string{"accel:device_profile"}},
	{What: "a trusted platform module", ExtraSpecs: []string{"hw:tpm_*"}, ImageProperties: []string{"hw_tpm_*"}},
	{
		What: "secure boot", ExtraSpecs: []string{"os:secure_boot"}, ImageProperties: []string{"os_secure_boot"},
		Unless: []string{"disabled", "optional"},
	},
	{What: "stateless firmware", Unless: untrue, ExtraSpecs: []string{"hw:firmware_stateless"}, ImageProperties: []string{"hw_firmware_stateless"}},
	{
		What: "packed virtqueues", ExtraSpecs: []string{"hw:virtio_packed_ring"}, ImageProperties: []string{"hw_virtio_packed_ring"},
		Unless: untrue, judged: release.PackedVirtqueueFilter,
	},
	{
		What: "a sound device", ExtraSpecs: []string{"hw:sound_model"}, ImageProperties: []string{"hw_sound_model"},
		judged: release.VirtioSoundFilter,
	},
	{
		What:       "a resource class other than VCPU, MEMORY_MB, DISK_GB and CUSTOM_*",
		ExtraSpecs: []string{"resources:*"},
	},
	{
		What:       "a request group of its own, as ports with a guaranteed bandwidth do",
		ExtraSpecs: []string{"resources<group>:*", "trait<group>:*"}, Fields: []string{"requested_resources"},
	},
	{What: "traits of the root provider, or a common subtree", Fields: []string{"request_level_params"}},
}

// harmless are the extra specs "hw:…" that do not affect the choice of a host
// (nova/api/validation/extra_specs/hw.py).
var harmless = []string{
	"hw:boot_menu", "hw:cpu_cores", "hw:cpu_max_cores", "hw:cpu_max_sockets", "hw:cpu_max_threads", "hw:cpu_sockets",
	"hw:cpu_threads", "hw:hide_hypervisor_id", "hw:input_bus", "hw:locked_memory", "hw:max_cpu_cores",
	"hw:max_cpu_sockets", "hw:max_cpu_threads", "hw:pmu", "hw:serial_port_count", "hw:time_hpet",
	"hw:vif_multiqueue_enabled", "hw:viommu_model", "hw:watchdog_action",
}

// unsupportedIn returns what Almanac cannot judge about a request.
//
// The network metadata of a request matters only with a NUMA topology. A port that needs more
// than a network has a request group or a PCI request.
func unsupportedIn(r reader, p *placing.Request, nova release.Release) Unsupported {
	asked := map[string]bool{
		"numa_topology":        !r.null("numa_topology"),
		"pci_requests":         len(r.object("pci_requests", "InstancePCIRequests 1").list("requests")) > 0,
		"requested_resources":  len(r.list("requested_resources")) > 0,
		"request_level_params": hasParams(r.object("request_level_params", "RequestLevelParams 1")),
	}
	var beyond Unsupported
	for _, m := range matters {
		if m.judged != release.Always && nova.Has(m.judged) {
			continue
		}
		beyond = append(beyond, m.inMap(p.ExtraSpecs, m.ExtraSpecs, "the flavor's extra spec")...)
		beyond = append(beyond, m.inMap(p.ImageProperties, m.ImageProperties, "the image's property")...)
		for _, field := range m.Fields {
			if asked[field] {
				beyond = append(beyond, fmt.Sprintf("the request's %s requires %s", field, m.What))
			}
		}
	}
	return append(beyond, unknown(p.ExtraSpecs)...)
}

// hasParams reports whether a request requires or forbids traits of the root provider, or asks for a
// common subtree.
func hasParams(r reader) bool {
	return len(r.list("root_required"))+len(r.list("root_forbidden"))+len(r.list("same_subtree")) > 0
}

// inMap returns a sentence for each key of values that requires m, sorted.
func (m Matter) inMap(values map[string]string, signs []string, where string) []string {
	var sentences []string
	for key, value := range values {
		if m.asks(key, value, signs) {
			sentences = append(sentences, fmt.Sprintf("%s %.100s requires %s", where, key, m.What))
		}
	}
	slices.Sort(sentences)
	return sentences
}

// asks reports whether a key with that value is one of signs.
func (m Matter) asks(key, value string, signs []string) bool {
	switch kind, group, name := placementKey(key); {
	case group != "":
		// Any value counts: 0 in a group removes what the flavor has of that class.
		return slices.Contains(signs, kind+"<group>:*")
	case kind != "":
		amount, ok, _ := parseAmount(value)
		return slices.Contains(signs, kind+":*") && !judged(name) && ok && amount > 0
	}
	return named(key, signs) && value != "" && !slices.Contains(m.Unless, strings.ToLower(strings.TrimSpace(value)))
}

// named reports whether one of the signs is the key, or ends with * and begins it.
func named(key string, signs []string) bool {
	return slices.ContainsFunc(signs, func(sign string) bool {
		start, open := strings.CutSuffix(sign, "*")
		return key == sign || open && strings.HasPrefix(key, start)
	})
}

// unknown returns a sentence for each extra spec of Nova's own that Almanac does not know.
func unknown(extraSpecs map[string]string) []string {
	var sentences []string
	for key := range extraSpecs {
		known := func(m Matter) bool { return named(key, m.ExtraSpecs) }
		if strings.HasPrefix(key, "hw:") && !slices.Contains(harmless, key) && !slices.Contains(prefiltered, key) && !slices.ContainsFunc(matters, known) {
			sentences = append(sentences, fmt.Sprintf("the flavor's extra spec %.100s is unknown", key))
		}
	}
	slices.Sort(sentences)
	return sentences
}
