// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/weighers"
)

// golden holds recorded answers of nova-scheduler's weighers: all five, with their default
// multipliers.
type golden struct {
	Cases []struct {
		Hosts []novaHost
		Order [][2]any // name and weight, the best first
	} `json:"weigh_cases"`
	Normalize []struct {
		In       []float64
		Min, Max *float64
		Out      []float64
	}
}

// novaHost holds the fields of Nova's HostState that the weighers read.
type novaHost struct {
	VCPUs        int64               `json:"vcpus_total"`
	VCPUsUsed    int64               `json:"vcpus_used"`
	CPURatio     float64             `json:"cpu_allocation_ratio"`
	FreeRAM      int64               `json:"free_ram_mb"`
	FreeDisk     int64               `json:"free_disk_mb"`
	IOOps        int64               `json:"num_io_ops"`
	FailedBuilds int64               `json:"failed_builds"`
	Aggregates   []map[string]string `json:"aggs"`
}

// state returns the same host in the form that Placement and Nova's API report.
func (h novaHost) state(name string) inventory.HostState {
	const ram = 16384
	return inventory.HostState{
		Name: name, Up: true, Enabled: true, IOOps: h.IOOps, FailedBuilds: h.FailedBuilds,
		Stocks: map[string]inventory.Stock{
			"VCPU": {Total: h.VCPUs, Ratio: h.CPURatio, Used: h.VCPUsUsed},
			// Nova counts what is reserved on the host neither as free nor as used.
			"MEMORY_MB": {Total: ram + 512, Reserved: 512, Ratio: 1.5, Used: ram - h.FreeRAM},
			"DISK_GB":   {Total: 200, Ratio: 1, Used: 200 - h.FreeDisk/1024},
		},
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/nova.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Cases) != 12 || len(g.Normalize) != 9 {
		t.Fatalf("testdata has %d and %d cases, want 12 and 9", len(g.Cases), len(g.Normalize))
	}
	return g
}

func TestWeightsAreNovasToTheLastBit(t *testing.T) {
	novas, err := weighers.Choose([]string{"CPUWeigher", "RAMWeigher", "DiskWeigher", "IoOpsWeigher", "BuildFailureWeigher"}, nil, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	for n, tc := range readGolden(t).Cases {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var rows []inventory.HostState
			var aggregates []inventory.Aggregate
			for i, h := range tc.Hosts {
				name := fmt.Sprintf("h%d", i)
				rows = append(rows, h.state(name))
				for _, metadata := range h.Aggregates {
					aggregates = append(aggregates, inventory.Aggregate{
						UUID: fmt.Sprint(len(aggregates)), Metadata: metadata, Hosts: []string{name},
					})
				}
			}
			s := states(t, rows, aggregates)
			var ranking weighers.Ranking
			ranking.Rank(novas, s, &placing.Request{}, 0, everyPlace(s))
			var got [][2]any
			for _, host := range ranking.Best(s.Len(), nil) {
				got = append(got, [2]any{s.Host(host).Name, ranking.Weight(host)})
			}
			if diff := cmp.Diff(tc.Order, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNormalisationIsNovas(t *testing.T) {
	for _, tc := range readGolden(t).Normalize {
		t.Run(fmt.Sprint(tc.In), func(t *testing.T) {
			weighers.Normalise(tc.In, tc.Min, tc.Max)
			if diff := cmp.Diff(tc.Out, tc.In); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func states(t testing.TB, rows []inventory.HostState, aggregates []inventory.Aggregate) *inventory.States {
	t.Helper()
	s, err := inventory.NewStates(rows, aggregates)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func everyPlace(s *inventory.States) []int {
	places := make([]int, s.Len())
	for i := range places {
		places[i] = i
	}
	return places
}
