// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

func TestTheCatalogueHasEveryPropertyWithItsTypeAndTheValuesSeen(t *testing.T) {
	s, err := inventory.NewSnapshot([]inventory.Host{
		{
			Name: "a", Number: 7, Zone: "az2", Traits: []string{"T2", "T1"}, FlopsPerWatt: 2.5,
			Capacity:   resource.Vector{VCPUs: 16, MemoryMB: 2048, DiskGB: 2},
			Used:       resource.Vector{MemoryMB: 48, DiskGB: 1},
			Hypervisor: inventory.Hypervisor{Name: "a.example.org", Type: "QEMU", Version: 9002000},
			Properties: properties{"rack": inventory.NumberValue(10), "networks": inventory.ListValue([]string{"x", "y"})},
		},
		{
			Name: "b", Traits: []string{"T1"},
			Capacity:   resource.Vector{VCPUs: 16, MemoryMB: 1024},
			Properties: properties{"rack": inventory.NumberValue(9), "nvme": inventory.BoolValue(true)},
		},
	}, nil, map[string]bool{"rack": true, "never_seen": true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.Properties() {
		line := fmt.Sprintf("%s %s", p.Name, p.Type)
		if p.BuiltIn {
			line += " built-in"
		}
		if p.Hidden {
			line += " hidden"
		}
		for _, v := range p.Values {
			line += fmt.Sprintf(" %v", v.Any())
		}
		got = append(got, line)
	}
	want := []string{
		"aggregates list built-in",
		"disk_gb number built-in 0 2",
		"flops_per_watt number built-in 2.5",
		"free_disk_mb number built-in 0 1024",
		"free_ram_mb number built-in 1024 2000",
		"hypervisor_hostname string built-in a.example.org b",
		"hypervisor_type string built-in QEMU",
		"hypervisor_version number built-in 9.002e+06",
		"id number built-in 7",
		"memory_mb number built-in 1024 2048",
		"name string built-in a b",
		"networks list x y",
		"nvme bool true",
		"rack number hidden 9 10",
		"traits list built-in T1 T2",
		"vcpus number built-in 16",
		"zone string built-in az2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("catalogue (-want +got):\n%s", diff)
	}
}
