// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// statesOf returns the states of the cloud's hosts.
func statesOf(c *cloud, cells map[string]string) []inventory.HostState {
	hosts, _ := assemble(c, inventory.PreemptibleRule{ExtraSpec: "almanac:preemptible"})
	return hostStates(c, hosts, cells)
}

func TestTheStateOfAHostIsWhatNovaAndPlacementSayOfIt(t *testing.T) {
	own := fence.OwnName("6f1c")
	rows := statesOf(small(func(c *cloud) {
		c.services[1].Disabled, c.services[1].Reason = true, "kernel update"
		c.hypervisors[1].Version, c.hypervisors[1].IP = 9002000, "10.0.0.7"
		c.providers = append(c.providers, placement.Provider{ID: "ours", Name: fence.ProviderPrefix + "a", Root: "pa", Parent: "pa"})
		c.holdings["ours"] = holding{
			inventories: map[string]placement.Inventory{own: {Total: 4, Ratio: 1, MinUnit: 1, MaxUnit: 1, StepSize: 1}}, used: map[string]int64{own: 3},
		}
		h := c.holdings["pa"]
		h.traits = append(h.traits, fence.Shared)
		c.holdings["pa"] = h
		run(c, "2", "a", func(i *inventory.Instance) { i.Status = "BUILD" })
		run(c, "1", "a", func(i *inventory.Instance) { i.Flavor.ExtraSpecs = map[string]string{"almanac:preemptible": "yes"} })
	}), map[string]string{"a": "cell-1", "gone": "cell-2"})
	want := []inventory.HostState{
		{
			Name: "a", Node: "a.example.org", Provider: "pa", Cell: "cell-1", Zone: "nova", IP: "10.0.0.7", Up: true, Enabled: true,
			HypervisorType: "QEMU", HypervisorVersion: 9002000, IOOps: 1,
			Stocks: map[string]inventory.Stock{
				"VCPU":      {Provider: "pa", Total: 16, Ratio: 4, Used: 2},
				"MEMORY_MB": {Provider: "pa", Total: 8192, Reserved: 512, Ratio: 1, Used: 1024},
				"DISK_GB":   {Provider: "pa", Total: 100, Ratio: 0.5},
				own:         {Provider: "ours", Total: 4, Ratio: 1, Used: 3, Min: 1, Max: 1, Step: 1},
			},
			Traits: []string{"COMPUTE_NODE", fence.Shared, "CUSTOM_FAST"},
			Instances: []inventory.Instance{
				{ID: "1", Host: "a", ProjectID: "p", Status: "ACTIVE", Preemptible: true, Flavor: inventory.Flavor{ExtraSpecs: map[string]string{"almanac:preemptible": "yes"}}},
				{ID: "2", Host: "a", ProjectID: "p", Status: "BUILD"},
			},
		},
		{
			Name: "b", Node: "b.example.org", Provider: "pb", Zone: "east", Up: true, DisabledReason: "kernel update", HypervisorType: "QEMU",
			Stocks: map[string]inventory.Stock{
				"VCPU": {Provider: "pb", Total: 4, Ratio: 1}, "PCPU": {Provider: "pb", Total: 8, Ratio: 1, Used: 3},
				"MEMORY_MB": {Provider: "pb", Total: 2048, Ratio: 1}, "CUSTOM_FPGA": {Provider: "pb", Total: 2, Ratio: 1},
			},
		},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHostWithoutANovaComputeIsNeitherUpNorEnabled(t *testing.T) {
	rows := statesOf(small(func(c *cloud) { c.services, c.providers = c.services[1:], c.providers[1:] }), nil)
	if a := rows[0]; a.Up || a.Enabled || a.Zone != "" || len(a.Stocks) != 0 {
		t.Errorf("got %+v", a)
	}
}

func TestAHostInNoCellTakesNoInstances(t *testing.T) {
	for name, tc := range map[string]struct {
		cells map[string]string
		cell  string
		takes bool
	}{
		"nobody tells cells":   {nil, "", true},
		"it is in one":         {map[string]string{"a": "cell-1"}, "cell-1", true},
		"every host is in one": {map[string]string{"": "cell-1"}, "cell-1", true},
		"others are in one":    {map[string]string{"b": "cell-1"}, "", false},
	} {
		a := statesOf(small(nil), tc.cells)[0]
		if a.Cell != tc.cell || a.Enabled != tc.takes || (a.DisabledReason == "") != tc.takes {
			t.Errorf("%s: cell %q, enabled %v: %q", name, a.Cell, a.Enabled, a.DisabledReason)
		}
	}
}

func TestAClassThatMoreThanOneProviderOffersIsSplit(t *testing.T) {
	held := func(id string, class string, i placement.Inventory) placement.Held {
		return placement.Held{Provider: placement.Provider{ID: id}, Inventories: map[string]placement.Inventory{class: i}, Used: map[string]int64{class: 1}}
	}
	some, nothing := placement.Inventory{Total: 4, Ratio: 1}, placement.Inventory{Total: 4, Reserved: 4, Ratio: 1}
	for name, tc := range map[string]struct {
		tree   []placement.Held
		shared []string
		want   map[string]string // the provider of each class
		split  []string
	}{
		"one":                                   {[]placement.Held{held("r", "VGPU", some)}, nil, map[string]string{"VGPU": "r"}, nil},
		"two":                                   {[]placement.Held{held("r", "VCPU", some), held("g", "VGPU", some), held("h", "VGPU", some)}, nil, map[string]string{"VCPU": "r"}, []string{"VGPU"}},
		"two, one of which has nothing to give": {[]placement.Held{held("r", "VGPU", some), held("g", "VGPU", nothing)}, nil, map[string]string{"VGPU": "r"}, nil},
		"two, the first has nothing to give":    {[]placement.Held{held("r", "VGPU", nothing), held("g", "VGPU", some)}, nil, map[string]string{"VGPU": "g"}, nil},
		"shared by another":                     {[]placement.Held{held("r", "VCPU", some), held("d", "DISK_GB", some)}, []string{"DISK_GB", "DISK_GB"}, map[string]string{"VCPU": "r"}, []string{"DISK_GB"}},
		"all reserved":                          {[]placement.Held{held("r", "DISK_GB", nothing)}, nil, map[string]string{"DISK_GB": "r"}, nil},
	} {
		all, split := stocks(tc.tree, tc.shared)
		got := map[string]string{}
		for class, stock := range all {
			if got[class] = stock.Provider; stock.Used != 1 {
				t.Errorf("%s: %d used of %s", name, stock.Used, class)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || !slices.Equal(split, tc.split) {
			t.Errorf("%s: split %v, stocks (-want +got):\n%s", name, split, diff)
		}
	}
}

func TestFreePCIDevicesAreThoseThatPlacementLists(t *testing.T) {
	rows := statesOf(small(func(c *cloud) {
		device := func(id, trait string, total, used int64) {
			c.providers = append(c.providers, placement.Provider{ID: id, Name: id, Root: "pa", Parent: "pa"})
			c.holdings[id] = holding{
				inventories: map[string]placement.Inventory{"CUSTOM_PCI_8086_1572": {Total: total, Ratio: 1}},
				used:        map[string]int64{"CUSTOM_PCI_8086_1572": used}, traits: []string{trait},
			}
		}
		device("a_0000:81:00.0", "COMPUTE_MANAGED_PCI_DEVICE", 8, 3)
		device("a_0000:82:00.0", "COMPUTE_MANAGED_PCI_DEVICE", 1, 1)
		device("a_gpu", "CUSTOM_OTHER", 4, 0)
	}), nil)
	if got := []int64{rows[0].PCIDevices, rows[1].PCIDevices}; !slices.Equal(got, []int64{5, 0}) {
		t.Errorf("%v devices are free, want 5 and 0", got)
	}
}

func TestHeavyWorkIsCountedAsNovaCountsIt(t *testing.T) {
	for want, list := range map[int64][]inventory.Instance{
		0: {{Status: "ACTIVE"}, {Status: "ACTIVE", Task: "powering-off"}, {Status: "SHUTOFF", Task: "resize_migrated"}, {Status: "ACTIVE", Task: "image_uploading"}, {Status: "MIGRATING", Task: "migrating"}},
		1: {{Status: "BUILD", Task: "spawning"}, {Status: "ACTIVE"}},
		2: {{Status: "BUILD", Task: "rebuilding"}},
		7: {
			{Task: "rebuilding"}, {Task: "resize_prep"}, {Task: "resize_migrating"}, {Task: "image_snapshot"}, {Task: "image_backup"},
			{Task: "rescuing"}, {Task: "unshelving"},
		},
	} {
		if got := heavy(list); got != want {
			t.Errorf("%+v: %d, want %d", list, got, want)
		}
	}
}

func TestAnInstanceIsUnderWayWhileSomethingIsDoneWithIt(t *testing.T) {
	c := small(func(c *cloud) {
		run(c, "builds", "", func(i *inventory.Instance) { i.Status = "BUILD" })
		run(c, "migrates", "a", func(i *inventory.Instance) { i.Task = "resize_prep" })
		run(c, "runs", "a", nil)
		c.servers["failed"] = nova.Server{Instance: inventory.Instance{ID: "failed", Status: "ERROR"}}
	})
	for id, want := range map[string]bool{"builds": true, "migrates": true, "runs": false, "failed": false, "never seen": false} {
		if got := c.underWay(id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// told returns fixed cells, or an error instead.
type told struct {
	cells map[string]string
	err   error
}

func (t *told) Cells(context.Context) (map[string]string, error) { return t.cells, t.err }

func TestWhatCannotBeToldStaysOnTheBoardAsItWas(t *testing.T) {
	cells := &told{cells: map[string]string{"a": "cell-1"}}
	board := inventory.NewLiveState()
	s := NewSource(nil, nil, Options{LiveState: board, Cells: cells, Log: slog.New(slog.DiscardHandler)})
	show := func(change func(c *cloud)) []string {
		c := small(change)
		hosts, _ := assemble(c, inventory.PreemptibleRule{})
		return s.show(t.Context(), board.BeginRead(), c, hosts)
	}
	if notes := show(nil); notes != nil || board.Load().Host(0).Cell != "cell-1" {
		t.Errorf("notes %v, cell %q", notes, board.Load().Host(0).Cell)
	}
	cells.cells, cells.err = nil, errors.New("the database is away")
	if notes := show(nil); len(notes) != 1 || !strings.Contains(notes[0], "the database is away") || board.Load().Host(0).Cell != "cell-1" {
		t.Errorf("notes %v, cell %q", notes, board.Load().Host(0).Cell)
	}
	cells.err = nil
	before := board.Load()
	notes := show(func(c *cloud) {
		c.hypervisors = append(c.hypervisors, nova.Hypervisor{ID: "pA", Name: "A.example.org", Host: "A"})
	})
	if len(notes) != 1 || !strings.Contains(notes[0], `two hosts are named "A" and "a"`) || board.Load() != before {
		t.Errorf("notes %v, new states: %v", notes, board.Load() != before)
	}
}
