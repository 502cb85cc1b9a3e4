// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// gpu is a flavor, and its JSON in Nova's form.
var gpu = inventory.Flavor{
	ID: "7", Name: "gpu.small", Public: true, Resources: resource.Vector{VCPUs: 4, MemoryMB: 2048, DiskGB: 31, Custom: map[string]int64{"CUSTOM_FPGA": 2}},
	ExtraSpecs: map[string]string{
		"resources:CUSTOM_FPGA": "2", "trait:CUSTOM_FAST": "required", "trait:HW_CPU_X86_AVX2": "required", "trait:CUSTOM_OLD": "forbidden",
		"trait:CUSTOM_ALMANAC_RESERVED": "required", "hw:mem_page_size": "large",
	},
}

const gpuText = `{"id": "7", "name": "gpu.small", "vcpus": 4, "ram": 2048, "disk": 20, "OS-FLV-EXT-DATA:ephemeral": 10, "swap": 512, "extra_specs": {
	"resources:CUSTOM_FPGA": "2", "trait:CUSTOM_FAST": "required", "trait:CUSTOM_ALMANAC_RESERVED": "required", "almanac:project": "another",
	"resources:CUSTOM_ALMANAC_RESERVATION_X": "1", "hw:mem_page_size": "large", "aggregate_instance_extra_specs:reservation": "x"}}`

func TestInstancesOfAFlavorAreReservedWithItsResourcesOnHostsWithItsTraits(t *testing.T) {
	m, err := fence.ForFlavor(gpu, gpuText)
	if err != nil {
		t.Fatal(err)
	}
	if m.Kind != reservation.Instances || !m.Resources.Equal(gpu.Resources) || m.Flavor != gpuText {
		t.Errorf("reserved are %+v", m)
	}
	good := []string{"CUSTOM_FAST", "HW_CPU_X86_AVX2"}
	var hosts []inventory.Host
	for name, traits := range map[string][]string{"good": good, "slow": good[1:], "old": append([]string{"CUSTOM_OLD"}, good...), "bare": nil} {
		hosts = append(hosts, inventory.Host{Name: name, Traits: traits})
	}
	s := snapshot(t, hosts...)
	filter, err := inventory.ParseFilter([]byte(m.HostProperties), s, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range s.Hosts() {
		if filter.Matches(h, false) != (h.Name == "good") {
			t.Errorf("host %s with the traits %v matches: %v", h.Name, h.Traits, filter.Matches(h, false))
		}
	}
	plain := gpu
	plain.ExtraSpecs = nil
	if m, err := fence.ForFlavor(plain, gpuText); err != nil || m.HostProperties != "" {
		t.Errorf("without traits: %v, the filter is %s", err, m.HostProperties)
	}
}

func TestAFlavorThatAlmanacCannotPromiseIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ key, value, want string }{
		"of a reservation":                  {"almanac:reservation", "r1", "must not be the flavor of a reservation"},
		"with a class that is not counted":  {"resources:VGPU", "1", "resources:VGPU=1"},
		"with a class in a numbered group":  {"resources1:SRIOV_NET_VF", "1", "resources1:SRIOV_NET_VF=1"},
		"with a class of a reservation":     {"resources:CUSTOM_ALMANAC_RESERVATION_X", "1", "cannot promise"},
		"with a trait that is neither":      {"trait:CUSTOM_FAST", "maybe", "must be required or forbidden"},
		"with more text than can be stored": {"x", strings.Repeat("x", 128<<10), "too many extra specs"},
	} {
		f := gpu
		f.ExtraSpecs = map[string]string{c.key: c.value}
		_, err := fence.ForFlavor(f, `{"extra_specs": "`+f.ExtraSpecs["x"]+`"}`)
		if got := fault.Of(err); err == nil || got.Kind != fault.Invalid || got.Field != "flavor_id" || !strings.Contains(got.Message, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	f := gpu
	f.ExtraSpecs = map[string]string{"resources:VGPU": "0", "resources:VCPU": "0", "resources2:CUSTOM_FPGA": "1"}
	if _, err := fence.ForFlavor(f, "{}"); err != nil {
		t.Errorf("a flavor with 0 of a class that Almanac does not count is refused: %v", err)
	}
}

func TestTheFlavorOfAReservationForAFlavorIsACopyOfItOnTheReservedHosts(t *testing.T) {
	r := shared("r1", 1, "a")
	r.Membership.Flavor = gpuText
	f := desired(t, start, fence.Rules{}, r).Flavors["r1"]
	if want := (resource.Vector{VCPUs: 4, MemoryMB: 2048, DiskGB: 20}); !f.Resources.Equal(want) || f.EphemeralGB != 10 || f.SwapMB != 512 || f.Public {
		t.Errorf("the flavor is %+v", f)
	}
	if want := (map[string]string{
		"almanac:reservation": "r1", "almanac:project": "project-of-r1", "trait:CUSTOM_ALMANAC_CLOSED": "required",
		"aggregate_instance_extra_specs:reservation": "r1", "resources:CUSTOM_ALMANAC_RESERVATION_R1": "1",
		"trait:CUSTOM_ALMANAC_RESERVED": "required", "trait:CUSTOM_ALMANAC_SHARED": "required",
		"resources:CUSTOM_FPGA": "2", "trait:CUSTOM_FAST": "required", "hw:mem_page_size": "large",
	}); !maps.Equal(f.ExtraSpecs, want) {
		t.Errorf("its extra specs are %v, want %v", f.ExtraSpecs, want)
	}

	r.Membership.Flavor = `{"swap": "", "vcpus": 1, "ram": 1}`
	if f := desired(t, start, fence.Rules{}, r).Flavors["r1"]; f.SwapMB != 0 || f.Resources.VCPUs != 1 {
		t.Errorf("with Nova's older form of no swap, the flavor is %+v", f)
	}
	r.Membership.Flavor = `{"vcpus": "damaged"`
	if f := desired(t, start, fence.Rules{}, r).Flavors["r1"]; !f.Resources.IsZero() {
		t.Errorf("a damaged text becomes the flavor %+v, which would be created", f)
	}
}
