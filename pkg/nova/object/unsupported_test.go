// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/object"
)

func TestWhatCannotBeJudgedIsToldInASentence(t *testing.T) {
	flavor := func(key, value string) map[string]any {
		return map[string]any{"flavor.extra_specs": map[string]string{key: value}}
	}
	image := func(name string, value any) map[string]any { return map[string]any{"image.properties." + name: value} }
	for want, values := range map[string]map[string]any{
		"the flavor's extra spec hw:numa_nodes requires a NUMA topology":                        flavor("hw:numa_nodes", "2"),
		"the flavor's extra spec hw:numa_cpus.0 requires a NUMA topology":                       flavor("hw:numa_cpus.0", "0,1"),
		"the image's property hw_numa_nodes requires a NUMA topology":                           image("hw_numa_nodes", 2),
		"the image's property hw_numa_mem requires a NUMA topology":                             image("hw_numa_mem", []int{1, 2}),
		"the request's numa_topology requires a NUMA topology":                                  {"numa_topology": novaObject("InstanceNUMATopology", "1.3", map[string]any{})},
		"the flavor's extra spec hw:cpu_policy requires pinned CPUs":                            flavor("hw:cpu_policy", "dedicated"),
		"the image's property hw_cpu_policy requires pinned CPUs":                               image("hw_cpu_policy", "mixed"),
		"the flavor's extra spec hw:cpu_realtime requires realtime CPUs":                        flavor("hw:cpu_realtime", "yes"),
		"the flavor's extra spec hw:emulator_threads_policy requires CPUs for emulator threads": flavor("hw:emulator_threads_policy", "isolate"),
		"the flavor's extra spec hw:mem_page_size requires a memory page size":                  flavor("hw:mem_page_size", "large"),
		"the image's property hw_mem_page_size requires a memory page size":                     image("hw_mem_page_size", "2048"),
		"the flavor's extra spec hw:pmem requires persistent memory":                            flavor("hw:pmem", "6GB"),
		"the flavor's extra spec hw:mem_encryption requires encrypted memory":                   flavor("hw:mem_encryption", "true"),
		"the image's property hw_mem_encryption requires encrypted memory":                      image("hw_mem_encryption", true),
		"the flavor's extra spec hw:maxphysaddr_mode requires an address width":                 flavor("hw:maxphysaddr_mode", "emulate"),
		"the flavor's extra spec pci_passthrough:alias requires PCI devices":                    flavor("pci_passthrough:alias", "gpu:1"),
		"the request's pci_requests requires PCI devices":                                       {"pci_requests.requests": []any{novaObject("InstancePCIRequest", "1.4", nil)}},
		"the flavor's extra spec accel:device_profile requires accelerators":                    flavor("accel:device_profile", "fpga"),
		"the flavor's extra spec hw:tpm_version requires a trusted platform module":             flavor("hw:tpm_version", "2.0"),
		"the image's property os_secure_boot requires secure boot":                              image("os_secure_boot", "required"),
		"the image's property hw_firmware_stateless requires stateless firmware":                image("hw_firmware_stateless", true),
		"the flavor's extra spec hw:virtio_packed_ring requires packed virtqueues":              flavor("hw:virtio_packed_ring", "true"),
		"the flavor's extra spec hw:sound_model requires a sound device":                        flavor("hw:sound_model", "virtio"),
		"the flavor's extra spec resources:VGPU requires a resource class other than VCPU":      flavor("resources:VGPU", "1"),
		"the flavor's extra spec resources1:CUSTOM_A requires a request group of its own":       flavor("resources1:CUSTOM_A", "1"),
		"the flavor's extra spec resources_GPU:VCPU requires a request group of its own":        flavor("resources_GPU:VCPU", "0"),
		"the flavor's extra spec trait1:CUSTOM_A requires a request group of its own":           flavor("trait1:CUSTOM_A", "required"),
		"the request's requested_resources requires a request group of its own":                 {"requested_resources": []any{novaObject("RequestGroup", "1.3", nil)}},
		"the request's request_level_params requires traits of the root provider":               {"request_level_params.root_required": []string{"A"}},
		"the flavor's extra spec hw:of_the_future is unknown":                                   flavor("hw:of_the_future", "1"),
	} {
		_, beyond := request(t, edited(t, values), object.Options{})
		if len(beyond) != 1 || !strings.HasPrefix(beyond[0], want) {
			t.Errorf("want %q, got %q", want, beyond)
		}
	}
}

func TestWhatDoesNotMatterToThePlaceIsJudged(t *testing.T) {
	for key, value := range map[string]string{
		"hw:cpu_policy": "shared", "hw:mem_encryption": "false", "os:secure_boot": "optional", "hw:cpu_realtime": "no",
		"resources:VGPU": "0", "resources:PCPU": "none", "accel:device_profile": "", "hw:watchdog_action": "reset", "hw:cpu_sockets": "2",
		"hw_rng:allowed": "true", "quota:cpu_shares": "10", "capabilities:cpu_info": "x", "group_policy": "none", "anything": "dedicated",
		"resources!:VGPU": "1", "trait:HW_CPU_X86_VMX": "required", "aggregate_instance_extra_specs:ssd": "true",
	} {
		if _, beyond := request(t, edited(t, map[string]any{"flavor.extra_specs": map[string]string{key: value}}), object.Options{}); len(beyond) > 0 {
			t.Errorf("%s=%s: %q", key, value, beyond)
		}
	}
	network := map[string]any{
		"network_metadata":    novaObject("NetworkMetadata", "1.0", map[string]any{"physnets": []string{"provider"}, "tunneled": true}),
		"image":               nil,
		"requested_resources": nil,
	}
	if _, beyond := request(t, edited(t, network), object.Options{}); len(beyond) > 0 {
		t.Errorf("a provider network without a NUMA topology: %q", beyond)
	}
}

func TestEveryMatterSaysWhatAsksForIt(t *testing.T) {
	for _, m := range object.Matters() {
		if m.What == "" || len(m.ExtraSpecs)+len(m.ImageProperties)+len(m.Fields) == 0 {
			t.Errorf("%+v", m)
		}
	}
}
