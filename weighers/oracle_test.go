// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/weighers"
)

// world holds hosts and requests in the form of Nova's weighers and in Almanac's.
type world struct {
	Weighers    []string           `json:"weighers"`
	Multipliers map[string]float64 `json:"multipliers"`
	Hosts       []map[string]any   `json:"hosts"`
	Aggregates  []map[string]any   `json:"aggregates"`
	Requests    []map[string]any   `json:"requests"`

	rows       []inventory.HostState
	aggregates []inventory.Aggregate
	requests   []placing.Request
	among      [][]string // by request: the hosts to weigh
}

const novas = "nova.scheduler.weights."

// novaOptions lists the options of the weighers of Nova 26.
var novaOptions = []string{
	"cpu_weight_multiplier", "ram_weight_multiplier", "disk_weight_multiplier", "io_ops_weight_multiplier", "build_failure_weight_multiplier",
	"pci_weight_multiplier", "soft_affinity_weight_multiplier", "soft_anti_affinity_weight_multiplier", "cross_cell_move_weight_multiplier",
	"metrics_weight_multiplier",
}

func (w *world) addHost(t *rapid.T, n int) {
	number := func(label string, least, most int64) int64 { return rapid.Int64Range(least, most).Draw(t, label) }
	cpu := inventory.Stock{Total: number("vcpus", 1, 64), Reserved: number("reserved", 0, 2), Ratio: rapid.SampledFrom([]float64{1, 1.5, 4, 0.3}).Draw(t, "ratio"), Used: number("used", 0, 80)}
	ram := inventory.Stock{Total: 65536, Reserved: number("reserved memory", 0, 4096), Ratio: 1.5, Used: number("used memory", 0, 70000)}
	disk := inventory.Stock{Total: 1000, Ratio: 1, Used: number("used disk", 0, 1100)}
	h := inventory.HostState{
		Name: fmt.Sprintf("h%02d", n), Cell: rapid.SampledFrom([]string{"cell1", "cell2"}).Draw(t, "cell"), DiskMissing: number("missing", 0, 1) * number("how much", 0, 400),
		IOOps: number("io", 0, 3), FailedBuilds: number("failed", 0, 1) * number("how many", 0, 5),
		Stocks: map[string]inventory.Stock{"VCPU": cpu, "MEMORY_MB": ram, "DISK_GB": disk},
	}
	pools := rapid.SampledFrom([][]int64{{}, {}, {1}, {2, 3}, {50, 48}, {50, 49}, {60, 60}}).Draw(t, "pools")
	for _, free := range pools {
		h.PCIDevices += free
	}
	ids := []string{}
	for id := range 8 {
		if rapid.IntRange(0, 2).Draw(t, "is on it") == 0 {
			ids = append(ids, fmt.Sprint("i", id))
			h.Instances = append(h.Instances, inventory.Instance{ID: ids[len(ids)-1]})
		}
	}
	w.rows = append(w.rows, h)
	w.Hosts = append(w.Hosts, map[string]any{
		"name": h.Name, "cell": h.Cell, "instances": ids, "pools": pools, "attributes": map[string]any{
			"vcpus_total": cpu.Total, "cpu_allocation_ratio": cpu.Ratio, "vcpus_used": cpu.Reserved + cpu.Used, "free_ram_mb": ram.Total - ram.Reserved - ram.Used,
			"free_disk_mb": (disk.Total - disk.Used - h.DiskMissing) * 1024, "num_io_ops": h.IOOps, "failed_builds": h.FailedBuilds, "metrics": nil,
		},
	})
}

func (w *world) addAggregate(t *rapid.T, n int) {
	metadata := rapid.MapOfN(rapid.SampledFrom(novaOptions), rapid.SampledFrom([]string{
		"2", "0.5", "-3", "0", " 7.25 ", "1e3", "1_0.5", "+.5", "5.", "none", "", "0x10", "1__0", "_1", "1,5",
	}), 0, 3).Draw(t, "metadata")
	hosts := w.someHosts(t, 3)
	w.aggregates = append(w.aggregates, inventory.Aggregate{UUID: fmt.Sprint(n), Metadata: metadata, Hosts: hosts})
	w.Aggregates = append(w.Aggregates, map[string]any{"metadata": metadata, "hosts": hosts})
}

// someHosts returns the names of about one host in every of.
func (w *world) someHosts(t *rapid.T, of int) []string {
	names := []string{}
	for i := range w.rows {
		if rapid.IntRange(1, of).Draw(t, "among them") == 1 {
			names = append(names, w.rows[i].Name)
		}
	}
	return names
}

func (w *world) addRequest(t *rapid.T) {
	var r placing.Request
	policy := rapid.SampledFrom([]string{"", "affinity", "anti-affinity", "soft-affinity", "soft-affinity", "soft-anti-affinity", "soft-anti-affinity"}).Draw(t, "policy")
	members := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 9), func(n int) string { return fmt.Sprint("i", n) }), 0, 6).Draw(t, "members")
	if policy != "" {
		r.Group = &placing.Group{ID: "g", Policy: policy, Members: members}
	}
	cell, leaves := rapid.SampledFrom([]string{"", "cell1", "cell2", "cell3"}).Draw(t, "cell"), rapid.Bool().Draw(t, "leaves")
	if leaves {
		r.PreferredCell = cell
	} else {
		r.Cell = cell
	}
	hosts := w.someHosts(t, 2)
	w.requests, w.among = append(w.requests, r), append(w.among, hosts)
	w.Requests = append(w.Requests, map[string]any{"policy": policy, "members": members, "cell": cell, "leaves": leaves, "hosts": hosts})
}

func drawWorld(requests int) *rapid.Generator[*world] {
	return rapid.Custom(func(t *rapid.T) *world {
		w := &world{Weighers: []string{weighers.AllWeighers}, Multipliers: map[string]float64{}, Aggregates: []map[string]any{}}
		if rapid.Bool().Draw(t, "twice") {
			w.Weighers = append(w.Weighers, novas+"ram.RAMWeigher", novas+"compute.BuildFailureWeigher")
		}
		for _, option := range novaOptions {
			least := -3.0
			if strings.HasPrefix(option, "pci") || strings.HasPrefix(option, "soft") {
				least = 0
			}
			w.Multipliers[option] = 1
			if rapid.Bool().Draw(t, "set") {
				w.Multipliers[option] = rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(least, 3)).Draw(t, option)
			}
		}
		for n := range 12 {
			w.addHost(t, n)
		}
		for n := range rapid.IntRange(0, 5).Draw(t, "aggregates") {
			w.addAggregate(t, n)
		}
		for range requests {
			w.addRequest(t)
		}
		return w
	})
}

// weighed is a host with its weight.
type weighed struct {
	name   string
	weight float64
}

func (w *weighed) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&w.name, &w.weight})
}

// answers holds Nova's answers for a world: its weighers and, for each request, the hosts,
// the best first.
type answers struct {
	Classes []string
	Answers [][]weighed
}

// Nova's own weighers, all those of Debian's Nova 26, weigh the same hosts for the same
// requests.
func TestWeightsAreNovas(t *testing.T) {
	const requests = 300
	worlds := make([]*world, 20)
	for n := range worlds {
		worlds[n] = drawWorld(requests).Example(n)
	}
	var nova []answers
	labtest.AskPython(t, "testdata/oracle.py", worlds, &nova)
	differ := 0
	for n, w := range worlds {
		differ += compareWorld(t, w, nova[n])
	}
	t.Logf("of %d requests %d had hosts of different weight", len(worlds)*requests, differ)
	if differ < len(worlds)*requests/2 {
		t.Error("in most requests all hosts weigh the same")
	}
}

// compareWorld fails unless Nova's answers are the same. It returns for how many requests
// the hosts differ in weight.
func compareWorld(t *testing.T, w *world, nova answers) (differ int) {
	t.Helper()
	list, err := weighers.Choose(w.Weighers, w.Multipliers, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	of := labtest.Release(t)
	list = slices.DeleteFunc(list, func(one weighers.Weighted) bool { return isOwn(one.Name()) || !of.Has(one.Part) })
	var names []string
	for _, one := range list {
		names = append(names, one.Name())
	}
	slices.Sort(names)
	if diff := cmp.Diff(nova.Classes, names); diff != "" {
		t.Fatalf("weighers (-Nova +Almanac):\n%s", diff)
	}
	s := states(t, w.rows, w.aggregates).WithNova(of)
	var ranking weighers.Ranking
	for i := range w.requests {
		var places []int
		for _, name := range w.among[i] {
			place, _ := s.Index(name)
			places = append(places, place)
		}
		ranking.Rank(list, s, &w.requests[i], 0, places)
		var got []weighed
		for _, place := range ranking.Best(len(places), nil) {
			got = append(got, weighed{s.Host(place).Name, ranking.Weight(place)})
		}
		if !alike(nova.Answers[i], got) {
			t.Fatalf("request %+v:\nNova answers %v,\nAlmanac answers %v", w.Requests[i], nova.Answers[i], got)
		}
		if len(got) > 1 && got[0].weight != got[len(got)-1].weight {
			differ++
		}
		checkParts(t, &ranking, places)
	}
	return differ
}

// checkParts fails unless the contributions of the weighers add up to the weights.
func checkParts(t *testing.T, ranking *weighers.Ranking, places []int) {
	t.Helper()
	for k, parts := range ranking.Parts(places) {
		sum := 0.0
		for _, part := range parts {
			sum += part
		}
		if weight := ranking.Weight(places[k]); !near(sum, weight) {
			t.Fatalf("the parts of host %d, %v, do not add up to %v", places[k], parts, weight)
		}
	}
}

// isOwn reports whether Nova has no weigher of that name.
func isOwn(name string) bool { return slices.Contains(ours, name) }

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// alike reports whether both lists have the same hosts with the same weights in the same
// order. Hosts of equal weight may be in any order.
func alike(want, got []weighed) bool {
	weight := map[string]float64{}
	for _, h := range got {
		weight[h.name] = h.weight
	}
	return slices.EqualFunc(want, got, func(w, g weighed) bool {
		here, there := weight[w.name]
		return there && near(here, w.weight) && near(g.weight, w.weight)
	})
}
