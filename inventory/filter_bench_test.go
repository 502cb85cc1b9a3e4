// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

func BenchmarkMatches10000Hosts(b *testing.B) {
	hosts := make([]inventory.Host, 10_000)
	for i := range hosts {
		hosts[i] = inventory.Host{
			Name:       fmt.Sprintf("node-%05d", i),
			Zone:       fmt.Sprintf("az%d", i%3),
			Traits:     []string{"HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F"},
			Capacity:   resource.Vector{VCPUs: 32, MemoryMB: int64(65536 * (1 + i%4)), DiskGB: 960},
			Properties: properties{"rack": inventory.NumberValue(float64(i / 40)), "gpu": inventory.StringValue([]string{"a100", "h100"}[i%2])},
		}
	}
	s := snapshotOf(b, hosts...)
	for name, filter := range map[string]string{
		"one":  `[">=", "$memory_mb", 131072]`,
		"two":  `["and", [">=", "$memory_mb", 65536], ["=", "$gpu", "a100"]]`,
		"five": `["and", [">=", "$memory_mb", 65536], ["in", "$zone", "az1", "az2"], ["not", ["<", "$rack", 10]], ["or", ["=", "$gpu", "h100"], ["in", "HW_CPU_X86_AVX512F", "$traits"]]]`,
	} {
		f, err := inventory.ParseFilter([]byte(filter), s, false)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				matches := 0
				for _, h := range s.Hosts() {
					if f.Matches(h, true) {
						matches++
					}
				}
				if matches == 0 {
					b.Fatal("no host matches")
				}
			}
		})
	}
}

// BenchmarkTheMostWork measures a filter of about as many steps as are allowed.
func BenchmarkTheMostWork(b *testing.B) {
	traits := make([]string, 100)
	for i := range traits {
		traits[i] = fmt.Sprintf("HW_CPU_X86_FEATURE_%03d", i)
	}
	hosts := make([]inventory.Host, 1600)
	for i := range hosts {
		hosts[i] = inventory.Host{Name: fmt.Sprintf("h%04d", i), Traits: traits}
	}
	s := snapshotOf(b, hosts...)
	filter := `["and"`
	for i := range 62 {
		filter += fmt.Sprintf(`, ["in", "HW_CPU_X86_FEATURE_%03d", "$traits"]`, i)
	}
	f, err := inventory.ParseFilter([]byte(filter+"]"), s, false)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, h := range s.Hosts() {
			f.Matches(h, true)
		}
	}
}
